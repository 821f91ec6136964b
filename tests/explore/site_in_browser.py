"""Every page of the built site in a browser: `make test-site`, after `make docs`.

It is no part of the suite, as it needs Chromium. Pages are opened from their files, wide and
narrow, light and dark; screenshots are kept in out/site.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT, PICTURES = ROOT / "docs" / "_build" / "html", ROOT / "out" / "site"
PAGES = sorted(path for path in BUILT.rglob("*.html") if "_static" not in path.parts)
VIEWS = {
    f"{width} {scheme}": (width, scheme) for width in (1280, 400) for scheme in ("light", "dark")
}
LOAD = """() => Promise.all([...document.images].map((image) => {
    image.loading = "eager";
    return image.complete || new Promise((done) => { image.onload = image.onerror = done; });
}))"""
TYPESET = "() => !window.MathJax?.startup?.promise || MathJax.startup.promise.then(() => true)"
AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")

if not PAGES:
    pytest.exit(f"There is no site in {BUILT.relative_to(ROOT)}: run `make docs`.", returncode=2)


@pytest.fixture(scope="module", params=VIEWS)
def view(request, browser):
    """The name of a way of looking, and windows that have it."""
    width, scheme = VIEWS[request.param]
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    yield request.param, context
    context.close()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(BUILT)))
def test_a_page_can_be_read(view, path):
    """Errors, requests to a network, pictures, headings, names, formulas, widths and contrast."""
    (name, context), found = view, []
    page = context.new_page()
    page.on("console", lambda said: found.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("request", lambda asked: None if local(asked.url) else found.append(asked.url))
    try:
        page.goto(path.as_uri())
        page.evaluate(LOAD)
        page.wait_for_function(TYPESET)
        found += page.evaluate(AUDIT)
        picture = PICTURES / name / path.relative_to(BUILT).with_suffix(".png")
        picture.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=picture, full_page=True, timeout=120_000)
    finally:
        page.close()
    assert not found, "\n".join(found)


def local(address):
    """Whether an address is a file of this machine, or part of the page itself."""
    return address.startswith(("file:", "data:", "blob:", "about:"))

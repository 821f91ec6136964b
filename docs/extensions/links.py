"""Links within the site: after the build, every one leads to a file, and to an anchor in it.

Also nothing is loaded from elsewhere: pages are complete without a network.
"""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.util import logging

logger = logging.getLogger(__name__)
LOADED = {("script", "src"), ("img", "src"), ("video", "src"), ("source", "src"), ("link", "href")}
ELSEWHERE = {"http", "https", "mailto", "data"}  # what a link may lead to beyond the site
LOADING = {"stylesheet", "icon", "preload", "modulepreload"}


class Page(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, path: Path):
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        for name in ("href", "src", "poster"):
            if given.get(name):
                self.targets.append(given[name])
                loads = tag != "link" or LOADING & set((given.get("rel") or "").split())
                if (tag, name) in LOADED and loads:
                    self.loaded.append(given[name])


def check(app, exception) -> None:
    """Warn of every link that leads nowhere, and of everything that is loaded from elsewhere."""
    if exception is not None or app.builder.format != "html":
        return
    root = Path(app.outdir)
    pages = {
        path.resolve(): Page(path) for path in root.rglob("*.html") if "_static" not in path.parts
    }
    for path, page in pages.items():
        name = path.relative_to(root.resolve())
        for loaded in page.loaded:
            if urlsplit(loaded).netloc:
                logger.warning(
                    "%s loads %s: pages must be complete without a network", name, loaded
                )
        for target in dict.fromkeys(page.targets):
            url = urlsplit(target)
            if url.scheme not in ELSEWHERE | {""}:
                logger.warning("%s links to %s: no browser opens that", name, target)
            if url.scheme or url.netloc:
                continue
            there = (path.parent / unquote(url.path)).resolve() if url.path else path
            if not there.is_file():
                logger.warning("%s links to %s: there is no such file", name, target)
            elif there in pages and unquote(url.fragment) not in pages[there].anchors:
                logger.warning("%s links to %s: there is no such anchor", name, target)


def setup(app):
    app.connect("build-finished", check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

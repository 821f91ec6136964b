"""The gallery: sphinx-gallery runs examples/*.py, chapter by chapter, and shows what they write.

Examples are scripts that write figures and movies into the folder named by --out and end with an
exception if a verdict fails, and neither know nor need pyplot. So three things differ from the
habits of sphinx-gallery: chapters are folders that are made here from `examples/chapters.py`, a
script is told its `__file__` and `__doc__`, the scraper takes files, and what is downloaded is
written by `downloads.py`.
"""

import ast
import hashlib
import html
import logging
import os
import re
import shutil
import sys
from pathlib import Path

import downloads
from PIL import Image, ImageOps

DOCS = Path(__file__).resolve().parents[1]
EXAMPLES = DOCS.parent / "examples"
SOURCES = DOCS / "_build" / "chapters"
GALLERY = DOCS / "gallery"
WIDTH = 1480  # pixels: twice the width of a page
THUMBNAIL = (800, 440)  # pixels: twice what a card has
MOVIES_FOLDER = GALLERY / "movies"
PLAYED = "controls autoplay loop muted playsinline"
SHARED = {".py", ".toml", ".npz"}
TAGS = ".. raw:: html\n\n  <div id='sg-tag-list' class='sphx-glr-tag-list'></div>\n"

sys.path.insert(0, str(EXAMPLES))
# Workers of a parallel build start as new processes, which import this file and what examples use.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(EXAMPLES), str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)

from chapters import CHAPTERS  # noqa: E402

logging.getLogger("matplotlib.animation").setLevel(logging.WARNING)  # not how it calls ffmpeg

HEADER = """Gallery
=======

Each example has one idea and shows it beside what theory says. All are run when these pages are
built, which fails if a verdict does. ``make examples`` runs them all, and
``python examples/NAME.py`` one. The scripts and notebooks at the end of the pages run in any
folder where meanfield is installed: what an example needs from other files is in them.
"""

CONF = {
    "examples_dirs": ["_build/chapters"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "subsection_order": "gallery.place",
    "within_subsection_order": "gallery.place",
    "image_scrapers": ("gallery.scrape",),
    "reset_argv": "gallery.arguments",
    "thumbnail_size": THUMBNAIL,
    "download_all_examples": False,
    "show_signature": False,
    "capture_repr": (),
    "remove_config_comments": True,
    "copyfile_regex": "",
    "plot_gallery": "True",
    "write_computation_times": False,
    "parallel": int(os.environ.get("GALLERY_WORKERS", "0")) or False,
}


def prepare(_app, _config) -> None:
    """Write the chapters from which sphinx-gallery makes pages, before it does.

    It runs an example again if its script has changed; here also if anything else in the folder of
    examples has: a configuration, data, or a file that other scripts import. Pages of examples
    that are no longer in their chapter go.
    """
    shutil.rmtree(SOURCES, ignore_errors=True)
    SOURCES.mkdir(parents=True)
    MOVIES_FOLDER.mkdir(parents=True, exist_ok=True)
    (SOURCES / "GALLERY_HEADER.rst").write_text(HEADER, encoding="utf-8")
    for chapter in CHAPTERS:
        folder = SOURCES / chapter.folder
        folder.mkdir()
        head = f"{chapter.title}\n{'-' * len(chapter.title)}\n\n{chapter.about}\n"
        (folder / "GALLERY_HEADER.rst").write_text(head, encoding="utf-8")
        for name in chapter.examples:
            shutil.copyfile(EXAMPLES / f"{name}.py", folder / f"{name}.py")
    places = {(chapter.folder, n) for chapter in CHAPTERS for n in (*chapter.examples, "index")}
    for page in GALLERY.glob("*/*.rst"):
        if (page.parent.name, page.stem) not in places:
            page.unlink()
            page.with_suffix(".py.md5").unlink(missing_ok=True)
    stamp, now = GALLERY / "examples.sha256", digest()
    if not stamp.exists() or stamp.read_text() != now:
        for known in GALLERY.glob("*/*.py.md5"):
            known.unlink()
        stamp.write_text(now)


def digest() -> str:
    """Of all files that examples share."""
    own = {f"{name}.py" for chapter in CHAPTERS for name in chapter.examples}
    shared = [p for p in sorted(EXAMPLES.rglob("*")) if p.suffix in SHARED and p.name not in own]
    return hashlib.sha256(b"".join(path.read_bytes() for path in shared)).hexdigest()


def place(path: str) -> int:
    """Key by which chapters are sorted, and the examples of each."""
    names = [name for chapter in CHAPTERS for name in (chapter.folder, *chapter.examples)]
    return names.index(Path(path).stem)


def arguments(_conf: dict, script: dict) -> list[str]:
    """The command line of an example, before it runs; and what a script knows of itself."""
    path = EXAMPLES / Path(script["src_file"]).name
    script["example_globals"] |= {"__file__": str(path), "__doc__": docstring(path)}
    shutil.rmtree(written(script), ignore_errors=True)
    return ["--out", f"out/{path.stem}"]


def written(script: dict) -> Path:
    """Where an example writes."""
    path = Path(script["src_file"])
    return path.parent / "out" / path.stem


def docstring(path: Path) -> str:
    """The docstring of a script, which is not imported."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def scrape(_block, script: dict, _conf: dict) -> str:
    """Movies, then figures, in the order in which they were written, as reStructuredText."""
    if "formatted_exception" in script:
        return ""
    alt = description(docstring(EXAMPLES / Path(script["src_file"]).name))
    files = sorted(written(script).iterdir(), key=lambda path: path.stat().st_mtime_ns)
    movies, figures, slow = ([p for p in files if p.suffix == s] for s in (".mp4", ".png", ".gif"))
    if slow or not figures or len(figures) + len(movies) > 2:
        raise ValueError(
            "An example writes one or two figures, the first a .png, or one and a movie, which is "
            f"an .mp4 where there is ffmpeg; got {[path.name for path in files]}."
        )
    shown = [movie(path, alt) for path in movies]
    return "".join(shown + [figure(path, alt, script) for path in figures])


def figure(path: Path, alt: str, script: dict) -> str:
    """Copy a figure in the size in which it is shown; 256 colours are enough for drawings."""
    target = Path(next(script["image_path_iterator"]))
    with Image.open(path) as image:
        small = image.convert("RGB")
        small.thumbnail((WIDTH, 3 * WIDTH), Image.Resampling.LANCZOS)
        small.quantize(256, dither=Image.Dither.NONE).save(target, optimize=True)
    place = target.relative_to(DOCS).as_posix()
    return f"\n.. image:: /{place}\n    :alt: {alt}\n    :class: figure-card\n\n"


def movie(path: Path, alt: str) -> str:
    """A movie within the page: a static file, since it is no image."""
    shutil.copyfile(path, MOVIES_FOLDER / path.name)
    attributes = {
        "class": "figure-card",
        "src": f"../../_static/{path.name}",
        "poster": f"../../_images/sphx_glr_{path.stem}_001.png",
        "aria-label": html.escape(alt),
    }
    given = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f"\n.. raw:: html\n\n    <video {given} {PLAYED}></video>\n\n"


def thumbnails(_app) -> None:
    """Make thumbnails: of a tall figure its upper part, which sphinx-gallery shows small."""
    width, height = THUMBNAIL
    for path in GALLERY.glob("*/images/sphx_glr_*_001.png"):
        with Image.open(path) as image:
            rows = min(image.height, image.width * height // width)
            upper = image.convert("RGB").crop((0, 0, image.width, rows))
        small = ImageOps.pad(upper, THUMBNAIL, Image.Resampling.LANCZOS, "white")
        small.save(path.parent / "thumb" / path.name.replace("_001", "_thumb"))


def write_downloads(_app) -> None:
    """Put scripts and notebooks that run anywhere in place of those of sphinx-gallery."""
    for chapter in CHAPTERS:
        for name in chapter.examples:
            downloads.write(EXAMPLES / f"{name}.py", GALLERY / chapter.folder / name)


def untagged(_app, name: str, source: list[str]) -> None:
    """Leave out the places for tags, which examples have not: ids that a page has several times."""
    if name.startswith("gallery/"):
        source[0] = source[0].replace(TAGS, "")


def description(text: str) -> str:
    """What a figure shows: title and field `Look at` of a docstring, as plain text."""
    title = text.splitlines()[0]
    look = re.search(r"^:Look at: (.*?)(?=^:|\Z)", text, re.MULTILINE | re.DOTALL)
    plain = re.sub(r":math:`([^`]*)`", r"\1", f"{title}. Look at {look[1]}" if look else title)
    return " ".join(plain.replace("`", "").replace("\\", "").split())


def setup(app):
    app.connect("config-inited", prepare)
    app.connect("builder-inited", thumbnails, priority=600)  # after sphinx-gallery, which has 500
    app.connect("builder-inited", write_downloads, priority=600)
    app.connect("source-read", untagged)
    return {"parallel_read_safe": True}

"""A drawing of the package from its imports: rooms, floors, and who imports whom.

    python docs/pictures/house.py house.svg

Floors follow from the imports at the tops of modules. An arrow is drawn where no longer way leads
from one room to the other. Building the pages runs this.
"""

import ast
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "meanfield"
WIDTH, HEIGHT, GAP, RISE = 150, 46, 26, 92
STYLE = """<style>
text { font: 14px sans-serif; fill: #222; text-anchor: middle }
.small { font-size: 11px; fill: #555 }
rect { fill: #eef3f8; stroke: #0072b2; rx: 5 }
path { stroke: #777; fill: none; stroke-width: 1.2; marker-end: url(#tip) }
</style>
<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L8 4L0 8z" style="fill:#777;stroke:none;marker-end:none"/></marker>"""


def rooms() -> dict[str, list[Path]]:
    """The modules of every folder of the package."""
    folders = sorted(p for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists())
    return {folder.name: sorted(folder.rglob("*.py")) for folder in folders}


def imported(path: Path) -> set[str]:
    """The rooms that a module imports at its top, from other rooms."""
    found, depth = set(), len(path.relative_to(PACKAGE).parts)
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom) and statement.level == depth:
            names = [statement.module] if statement.module else [a.name for a in statement.names]
            found |= {name.split(".")[0] for name in names if name}
    return found


def below() -> dict[str, set[str]]:
    """The rooms that each room imports."""
    every = rooms()
    return {
        room: {other for path in paths for other in imported(path)} & (every.keys() - {room})
        for room, paths in every.items()
    }


def drawing() -> str:
    """The whole SVG."""
    under, every = below(), rooms()

    @cache
    def floor(room: str) -> int:
        return 1 + max((floor(other) for other in under[room]), default=-1)

    @cache
    def reached(room: str) -> frozenset[str]:
        return frozenset(under[room]).union(*(reached(other) for other in under[room]))

    floors: dict[int, list[str]] = {}
    for room in every:
        floors.setdefault(floor(room), []).append(room)
    wide = max(len(on) for on in floors.values()) * (WIDTH + GAP) + GAP
    tall = len(floors) * RISE + GAP
    places = {}
    for level, on in floors.items():
        left = (wide - len(on) * (WIDTH + GAP) + GAP) / 2
        for i, room in enumerate(on):
            places[room] = left + i * (WIDTH + GAP), tall - GAP - HEIGHT - level * RISE
    parts = []
    for room in every:
        direct = [o for o in under[room] if not any(o in reached(b) for b in under[room] - {o})]
        parts += [_arrow(places[room], places[other]) for other in sorted(direct)]
    for room, paths in every.items():
        lines = sum(path.read_text(encoding="utf-8").count("\n") for path in paths)
        parts.append(_box(places[room], room, f"{len(paths)} files, {lines} lines"))
    title = "<title>Rooms of meanfield: arrows lead to the rooms that a room imports</title>"
    size = f'viewBox="0 0 {wide:g} {tall:g}" width="{wide:g}" height="{tall:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>'
    return "\n".join([head, title, STYLE, *parts, "</svg>\n"])


def _box(place: tuple[float, float], name: str, note: str) -> str:
    x, y = place
    middle = x + WIDTH / 2
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<text x="{middle:g}" y="{y + 20:g}">{name}</text>'
        f'<text class="small" x="{middle:g}" y="{y + 37:g}">{note}</text>'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y = start[0] + WIDTH / 2, start[1] + HEIGHT
    to, top = end[0] + WIDTH / 2, end[1]
    bend = max((top - y) / 2, 12)
    return f'<path d="M{x:g} {y:g}C{x:g} {y + bend:g} {to:g} {top - bend:g} {to:g} {top:g}"/>'


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawing(), encoding="utf-8")

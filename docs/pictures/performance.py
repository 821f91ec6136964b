"""The figures of the page Performance, from the tables of the page Benchmarks.

    python docs/pictures/performance.py FOLDER

Building the pages runs this. A table is found by words of its head.
"""

import re
import sys
from pathlib import Path

from meanfield.plotting import theme

PAGE = Path(__file__).resolve().parents[1] / "reference" / "benchmarks.md"


def table(*words: str, without: str = "-") -> list[dict[str, str]]:
    """The rows of the only table whose head has these columns, and not another one."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        lines = [line.split("|")[1:-1] for line in block.splitlines()]
        head, _, *rows = [[_plain(cell) for cell in line] for line in lines]
        if set(words) <= set(head) and without not in head:
            found.append(
                [dict(zip(head[::-1], row[::-1], strict=True)) for row in rows]
            )  # the first of a name
    if len(found) != 1:
        raise ValueError(f"{len(found)} tables of {PAGE.name} have the columns {words}.")
    return found[0]


def _plain(cell: str) -> str:
    return re.sub(r"[*`$]", "", cell).strip()


def bars(rows, name: str, time: str, title: str, unit: str = "ms"):
    """Times of solvers, on a logarithmic axis; ours in blue."""
    rows = sorted(rows, key=lambda row: -float(row[time]))
    with theme.style():
        page = theme.figure(width=7.0, height=0.8 + 0.26 * len(rows))
        ax = page.subplots()
        for place, row in enumerate(rows):
            ours = row[name].startswith("meanfield")
            ax.barh(place, float(row[time]), color=theme.PALETTE[0] if ours else theme.FAINT)
            ax.text(
                float(row[time]) * 1.06, place, f"{float(row[time]):g}", va="center", fontsize=8
            )
        ax.set_yticks(range(len(rows)), [row[name] for row in rows])
        ax.set(xscale="log", xlabel=unit, title=title)
        ax.set_xlim(float(rows[-1][time]) / 10, 3 * float(rows[0][time]))
    return page


def circle():
    rows = table("solver", "ms", "times meanfield", without="degree")
    return bars(rows, "solver", "ms", r"A density on the circle, to $t = 5$ with error $10^{-8}$")


def sphere():
    rows = table("degree", "solver", "setting")
    chosen = [{**r, "solver": r["solver"]} for r in rows if r["degree"] == "63"]
    return bars(
        chosen, "solver", "ms", r"A density on $S^2$, degree 63, to $t = 2$ with error $10^{-8}$"
    )


def tokens():
    """Times of a velocity by modes against n, and of the floor."""
    rows = table("degree", "n", "ms", "floor")
    with theme.style():
        page = theme.figure(width=7.0, height=3.2)
        ax = page.subplots()
        for i, name in enumerate(dict.fromkeys(row[""] for row in rows)):
            own = [row for row in rows if row[""] == name]
            n = [float(row["n"]) for row in own]
            ax.plot(n, [float(row["ms"]) for row in own], "o-", color=theme.colour(i), label=name)
            ax.plot(n, [float(row["floor"]) for row in own], ":", color=theme.colour(i))
        pairs = [r for r in table("n", "d", "PyTorch", "KeOps") if r["d"] == "3"]
        for k, column in enumerate(("meanfield", "PyTorch")):
            style = {"color": theme.INK, "marker": "s^"[k], "linestyle": "-", "markersize": 4}
            times = [float(row[column]) for row in pairs]
            ax.plot(
                [float(r["n"]) for r in pairs], times, label=f"all pairs, d = 3, {column}", **style
            )
        ax.set(xscale="log", yscale="log", xlabel="tokens $n$", ylabel="one velocity, ms")
        ax.set_title("Dotted: the least conceivable time")
        page.legend(*ax.get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    return page


def floors():
    """A step beside its transforms, on the circle and on S^2."""
    circle_rows = [r for r in table("degree", "members", "points") if r["members"] == "1"]
    sphere_rows = table("degree", "latitudes", "longitudes")
    with theme.style():
        page = theme.figure(width=7.0, height=2.8)
        for ax, rows, floor, title in zip(
            page.subplots(1, 2), (circle_rows, sphere_rows), ("FFTs, µs", "transforms, µs"),
            ("circle", "$S^2$"), strict=True,
        ):  # fmt: skip
            degrees = [float(row["degree"]) for row in rows]
            for column, style in (("step, µs", "o-"), (floor, "o:")):
                times = [float(row[column]) for row in rows]
                ax.plot(degrees, times, style, label=column.split(",")[0], color=theme.PALETTE[0])
            ax.set(xscale="log", yscale="log", xlabel="degree", title=title)
            ax.set_xticks(degrees, [f"{degree:g}" for degree in degrees])
            ax.minorticks_off()
            ax.legend(fontsize=8)
        page.axes[0].set_ylabel("µs a step")
    return page


FIGURES = {"circle": circle, "sphere": sphere, "tokens": tokens, "floors": floors}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        draw().savefig(Path(sys.argv[1]) / f"performance_{name}.png", dpi=150)

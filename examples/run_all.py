"""The bundled experiments, all of them, with one table: measured / predicted / error / verdict.

`chapters.py` lists them. Each writes figures, and some write NetCDF files. The exit code is 1 if
a verdict fails.

    python examples/run_all.py --out out
"""

import sys
import time
from importlib import import_module

from chapters import CHAPTERS
from report import Row, folder, print_table, title

EXPERIMENTS = tuple(import_module(name) for chapter in CHAPTERS for name in chapter.examples)


def main() -> int:
    """Run all experiments; returns 1 if a verdict fails, else 0."""
    out = folder("Solve the bundled experiments and compare them with theory.")
    print("The first run compiles the solver: a few seconds for each kind of state.")
    sections: dict[str, list[Row]] = {}
    begin = time.perf_counter()
    for number, experiment in enumerate(EXPERIMENTS, start=1):
        name = title(experiment.__doc__)
        print(f"[{number}/{len(EXPERIMENTS)}] {name}", flush=True)
        start = time.perf_counter()
        rows = sections[name] = experiment.run(out)
        verdict = "a verdict FAILS" if any(row.fails for row in rows) else "all verdicts hold"
        print(f"      {time.perf_counter() - start:.1f} s, {verdict}", flush=True)
    print()
    print_table(sections)
    rows = [row for section in sections.values() for row in section]
    judged = [row for row in rows if row.tolerance is not None]
    failed = sum(row.fails for row in judged)
    shown = len(rows) - len(judged)
    print(f"\n{len(judged) - failed} of {len(judged)} verdicts hold; {shown} rows are shown only.")
    print(f"{time.perf_counter() - begin:.0f} s. Figures and NetCDF files are in {out}/:")
    print("  " + "  ".join(sorted(path.name for path in out.iterdir())))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

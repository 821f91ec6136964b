"""The bundled experiments, all of them, with one table: measured / predicted / error / verdict.

Each solves one or two of the configuration files beside this script, as `meanfield solve` would,
and writes NetCDF files and figures. The exit code is 1 if a verdict fails.

    python examples/demo.py --out out
"""

import sys
import time

import bifurcation
import chaos
import collapse
import common_noise
import common_noise_phases
import derivatives
import equiangular
import gaussian
import hysteresis
import kuramoto_bifurcation
import limits
import many_pairs
import metastable
import minilm
import modes
import multiplicative_noise
import noisy_tokens
import off_axis
import ott_antonsen
import phase_diagrams_noise
import random_matrices
import sphere
import sweep
import tokens
from report import Row, folder, print_table, title

EXPERIMENTS = (
    kuramoto_bifurcation,
    metastable,
    hysteresis,
    ott_antonsen,
    sphere,
    collapse,
    minilm,
    tokens,
    noisy_tokens,
    common_noise,
    equiangular,
    gaussian,
    chaos,
    bifurcation,
    derivatives,
    phase_diagrams_noise,
    multiplicative_noise,
    common_noise_phases,
    random_matrices,
    off_axis,
    modes,
    limits,
    sweep,
    many_pairs,
)


def main() -> int:
    """Run all experiments; returns 1 if a verdict fails, else 0."""
    out = folder("Solve the bundled experiments and compare them with theory.")
    print("The first run of all compiles the solver, which takes about half a minute.")
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

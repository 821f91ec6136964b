"""What a density on the torus of two angles costs: tables in Markdown.

    python benchmarks/torus.py [--small]

rate      d mu/dt under USA and SA at degrees 32 and 128, beside its Fourier transforms alone by
          pyFFTW, of the same lengths and with plans of the same kind: 3 (SA: 4) inverse, 2 forward
run       a run to t = 1 at rtol = 1e-8, beside scipy's DOP853 with numpy's transforms

One thread; best of several; about a minute.
"""

import os
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "validation"))

import numpy as np
import pyfftw
from _small import parser, sized
from _timing import fastest
from _torus_reference import coefficients_at

import meanfield as mf
from meanfield.lowlevel.fourier import good_length

DEGREES, RUN_DEGREE = sized(((32, 128), 32), ((8,), 8))
BETA, KAPPA = 1.0, 3.0
REPEATS, BUDGET = 25, 6.0


def main() -> None:
    parser(__doc__).parse_args()
    print("\n## d mu/dt on the torus, ms\n")
    print("| drift | degree | points | meanfield | its transforms | ratio |")
    print("|---|---|---|---|---|---|")
    for drift in (mf.USA(BETA), mf.SA(BETA)):
        for degree in DEGREES:
            rate(drift, degree)
    print("\n## A run to t = 1 at rtol = 1e-8, ms\n")
    print("| drift | degree | meanfield | DOP853 | ratio | difference |")
    print("|---|---|---|---|---|---|")
    run(mf.USA(BETA), None)
    run(mf.SA(BETA), lambda z, w: np.exp(BETA * (np.cos(z) + np.cos(w))))


def initial(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp(0.5 * np.cos(a - 0.3) + 0.4 * np.sin(b) + 0.3 * np.cos(a - b))


def rate(drift: mf.USA | mf.SA, degree: int) -> None:
    torus = mf.Torus(degree)
    normaliser = torus.normaliser(drift)
    tables = [None if t is None else t[None] for t in (torus.attraction(drift), normaliser)]
    transport = torus.transport(*tables, 1)
    n = good_length(transport.points)
    spectrum = pyfftw.empty_aligned((n, n // 2 + 1), complex)
    values = pyfftw.empty_aligned((n, n))
    plan = {"axes": (0, 1), "flags": ("FFTW_ESTIMATE",)}
    inverse = pyfftw.FFTW(spectrum, values, direction="FFTW_BACKWARD", **plan)
    forward = pyfftw.FFTW(values, spectrum, **plan)
    count = 3 if normaliser is None else 4

    def transforms() -> None:
        for _ in range(count):
            inverse.execute()
        for _ in range(2):
            forward.execute()

    c = torus.density(initial).coefficients[None]
    ours, floor = (1e3 * s for s in fastest([lambda: transport(c), transforms], REPEATS, BUDGET))
    name = type(drift).__name__
    print(
        f"| {name} | {degree} | {n}^2 | {ours:.3g} | {floor:.3g} | {ours / floor:.2f} |", flush=True
    )


def run(drift: mf.USA | mf.SA, Z: mf.Interaction | None) -> None:
    torus, degree = mf.Torus(RUN_DEGREE), RUN_DEGREE
    start, model = torus.density(initial), mf.Transformer(drift, kappa=KAPPA)
    limits = {"t_eval": [1], "rtol": 1e-8, "min_degree": degree, "max_degree": degree}

    def W(z: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.exp(BETA * (np.cos(z) + np.cos(w))) / BETA

    runs = [
        lambda: mf.solve(model, start, (0, 1), **limits).final.coefficients,
        lambda: coefficients_at(initial, W, Z, KAPPA, 1.0, degree, rtol=1e-8),
    ]
    ours, theirs = runs[0](), runs[1]()[tuple(torus.waves.T)]
    times = [1e3 * s for s in fastest(runs, 3, BUDGET)]
    cells = " | ".join(f"{ms:.3g}" for ms in times)
    print(
        f"| {type(drift).__name__} | {degree} | {cells} | {times[1] / times[0]:.1f} | "
        f"{np.abs(ours - theirs).max():.0e} |",
        flush=True,
    )


if __name__ == "__main__":
    main()

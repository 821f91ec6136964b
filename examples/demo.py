r"""The main job in a minute: both equations on the circle and the 2-sphere, and tokens beside them.

The Transformer PDE without noise, and the noisy Fokker-Planck equation at kappa = 2, under
unnormalised attention: on the circle at beta = 2, where tokens gather, and on the 2-sphere at
beta = 1, where this noise spreads them. Densities are followed, the rates of their W2 distances are
compared with theory, and 16 to 256 tokens with the densities. `run_all.py` has all examples.

    python examples/demo.py --out out
"""

import sys
import time
from pathlib import Path

import numpy as np
from report import Row, folder, print_table
from scipy.special import iv

import meanfield as mf
from meanfield.plotting import theme

BETA, KAPPA = 2.0, 2.0
NOISY = mf.Transformer(mf.USA(BETA), kappa=KAPPA)
WEAK = mf.Transformer(mf.USA(1.0), kappa=KAPPA)  # on S^2 uniform up to kappa = 2.718
CIRCLE, SPHERE = mf.Circle(16), mf.Sphere(16)
ON_THE_CIRCLE = CIRCLE.density(lambda angle: 1 + 0.1 * np.cos(angle))
ON_THE_SPHERE = SPHERE.density(lambda x, y, z: 1 + 0.3 * z + 0.4 * x * y)
SIZES = [16, 64, 256]
LOGARITHM = np.polyfit(np.log(SIZES), np.log(np.log(SIZES)) / 2, 1)[0]  # of (log n/n)^(1/2)
SLOPE = 0.1  # four standard errors of an exponent, and the deviation of few tokens from the limit


def without_noise(out: Path) -> list[Row]:
    """The Transformer PDE on the circle: a density collapses to a point.

    The mass near the antipode of the point comes last. It decays at the rate e^-beta, and W2, a
    root of it, at half of this rate.
    """
    beta, end = 0.5, 50.0
    start = mf.Characteristics(CIRCLE.density(lambda angle: 1 + 0.5 * np.cos(angle)))
    times = np.linspace(0, end, 201)
    run = mf.solve(mf.Transformer(mf.USA(beta)), start, (0, end), t_eval=times, rtol=1e-9)
    run.plot().savefig(out / "demo_collapse.png")
    data = run.observables
    rate = slope(run.t, data.w2_to_dirac.values, 1e-6, 1e-3)
    return [
        Row("rate of W2 to the point, e^(-beta)/2", -rate, float(np.exp(-beta) / 2), 1e-2,
            relative=True),
        Row("energy of the point", float(data.interaction_energy[-1]),
            float(np.exp(beta) / beta / 2), 1e-9),
        Row("mass", float(data.mass[-1]), 1.0, 1e-13),
    ]  # fmt: skip


def noise_on_the_circle(out: Path) -> list[Row]:
    """The noisy equation on the circle: order grows from a small mode to a stationary state."""
    run = mf.solve(NOISY, ON_THE_CIRCLE, (0, 30), t_eval=np.linspace(0, 30, 121), rtol=1e-10)
    run.plot().savefig(out / "demo_circle.png")
    small = CIRCLE.density(lambda angle: 1 + 1e-5 * np.cos(angle))
    early = mf.solve(NOISY, small, (0, 2), rtol=1e-10).observables.order_parameter.values
    state = mf.stationary(NOISY, run.final)
    w2 = np.array([float(mf.wasserstein(density, state.density)) for density in run])
    draw_distances(run.t, w2, state).savefig(out / "demo_w2.png")
    return [
        Row("growth of cos(angle)", float(np.log(early[-1] / early[0]) / 2),
            float(iv(1, BETA) / BETA - 1 / KAPPA), 1e-6),
        Row("order at t = 30, that of Newton's method",
            float(run.observables.order_parameter[-1]), state.order_parameter, 1e-4),
        Row("rate of W2 to that state, its spectral gap", -slope(run.t, w2, 1e-4, 1e-2),
            state.stability().gap, 1e-2, relative=True),
    ]  # fmt: skip


def noise_on_the_sphere(out: Path) -> list[Row]:
    """The noisy equation on S^2: this noise keeps the uniform density stable."""
    run = mf.solve(WEAK, ON_THE_SPHERE, (0, 12), t_eval=np.linspace(0, 12, 49), rtol=1e-10)
    run.plot().savefig(out / "demo_sphere.png")
    entropy = run.observables.entropy.values
    rate = 2 * (iv(1.5, 1.0) * np.sqrt(np.pi / 2) - 1 / KAPPA)  # of degree 1, at beta = 1
    return [
        Row("rate of the order parameter",
            slope(run.t, run.observables.order_parameter.values, 0, 0.02), rate, 1e-2,
            relative=True),
        Row("rate of the entropy, twice that", slope(run.t, entropy, 0, 1e-3), 2 * rate, 1e-2,
            relative=True),
    ]  # fmt: skip


def tokens(out: Path) -> list[Row]:
    """Tokens on the circle and on S^2 under the same noise, and how their W2 distances fall."""
    rows = []
    for name, model, density, times, replicas, law, exponent in (
        ("circle", NOISY, ON_THE_CIRCLE, [0.25, 0.5, 1.0], 64, "n^(-1/2)", -0.5),
        ("sphere", WEAK, ON_THE_SPHERE, [0.5, 1.0], 16, "(log n/n)^(1/2)", -0.5 + LOGARITHM),
    ):
        study = mf.propagation_of_chaos(
            model, density, SIZES, times, replicas, rng=0, dt=0.05, distances=["W2"],
            functionals={}, coupling=False, progress=False,
        )  # fmt: skip
        study.plot().savefig(out / f"demo_tokens_{name}.png")
        floor = float(study.data["floor of W2"].sel(n=SIZES[-1], t=1.0).mean())
        ratio = float(study.data["W2"].sel(n=SIZES[-1], t=1.0).mean()) / floor
        rows += [
            Row(f"{name}: exponent of W2 at t = 1, {law}",
                study.rate("W2", t=1.0).exponent, exponent, SLOPE),
            Row(f"{name}: W2 / W2 of independent samples, n = {SIZES[-1]}", ratio, "",
                remark="no prediction"),
        ]  # fmt: skip
    many = ON_THE_CIRCLE.sample(2000, rng=1)
    times = np.linspace(0, 30, 61)
    path = mf.solve(NOISY, many, (0, 30), t_eval=times, dt=0.05, rng=2)
    path.plot().savefig(out / "demo_tokens.png")
    return rows


def slope(t: np.ndarray, values: np.ndarray, low: float, high: float) -> float:
    """The slope of log(values) where they are between two bounds."""
    within = (values > low) & (values < high)
    return float(np.polyfit(t[within], np.log(values[within]), 1)[0])


def draw_distances(t: np.ndarray, w2: np.ndarray, state: mf.StationaryState):
    """W2 to the stationary state over time, beside the rate of its spectral gap."""
    gap = state.stability().gap
    within = w2 < 0.5
    with theme.style():
        page = theme.figure(width=5.0, height=3.2)
        ax = page.subplots()
        ax.semilogy(t, w2, label=r"$W_2$ to the stationary state")
        ax.semilogy(
            t[within], w2[-1] * np.exp(-gap * (t[within] - t[-1])), "--", color=theme.INK,
            label=rf"$e^{{-\lambda t}}$, $\lambda = {gap:.3f}$, the spectral gap",
        )  # fmt: skip
        ax.set(xlabel="time $t$", ylabel="$W_2$ in radians")
        ax.legend()
    return page


PARTS = {
    "Without noise, on the circle": without_noise,
    "Noise, kappa = 2, on the circle": noise_on_the_circle,
    "Noise, kappa = 2, on the sphere S^2": noise_on_the_sphere,
    "Tokens beside their densities": tokens,
}


def main() -> int:
    """Run all parts; returns 1 if a verdict fails, else 0."""
    out = folder(__doc__)
    print("The first run of all compiles the solver: some twenty seconds more.")
    begin, sections = time.perf_counter(), {}
    for number, (name, run) in enumerate(PARTS.items(), start=1):
        start = time.perf_counter()
        sections[name] = run(out)
        seconds = time.perf_counter() - start
        print(f"[{number}/{len(PARTS)}] {name}: {seconds:.1f} s", flush=True)
    print()
    print_table(sections)
    judged = [row for rows in sections.values() for row in rows if row.tolerance is not None]
    failed = sum(row.fails for row in judged)
    print(f"\n{len(judged) - failed} of {len(judged)} verdicts hold.")
    print(f"{time.perf_counter() - begin:.0f} s. Figures are in {out}/:")
    print("  " + "  ".join(sorted(path.name for path in out.glob("demo_*.png"))))
    print("`make examples` runs all examples, which takes about ten minutes.")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

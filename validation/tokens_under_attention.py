"""Claim: means of 10^5 tokens under attention with matrices are those of the density.

On the circle and S^2, two heads of random Q, K, V, from a density at t = 0 to t = 0.6: softmax,
unnormalised and L2 weights without noise and under `Anisotropic`; softmax under the two
multiplicative noises; under common translations and a common matrix beside isotropic noise, with
the same path for tokens and density. Steps with noise are 0.05 long.

Tokens are summed by harmonics. Asked: means of x, y, x y and x^2 to 4.5 standard errors of the
tokens; velocities of the last tokens, for a few of them, to 1e-10 of those by all pairs.

    python validation/tokens_under_attention.py [--quick]    # 120 s, 6 s quick

--quick has a quarter of the tokens, three of ten models on the circle, and one on S^2. Exit code 1
on failure.
"""

import sys

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf
from meanfield.engines import AttentionModes, AttentionSums
from meanfield.models.weights import L2, Softmax, Unnormalised

TOKENS, T_END, STEP, ERRORS, FEW = 100_000, 0.6, 0.05, 4.5, 50
SIGMA = np.array([[1.3, 0.15, -0.1], [0.15, 0.9, 0.05], [-0.1, 0.05, 0.8]])
FUNCTIONS = {
    "x": lambda x: x[..., 0],
    "y": lambda x: x[..., 1],
    "x y": lambda x: x[..., 0] * x[..., 1],
    "x^2": lambda x: x[..., 0] ** 2,
}


def scale(x: np.ndarray) -> np.ndarray:
    return 1 + 0.2 * x[..., 0] - 0.1 * x[..., -1] * x[..., 0]


def models(d: int) -> dict[str, mf.Transformer]:
    """By the name of what is compared."""
    Q, K, V = 0.6 * np.random.default_rng(d).standard_normal((3, 2, d, d))
    drifts = {
        type(weights).__name__: mf.Attention(Q, K, V, 1.0, weights=weights)
        for weights in (Softmax(), L2(), Unnormalised())
    }
    anisotropic, softmax = mf.noise.Anisotropic(SIGMA[:d, :d]), drifts["Softmax"]
    multiplicative = {
        "Stratonovich": mf.noise.MultiplicativeStratonovich(scale),
        "Ito": mf.noise.MultiplicativeIto(scale),
    }
    common = {
        "common translations": mf.CommonTranslations(5.0),
        "common matrix": mf.CommonMatrix(100.0),
    }
    return {
        **{
            f"{name}, Anisotropic": mf.Transformer(drift, 2.0, noise=anisotropic)
            for name, drift in drifts.items()
        },
        **{name: mf.Transformer(drift) for name, drift in drifts.items()},
        **{
            f"Softmax, {name}": mf.Transformer(softmax, 2.0, noise=noise)
            for name, noise in multiplicative.items()
        },
        **{
            f"Softmax, {name}": mf.Transformer(softmax, 4.0, common=noise)
            for name, noise in common.items()
        },
    }


def main() -> int:
    quick = command_line(__doc__, "fewer models and tokens").quick
    report = Report(["space", "model", "quantity"])
    circle, sphere = mf.Circle(32), mf.Sphere(15)
    starts = (
        circle.density(lambda t: np.exp(np.cos(t - 0.4))),
        sphere.density(lambda x, y, z: np.exp(0.5 * z + 0.3 * x * y)),
    )
    for start in starts:
        d = start.space.dimension
        for name, model in list(models(d).items())[:: (4 if d == 2 else 10) if quick else 1]:
            compare(
                report, ("circle", "S^2")[d - 2], name, model, start, TOKENS // (4 if quick else 1)
            )
    return report.verdict()


def compare(report: Report, space: str, name: str, model, start: mf.Density, count: int) -> None:
    """Means of tokens, whose engine has to be that of the harmonics."""
    span, options = (0, T_END), {"t_eval": [T_END], "progress": False}
    of_tokens = options | ({"dt": STEP, "rng": 2} if model.noisy else {"rtol": 1e-6})
    of_density = options | ({"dt": STEP, "rng": 2} if model.common is not None else {})
    law = successful(mf.solve(model, start, span, **of_density)).final
    run = successful(mf.solve(model, start.sample(count, rng=1), span, **of_tokens))
    assert run.stats["engine"] == AttentionModes.name, run.stats["engine"]
    x = run.final.x
    for which, f in FUNCTIONS.items():
        values = f(x)
        error = values.std() / np.sqrt(values.size)
        report.compare(
            space,
            name,
            which,
            predicted=law.expect(f),
            measured=values.mean(),
            tolerance=ERRORS * error,
            random=True,
        )
    masses = np.full((1, count), 1 / count)
    wanted = AttentionSums(model.drift).attention(0.0, x[None], masses, at=x[None, :FEW])
    found = AttentionModes(model.drift).attention(0.0, x[None], masses)[:, :FEW]
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    report.compare(space, name, "velocity", predicted=0, measured=error, tolerance=1e-10)


if __name__ == "__main__":
    sys.exit(main())

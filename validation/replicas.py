"""Claim: a replica of tokens is what it is alone, to the last bit, with its own steps and end.

Without noise: a run of five replicas, one of two of them, and one of each alone are compared bit
for bit, with betas and random matrices that differ between replicas, under every engine, all
attention weights, causal masks, layers, normalisations and a reaction. So are their counts of
steps, and the times at which they become steady.

With noise: paths of the first replicas, alone and beside others; the mean of <x_t, x_0> without a
drift is exp(-(d - 1) t/kappa); increments of different replicas are uncorrelated.

Matrices: under linear weights with K = c I, c of each replica, two tokens of the circle at the
angle phi follow tan(phi(t)) = tan(phi(0)) e^(-c t).

    python validation/replicas.py [--quick]    # 10 s, 8 s quick

--quick has a third of the time, and fewer replicas of noise. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf
from meanfield import engines, models

R = 5
BETAS = np.array([0.0, 0.5, 1.0, 3.0, 8.0])
rng = np.random.default_rng(0)


def matrices(*shape):
    return rng.standard_normal(shape) / np.sqrt(shape[-1])


def own(d, **options):
    """Attention whose matrices and beta differ between replicas."""
    return mf.Attention(K=matrices(R, 1, d, d), V=matrices(R, 1, d, d), beta=BETAS, **options)


def cases():
    """Name, model, tokens and options of the runs that are compared bit for bit."""
    small = mf.Tokens.uniform(12, 3, rng=1, shape=(R,))
    for name, n, d, engine, drift in (
        ("all pairs", 12, 3, engines.Direct(), mf.SA(BETAS)),
        ("all pairs, n = 1100", 1100, 5, engines.Direct(), mf.SA(3.0)),
        ("Gram matrices", 70, 10, engines.Direct(), mf.USA(BETAS)),
        ("modes of the circle", 300, 2, engines.Modes(), mf.SA(BETAS)),
        ("modes of S^2", 300, 3, engines.Modes(), mf.SA(2.0)),
        ("attention, all pairs", 40, 6, engines.Direct(), own(6)),
        ("attention, modes", 300, 2, engines.Modes(), own(2)),
        ("chosen", 300, 2, None, mf.SA(BETAS) - 0.5 * mf.Kuramoto()),
    ):
        tokens = mf.Tokens.uniform(n, d, rng=1, shape=(R,))
        yield name, mf.Transformer(drift), tokens, {"engine": engine}
    kinds = models.Softmax, models.Unnormalised, models.L2, models.Sinkhorn, models.Linear
    for weights in (*(kind() for kind in kinds), models.Sigmoid(-1.0)):
        yield repr(weights), mf.Transformer(own(3, weights=weights)), small, {}
    yield "causal", mf.Transformer(own(3, causal=True)), small, {}
    heads = mf.Attention(*(matrices(R, 2, 2, 3) for _ in range(3)), output=matrices(R, 2, 3, 2))
    yield "heads", mf.Transformer(heads), small, {}
    layers = mf.Attention(K=mf.PerLayer(matrices(6, R, 1, 3, 3), 0.3))
    yield "layers", mf.Transformer(layers), small, {}
    for normalisation in (mf.PreLN(), mf.MixLN(0.5), mf.PeriLN(), mf.NGPT(), mf.SqrtScaling()):
        model = mf.Transformer(mf.SA(BETAS), normalisation=normalisation)
        yield repr(normalisation), model, small, {}
    yield "reaction", mf.Transformer(mf.USA(BETAS), reaction=0.5), small, {}
    steady = mf.Transformer(mf.SA([0.5, 1.0, 1.5, 2.0, 2.5]))
    yield "until steady", steady, small, {"until": "steady", "steady_tolerance": 1e-6}


def alone_and_in_company(report: Report, end: float) -> None:
    for name, model, tokens, options in cases():
        span = 0, 60.0 if "until" in options else end
        options |= {"t_eval": np.linspace(*span, 5)[1:]}
        run = successful(mf.solve(model, tokens, span, **options))
        some = np.array([3, 1])
        others = [(some, mf.solve(model.member(some), tokens[some], span, **options))]
        others += [(r, mf.solve(model.member(r), tokens[r], span, **options)) for r in range(R)]
        differ = 0
        for members, other in others:
            pairs = zip(run, other, strict=False)
            differ += sum(np.count_nonzero(a.x[members] != b.x) for a, b in pairs)
            differ += np.count_nonzero(run.final.x[members] != other.final.x)
            differ += np.count_nonzero(run.stats["steps"][members] != other.stats["steps"])
            differ += np.max(run.stats["t_end"][members]) != other.t[-1]
        report.compare("alone", name, predicted=0, measured=differ, tolerance=0)


def noise(report: Report, replicas: int) -> None:
    tokens = mf.Tokens.uniform(9, 3, rng=1, shape=(44,))
    for name, common in (("independent", None), ("and common", mf.CommonTranslations(4.0))):
        kappa = np.linspace(1, 5, 44)
        model = mf.Transformer(mf.SA(2.0), kappa, common=common)
        options = {"dt": 0.05, "rng": 2, "t_eval": [0.5]}
        few = mf.solve(model.member(slice(4)), tokens[:4], (0, 0.5), **options).final
        many = mf.solve(model, tokens, (0, 0.5), **options).final[:4]
        report.compare(
            "noise",
            f"paths, {name}",
            predicted=0,
            measured=np.count_nonzero(few.x != many.x),
            tolerance=0,
        )
    n, d, kappa, t = 20, 3, 2.0, 0.4
    tokens = mf.Tokens.uniform(n, d, rng=3, shape=(replicas,))
    still = mf.Transformer(0.0 * mf.Kuramoto(), kappa)
    options = {"dt": t / 4, "rng": 4, "t_eval": [t]}
    cosines = (mf.solve(still, tokens, (0, t), **options).final.x * tokens.x).sum(axis=-1).ravel()
    error = cosines.std() / np.sqrt(cosines.size)
    predicted = np.exp(-(d - 1) * t / kappa)
    report.compare(
        "noise",
        "mean of <x_t, x_0>",
        predicted=predicted,
        measured=cosines.mean(),
        tolerance=4.5 * error,
        random=True,
    )
    same = mf.Tokens(np.broadcast_to(tokens.x[0], tokens.x.shape))
    moves = mf.solve(still, same, (0, t), **options).final.x - same.x
    moves -= moves.mean(axis=0)
    products = (moves[::2] * moves[1::2]).sum(axis=-1).ravel()
    error = products.std() / np.sqrt(products.size)
    report.compare(
        "noise",
        "moves of two replicas",
        predicted=0.0,
        measured=products.mean(),
        tolerance=4.5 * error,
        random=True,
    )


def pairs(report: Report) -> None:
    c, t, angle = np.linspace(-3, 3, 200), 1.0, 0.7
    drift = mf.Attention(K=c[:, None, None, None] * np.eye(2), weights=models.Linear())
    two = mf.Tokens.on_circle([0.0, angle])
    run = successful(mf.solve(mf.Transformer(drift), two, (0, t), t_eval=[t], rtol=1e-11))
    x, y = run.final.x[:, 0], run.final.x[:, 1]
    measured = np.arctan2(x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0], (x * y).sum(axis=1))
    error = np.abs(measured - np.arctan(np.tan(angle) * np.exp(-c * t))).max()
    report.compare("matrices", "angles of pairs", predicted=0, measured=error, tolerance=1e-9)


def main() -> int:
    quick = command_line(__doc__, "less time, fewer replicas").quick
    report = Report(["what", "case"])
    alone_and_in_company(report, 0.5 if quick else 1.5)
    noise(report, 200 if quick else 4000)
    pairs(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())

"""Claim: `networks.Advice` predicts where random networks collapse, and critical contexts.

1. 24 networks with random weights, of as many kinds: n = 64 to 192 tokens, d = 512 and
   768, 1 to 16 heads, Post-, Pre- and Peri-LN, logits of 0.5 to 3, some with a multiple of the
   identity in O V, some with a feed-forward map, and four of the BERT family with all weights of
   one standard deviation, replayed. Predicted is the layer, between two layers by linear
   interpolation of log(1 - rho), at which the mean cosine crosses a threshold. Single networks
   differ by the random lengths of outputs, by 7 %: measured is the mean over four draws of each,
   and asked are 10 % of each of the 24, and of all a mean error within 4.5 standard errors. How
   many single draws are within 10 % is printed. --quick: four networks of d = 256, six draws.
2. Critical beta, at which the mean of sum_j w_ij^2 over tokens is 1/4, found by root finding on
   arrays: equiangular tokens, rho = 0.2, 0.5, 0.8, n = 64 to 2048, are at log n/(1 - rho); their
   growth with log n is 1/(1 - rho). A query among n independent uniform keys, d = 3, 5, n = 1024
   and 16384, is at the law for this n, and between the two n its exponent is 2/(d - 1). Tokens
   under a random Q^T K, d = 512, n = 256, 1024, are at the law of Gaussian logits, with mean
   cosines 0 and 0.5. Asked: 2 %; standard errors are printed. --quick: d = 3, n = 256 and 4096, a
   quarter of the queries; random Q^T K with n = 256.

    python validation/advice_on_networks.py [--quick]    # 150 s, 10 s quick

Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line
from scipy.optimize import newton

import meanfield as mf
from meanfield.models.activations import ACTIVATIONS
from meanfield.networks import Advice
from meanfield.networks.advice import crossing

POST, PRE, PERI = mf.PostLN(), mf.PreLN(), mf.PeriLN()
NETWORKS = [  # n, d, depth, heads, normalisation, other arguments
    (128, 768, 12, 1, POST, {}),
    (64, 768, 12, 12, POST, {"logits": 2.0}),
    (192, 512, 12, 8, POST, {"rho": 0.2}),
    (128, 512, 10, 8, POST, {"rho": 0.3, "logits": 0.5}),
    (96, 512, 10, 4, POST, {"identity": 0.5}),
    (128, 512, 10, 16, POST, {"feed_forward": 0.5, "rho": 0.2}),
    (96, 512, 14, 8, POST, {"logits": 3.0, "rho": 0.2}),
    (128, 512, 14, 8, PRE, {"rho": 0.3}),
    (64, 768, 14, 12, PRE, {"rho": 0.3, "logits": 0.5, "threshold": 0.8}),
    (128, 768, 12, 4, PRE, {"threshold": 0.7}),
    (96, 512, 12, 4, PRE, {"identity": 0.5}),
    (128, 512, 14, 8, PRE, {"rho": 0.3, "values": 2.0, "radius": 3.0, "threshold": 0.7}),
    (128, 512, 12, 8, PRE, {"rho": 0.3, "feed_forward": 0.5, "threshold": 0.8}),
    (192, 512, 12, 2, PRE, {"rho": 0.4, "logits": 2.0, "threshold": 0.8}),
    (128, 768, 12, 1, PERI, {"threshold": 0.8}),
    (64, 768, 12, 12, PERI, {"rho": 0.3}),
    (96, 512, 12, 4, PERI, {"identity": 0.5}),
    (128, 512, 12, 8, PERI, {"rho": 0.3, "feed_forward": 0.5, "threshold": 0.8}),
    (192, 512, 12, 8, PERI, {"logits": 0.5, "threshold": 0.85}),
    (128, 512, 14, 4, PERI, {"rho": 0.3, "logits": 2.0, "threshold": 0.8, "radius": 0.5}),
]  # fmt: skip
WEIGHTS = 0.035, 0.04, 0.05, 0.07  # standard deviations in networks of the BERT family
TOKENS, HEADS, DEPTH = 96, 8, 12
SMALL = [  # of --quick: a sixth of the weights, half as many draws again
    (96, 256, 10, 8, POST, {"rho": 0.3, "logits": 0.5}),
    (96, 256, 12, 4, PRE, {"identity": 0.5}),
    (64, 256, 12, 4, PERI, {"rho": 0.3}),
]
QUERIES = 40000
CONFIG = {
    "model_type": "bert", "vocab_size": 400, "num_hidden_layers": DEPTH,
    "num_attention_heads": HEADS, "max_position_embeddings": 128,
    "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
}  # fmt: skip


def replayed(s: float, width: int, draws: int, seed: int) -> tuple[np.ndarray, float]:
    """The collapse of BERTs with weights of standard deviation s, and what `Advice` says."""
    rng, found, begun = np.random.default_rng(seed), [], []
    sizes = {"hidden_size": width, "intermediate_size": 4 * width}
    shapes = mf.networks.untrained(CONFIG | sizes, rng)
    for _ in range(draws):
        net = shapes.replaced(lambda w: rng.normal(0, s, w.shape) if w.ndim > 1 else np.round(w))
        h = net.trace(rng.permutation(400)[:TOKENS].tolist()).hidden[0]
        x = h / np.linalg.norm(h, axis=-1, keepdims=True)
        cosines = ((x.sum(axis=1) ** 2).sum(axis=1) - TOKENS) / (TOKENS * (TOKENS - 1))
        found.append(crossing(1 - cosines, 0.9))
        begun.append(cosines[0])
    inner, (a, mass) = s * np.sqrt(width), np.polynomial.hermite_e.hermegauss(80)
    square = mass @ ACTIVATIONS["gelu"](inner * a) ** 2 / mass.sum()
    advice = Advice(
        TOKENS, width, DEPTH, HEADS, POST, logits=s**2 * width, values=s**2 * width,
        feed_forward=s * np.sqrt(4 * width * square), inner=inner, rho=np.mean(begun),
        threshold=0.9,
    )  # fmt: skip
    return np.array(found), advice.collapse


def collapses(report: Report, quick: bool) -> None:
    """Part 1."""
    found: dict[str, tuple[np.ndarray, float]] = {}
    networks, width, draws = (SMALL, 256, 6) if quick else (NETWORKS, 512, 4)
    for k, (n, d, depth, heads, normalisation, given) in enumerate(networks):
        advice = Advice(n, d, depth, heads, normalisation, **given)
        label = f"{advice.name}, n = {n}, d = {d}, {heads} heads {given or ''}"
        found[label] = advice.measure(networks=draws, rng=k).collapse, advice.collapse
    for k, weight in enumerate((0.1,) if quick else WEIGHTS):
        found[f"BERT, weights of {weight}"] = replayed(weight, width, draws, 100 + k)
    for label, (measured, predicted) in found.items():
        report.compare("collapse layer", label, predicted=predicted, measured=measured.mean(),
                       tolerance=0.1, relative=True)  # fmt: skip
    off = np.array([measured / predicted - 1 for measured, predicted in found.values()])
    print(f"single draws: {(abs(off) < 0.1).sum()} of {off.size} within 10 %, all within "
          f"{abs(off).max():.3f}, standard deviation {off.std():.3f}")  # fmt: skip
    error = off.mean(axis=1).std(ddof=1) / np.sqrt(len(off))
    report.compare("collapse layer", "mean relative error", predicted=0.0, measured=off.mean(),
                   tolerance=4.5 * error, random=True)  # fmt: skip


def root(squares, near: float) -> float:
    """Where the mean of squares, which grows, is 1/4: the secant method, relative to `near`."""
    return near * newton(lambda part: squares(near * part) - 0.25, 1.0, x1=1.02, tol=1e-6)


def equiangular(report: Report) -> None:
    """Part 2, arrays of equiangular tokens: |A|^2 = rho + (1 - rho) sum_j w_j^2."""
    for rho in (0.2, 0.5, 0.8):
        found = {}
        for n in (64, 256, 2048):
            tokens = mf.Equiangular(n, rho).to_tokens() if n < 2048 else mf.Equiangular(n, rho)

            def squares(beta: float) -> float:
                output = mf.attend(mf.SA(beta), tokens)  # noqa: B023
                lengths = np.mean(output.radii if n < 2048 else output.radius)  # noqa: B023
                return (lengths**2 - rho) / (1 - rho)  # noqa: B023

            law = np.log(n) / (1 - rho)
            found[n] = root(squares, law)
            report.compare("equiangular", f"rho = {rho}, n = {n}", predicted=law,
                           measured=found[n], tolerance=0.02, relative=True)  # fmt: skip
            exact = float(
                Advice(n, 512, 1, rho=rho).critical.predicted.sel(arrangement="equiangular")
            )
            report.compare("equiangular, this n", f"rho = {rho}, n = {n}", predicted=exact,
                           measured=found[n], tolerance=1e-5, relative=True)  # fmt: skip
        growth = (found[2048] - found[64]) / np.log(2048 / 64)
        report.compare("growth with log n", f"rho = {rho}", predicted=1 / (1 - rho),
                       measured=growth, tolerance=0.02, relative=True)  # fmt: skip


def soft(beta: float, products: np.ndarray) -> float:
    """The mean over rows of sum_j w_j^2, logits beta * products."""
    w = products - products.max(axis=1, keepdims=True)
    w *= np.float32(beta)
    np.exp(w, out=w)
    return float((np.einsum("ij,ij->i", w, w) / w.sum(axis=1) ** 2).mean())


def beta_of(products: list[np.ndarray], near: float) -> tuple[float, float]:
    """The critical beta of logits beta * products, sets of rows, and its standard error."""
    found = root(lambda beta: np.mean([soft(beta, one) for one in products]), near)
    means, after = ([soft(part * found, one) for one in products] for part in (1, 1.02))
    slope = (np.mean(after) - np.mean(means)) / np.log(1.02)  # by log beta
    return found, float(np.std(means, ddof=1) / np.sqrt(len(means)) / slope)


def keys(report: Report, quick: bool) -> None:
    """Part 2, queries among independent uniform keys."""
    from meanfield.networks.contexts import critical_uniform_keys

    for d in (3,) if quick else (3, 5):
        found = {}
        for n in (256, 4096) if quick else (1024, 16384):
            rng = np.random.default_rng(n + d)
            rows = max(50, min(n // 16, 400))
            queries = QUERIES // 4 if quick or n > 8000 else QUERIES
            sets = max(8, queries // rows)
            products = []
            for _ in range(sets):
                x = mf.Tokens.uniform(n + rows, d, rng=rng).x
                products.append((x[n:] @ x[:n].T).astype(np.float32))
            law = critical_uniform_keys(n, d)
            found[n], error = beta_of(products, law)
            print(f"uniform keys, d = {d}, n = {n}: standard error {100 * error:.2f} %")
            report.compare("uniform keys, this n", f"d = {d}, n = {n}", predicted=law,
                           measured=found[n], tolerance=0.02 * law)  # fmt: skip
        (a, low), (b, high) = found.items()
        exponent = np.log(high / low) / np.log(b / a)
        report.compare("exponent of n", f"d = {d}", predicted=2 / (d - 1), measured=exponent,
                       tolerance=0.02, relative=True)  # fmt: skip


def weights(report: Report, quick: bool) -> None:
    """Part 2, tokens under random Q^T K."""
    d = 512
    for rho in (0.0, 0.5):
        for n in (256,) if quick else (256, 1024):
            rng, products = np.random.default_rng(n), []
            advice = Advice(n, d, 1, rho=rho)
            for _ in range(48 if n < 1000 else 16):
                x = advice.tokens(rng).x
                M = mf.ensembles.ginibre(d, rng)
                products.append((x @ M @ x.T).astype(np.float32))
            law = float(advice.critical.predicted.sel(arrangement="random weights"))
            found, error = beta_of(products, law)
            print(f"random weights, rho = {rho}, n = {n}: standard error {100 * error:.2f} %")
            report.compare("random weights", f"rho = {rho}, n = {n}", predicted=law,
                           measured=found, tolerance=0.02 * law)  # fmt: skip


def main() -> int:
    """Both parts."""
    quick = command_line(__doc__).quick
    report = Report(("what", "case"), digits=5)
    equiangular(report)
    keys(report, quick)
    weights(report, quick)
    collapses(report, quick)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())

"""Claim: n tokens under sigmoid and Sinkhorn attention approach their density like n^(-1/2).

On the circle, with random Q, K, V of one head; means over replicas.

1. Sigmoid weights with noise, kappa = 2, t = 1, n = 64, 256, 1024: W_1, W_2 and H^-1.
2. Sinkhorn weights without noise, t = 0.5, n = 16, 64, 256: the same. All pairs of tokens are
   scaled to marginals of one at every step, of which few can be afforded.
3. Coupled tokens, which start alike and move in the velocity of the density: the same rate.

Asked of exponents: 4.5 standard errors of the fit, at most 0.12 for distances and 0.2 for coupled
tokens, whose replicas differ by more.

    python validation/chaos_of_sigmoid_and_sinkhorn.py [--quick]     # 79 s, 6 s quick

--quick has sigmoid weights alone and fewer tokens and replicas. Exit code 1 on failure.

References: Castin, Ablin, Carrillo and Peyre (2025); Sznitman (1991).
"""

import sys

from _chaos_report import Sampled
from _report import command_line
from chaos_under_attention import matrices

import meanfield as mf

DISTANCES = {"W1": 0.12, "W2": 0.12, "H^-1": 0.12, "coupling": 0.2}  # and the most that is allowed


def check(report: Sampled, name: str, found: mf.Study) -> None:
    for what, most in DISTANCES.items():
        rate = found.rate(what)
        error = (rate.interval[1] - rate.interval[0]) / (2 * 1.96)
        report.rate(name, what, rate, -0.5, tolerance=min(4.5 * error, most))


def main() -> int:
    quick = command_line(__doc__, "sigmoid weights, fewer tokens").quick
    report = Sampled(0.03)
    mu0 = mf.Circle(24).von_mises(0.5, 1.0)
    sigmoid = mf.Attention(**matrices(5, 2, 1), beta=1.5, weights=mf.Sigmoid())
    sizes, replicas = ([32, 128, 512], 48) if quick else ([64, 256, 1024], 96)
    found = mf.propagation_of_chaos(
        mf.Transformer(sigmoid, 2.0), mu0, sizes, [1.0], replicas, rng=1, dt=0.1
    )
    check(report, "sigmoid", found)
    if not quick:
        sinkhorn = mf.Attention(**matrices(7, 2, 1), beta=1.5, weights=mf.Sinkhorn())
        model = mf.Transformer(sinkhorn)
        found = mf.propagation_of_chaos(model, mu0, [16, 64, 256], [0.5], 32, rng=2)
        check(report, "Sinkhorn", found)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())

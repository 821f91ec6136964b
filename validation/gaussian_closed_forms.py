"""Claim: covariances under attention have the predicted closed forms, blow-up times and ranks.

1. Where V commutes with S_0 and M = V A + A^T V^T, softmax attention has

       S(t) = (S_0^(-1) - t M)^(-1),

   which blows up at t = 1 / the largest eigenvalue of L^T M L, L L^T = S_0. V = 1 in d = 1, 2, 3
   and 5; V that turns a plane in d = 3.
2. For V = 1 and A <= 0 the rank of the limit is d - rank A, of the closed form and of the law at
   t = 1e9, if A has a kernel.
3. If A commutes with S_0 and V = 1, a(t) = e^t S(t)^(1/2) S_0^(-1/2) a_0.
4. Linear attention, V = 1: second moments P = S + a a^T are (P_0^(-1) - 2 t A)^(-1).

    python validation/gaussian_closed_forms.py [--quick]    # 5 s
"""

import sys

import numpy as np
from _gaussian_laws import COV, MEAN, apart, final
from _report import Report, command_line

import meanfield as mf


def random_law(rng, d: int) -> mf.Gaussian:
    """A covariance G G^T / d."""
    G = rng.standard_normal((d, d))
    return mf.Gaussian(np.zeros(d), G @ G.T / d + 0.1 * np.eye(d))


def check_closed_form(report: Report, rng) -> None:
    """Covariances, times of blow-up at the default rtol, ranks of limits, one mean."""
    for d in (1, 2, 3, 5):
        G, worst, late = rng.standard_normal((d, d)), 0.0, 0.0
        for A in (-G @ G.T / d, (G + G.T) / np.sqrt(2), G @ G.T / d):
            law, model = random_law(rng, d), mf.Transformer(mf.Attention(A))
            closed = mf.ClosedCovariance(model, law)
            end = 0.9 * closed.blow_up_time if np.isfinite(closed.blow_up_time) else 5.0
            cov = final(model.drift, end, law.mean, law.cov).cov
            error = np.abs(cov - closed.at(end)).max() / np.abs(cov).max()
            worst = max(worst, error)
            if np.isfinite(closed.blow_up_time):
                run = mf.solve(model, law, (0, 10 * closed.blow_up_time))
                assert run.status == "blow-up", run
                late = max(late, abs(run.stats["blow_up_time"] / closed.blow_up_time - 1))
        report.compare("closed form", f"d = {d}", predicted=0, measured=worst, tolerance=1e-9)
        report.compare("blow-up time", f"d = {d}", predicted=0, measured=late, tolerance=1e-8)
    law = mf.Gaussian([0.4, -1.0], np.diag([0.7, 1.6]))
    cov = np.diag(1 / (1 / np.diag(law.cov) + 2 * 1.5 * np.array([1.0, 0.4])))
    mean = np.exp(1.5) * np.sqrt(np.diag(cov) / np.diag(law.cov)) * law.mean
    error = apart(final(mf.Attention(-np.diag([1.0, 0.4])), 1.5, law.mean, law.cov), mean, cov)
    report.compare(
        "closed form", "mean, A and S commute", predicted=0, measured=error, tolerance=1e-9
    )


def check_ranks(report: Report, rng) -> None:
    """`Gaussian.rank` of limits, and of laws close to them."""
    for d in (2, 3, 5):
        for rank in range(d):
            law, G = (
                random_law(rng, d),
                rng.standard_normal((rank, d)) if rank else np.zeros((1, d)),
            )
            clustering = mf.Attention(-G, G)
            closed = mf.ClosedCovariance(mf.Transformer(clustering), law).limit
            for name, end in (("limit", mf.Gaussian(law.mean, closed)), ("t = 1e9", None)):
                end = end or final(clustering, 1e9, law.mean, law.cov)
                found = end.rank()
                label = f"d = {d}, rank A = {rank}, {name}"
                report.compare("rank", label, predicted=d - rank, measured=found, tolerance=0)


def check_where_v_commutes(report: Report) -> None:
    """V a rotation by turns of the plane and a number on the line, S_0 and M multiples of 1."""
    U = np.linalg.qr(np.random.default_rng(4).standard_normal((3, 3)))[0]
    J = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    flat, line = np.diag([1.0, 1.0, 0.0]), np.diag([0.0, 0.0, 1.0])
    turning = 0.6 * flat + 0.9 * J + 1.4 * line
    for slope in (-0.7, 0.5):
        A = turning.T @ (slope * flat + 0.3 * J) + 0.2 * line
        cov, M = 0.8 * flat + 1.5 * line, turning @ A + A.T @ turning.T
        end = min(3.0, 0.8 / np.diag(cov @ M).max())
        expected = U @ np.linalg.inv(np.linalg.inv(cov) - end * M) @ U.T
        drift, start = mf.Attention(U @ A @ U.T, None, U @ turning @ U.T), U @ cov @ U.T
        law = mf.Gaussian(np.zeros(3), (start + start.T) / 2)
        closed = mf.ClosedCovariance(mf.Transformer(drift), law)
        for name, found in (
            ("solved", final(drift, end, law.mean, law.cov).cov),
            ("closed", closed.at(end)),
        ):
            error = np.abs(found - expected).max() / np.abs(expected).max()
            label = f"V turns, slope {slope}, {name}"
            report.compare("closed form", label, predicted=0, measured=error, tolerance=1e-9)
        run = mf.solve(mf.Transformer(drift), law, (0, 100))
        late = run.stats["blow_up_time"] * np.diag(cov @ M).max() - 1
        label = f"V turns, slope {slope}"
        report.compare("blow-up time", label, predicted=0, measured=late, tolerance=1e-8)


def check_linear(report: Report) -> None:
    """Second moments under linear attention, and their blow-up."""
    P = COV + np.outer(MEAN, MEAN)
    for name, sign in {"A < 0": -1, "A > 0": 1}.items():
        A = sign * np.array([[1.0, 0.2], [0.2, 0.5]])
        T = 1 / max(np.linalg.eigvals(2 * P @ A).real.max(), 0.2)
        drift = mf.Attention(A, weights=mf.Linear())
        law = final(drift, 0.8 * T)
        found = law.cov + np.outer(law.mean, law.mean)
        expected = np.linalg.inv(np.linalg.inv(P) - 1.6 * T * A)
        error = np.abs(found - expected).max() / np.abs(expected).max()
        report.compare("linear", name, predicted=0, measured=error, tolerance=1e-9)
    run = mf.solve(mf.Transformer(drift), mf.Gaussian(MEAN, COV), (0, 10))
    late = run.stats["blow_up_time"] / T - 1
    report.compare("blow-up time", "linear", predicted=0, measured=late, tolerance=1e-8)


def main() -> int:
    command_line(__doc__, "the same: it is quick")
    report, rng = Report(["what", "case"]), np.random.default_rng(12)
    check_closed_form(report, rng)
    check_ranks(report, rng)
    check_where_v_commutes(report)
    check_linear(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())

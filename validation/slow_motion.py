"""Claim: clusters are metastable since the energy has steep sides and a nearly flat ridge there.

Tokens on the circle under USA in the clock of weights e^{beta (<x, y> - 1)}, so that
v = grad E', E' the first variation of E = (1/2 beta) sum_ij m_i m_j e^{beta (cos - 1)}. Three
clusters of masses M_k = 0.2, 0.3, 0.5 at the angles 0, 1.5 and 3.2, of 4 tokens each; E_* is the
energy with every cluster drawn together in its centre of mass.

1. On the ridge, clusters tight, the gradient |v| in L2 is delta ~ e^{-c beta}: c = 1 - cos of the
   closest gap. -d log delta/d beta from beta = 40 to 80: 1e-5.
2. Beside it, tokens displaced by s/sqrt(beta) at random, the inequality of Polyak and Lojasiewicz
   |v|^2 >= 2 lambda (E_* - E) holds with lambda -> min_k M_k as s -> 0, the best constant: the
   least quotient over 2000 random displacements and one of the lightest cluster alone is 0.2
   to 1e-3 for s = 0.01, and what is missing is quadratic in s: 4 times for 2 s, to 1 per cent.
   beta = 40.
3. `solve`: E_* - E falls like e^{-2 lambda t}, at the rate 0.4, to 1e-3.
4. The clusters then rest: their centres move by less than 0.3/beta up to the time 0.1/(beta delta),
   and the first merger, at T_2, has beta delta T_2 between 0.3 and 3 for beta = 20, 40, 80: slow
   motion lasts as long as Otto and Reznikoff's argument gives.

    python validation/slow_motion.py    # 1 s

Exit code 1 on failure.

References: the survey, section 5.1; Geshkovski, Koubbi, Polyanskiy and Rigollet,
arXiv:2410.06833; Otto and Reznikoff, J. Differential Equations 237 (2007).
"""

import sys

import numpy as np
from _report import Report, successful

import meanfield as mf

ANGLES, MASSES, EACH = np.array([0.0, 1.5, 3.2]), np.array([0.2, 0.3, 0.5]), 4
LEAST = MASSES.min()


def tokens(displaced: np.ndarray | float = 0.0) -> mf.Tokens:
    """The clusters, their tokens displaced by angles (12,)."""
    return mf.Tokens.on_circle(np.repeat(ANGLES, EACH) + displaced, np.repeat(MASSES / EACH, EACH))


def model(beta: float) -> mf.Transformer:
    return mf.Transformer(np.exp(-beta) * mf.USA(beta))


def energy_and_square(beta: float, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E and |v|^2 in L2 of tokens at angles (..., 12), by sums over pairs."""
    masses = np.repeat(MASSES / EACH, EACH)
    gaps = theta[..., None, :] - theta[..., :, None]
    weights = masses * np.exp(-2 * beta * np.sin(gaps / 2) ** 2)
    v = (weights * np.sin(gaps)).sum(axis=-1)
    return (weights.sum(axis=-1) @ masses) / (2 * beta), (v * v) @ masses


def delta(beta: float) -> float:
    """|v| of tight clusters."""
    return float(np.sqrt(energy_and_square(beta, np.repeat(ANGLES, EACH))[1]))


def centred(displaced: np.ndarray) -> np.ndarray:
    """Displacements (..., 12) that keep the centre of every cluster."""
    groups = displaced.reshape(*displaced.shape[:-1], len(ANGLES), EACH)
    return (groups - groups.mean(axis=-1, keepdims=True)).reshape(displaced.shape)


def quotients(beta: float, displaced: np.ndarray) -> np.ndarray:
    """|v|^2/(2 (E_* - E))."""
    base = np.repeat(ANGLES, EACH)
    top = energy_and_square(beta, base)[0]
    energy, square = energy_and_square(beta, base + displaced)
    return square / (2 * (top - energy))


def check_ridge(report: Report) -> None:
    first, last = delta(40.0), delta(80.0)
    report.compare("-d log delta/d beta", "beta = 40 to 80", predicted=1 - np.cos(1.5),
                   measured=np.log(first / last) / 40, tolerance=1e-5)  # fmt: skip
    speed = float(mf.measure(model(20.0), tokens())["speed"])
    report.compare("|v| as `measure` has it", "beta = 20", predicted=delta(20.0), measured=speed,
                   tolerance=1e-9, relative=True)  # fmt: skip


def check_inequality(report: Report) -> None:
    beta, rng = 40.0, np.random.default_rng(1)
    drawn = rng.standard_normal((2000, 12))
    alone = np.append(rng.standard_normal(EACH), np.zeros(12 - EACH))  # of the lightest cluster
    shape = centred(np.vstack([drawn, alone])) / np.sqrt(beta)
    once, twice, wide = (quotients(beta, s * shape).min() for s in (0.01, 0.02, 0.3))
    report.compare("lambda", "s = 0.01", predicted=LEAST, measured=once, tolerance=1e-3,
                   relative=True)  # fmt: skip
    report.compare("what is missing, s = 0.02 to 0.01", "", predicted=4,
                   measured=(LEAST - twice) / (LEAST - once), tolerance=0.04)  # fmt: skip
    print(f"s = 0.01, 0.02, 0.3: lambda = {once:.5f}, {twice:.5f}, {wide:.3f}")


def check_decay(report: Report) -> None:
    beta, rng = 40.0, np.random.default_rng(2)
    start = tokens(centred(rng.standard_normal(12)) * 0.2 / np.sqrt(beta))
    times = np.array([0.0, 40.0, 50.0])
    run = successful(mf.solve(model(beta), start, (0, 50), t_eval=times, rtol=1e-12))
    top = energy_and_square(beta, np.repeat(ANGLES, EACH))[0]
    theta = [np.unwrap(np.arctan2(state.x[:, 1], state.x[:, 0])) for state in run]
    left = [top - energy_and_square(beta, angles)[0] for angles in theta]
    report.compare("rate of E_* - E", "t = 40 to 50", predicted=2 * LEAST,
                   measured=np.log(left[1] / left[2]) / 10, tolerance=1e-3,
                   relative=True)  # fmt: skip


def check_slow_motion(report: Report) -> None:
    for beta in (20.0, 40.0, 80.0):
        size = delta(beta)
        start = tokens()
        end = 0.1 / (beta * size)
        run = successful(mf.solve(model(beta), start, (0, end), t_eval=[end], merge=1e-8))
        moved = np.abs(np.arccos(np.clip((run.final.x * start.x).sum(axis=1), -1, 1))).max()
        report.compare("centres rest until 0.1/(beta delta)", f"{beta=:g}", predicted=1,
                       measured=int(moved < 0.3 / beta), tolerance=0)  # fmt: skip
        run = mf.solve(model(beta), start, (0, 1e3 / size), t_eval=[1e3 / size], merge=1e-8)
        second = next(t for t, rows in successful(run).stats["merges"] if rows == 2)
        scaled = beta * size * second
        report.compare("beta delta T_2 in 0.3 to 3", f"{beta=:g}", predicted=1,
                       measured=int(0.3 < scaled < 3), tolerance=0)  # fmt: skip
        print(f"beta = {beta:g}: delta = {size:.3g}, T_2 = {second:.4g}, product {scaled:.3f}")


def main() -> int:
    report = Report(["claim", "case"])
    check_ridge(report)
    check_inequality(report)
    check_decay(report)
    check_slow_motion(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())

"""Claim: a harmonic on top of the uniform state grows or decays at the known rate.

On the circle a perturbation of degree k changes like exp(s_k t) as long as it is small, with

    USA  s_k = k^2 (I_k(beta)/beta - 1/kappa),
    SA   s_k = k^2 (I_k(beta)/(beta I_0(beta)) - 1/kappa),

and s_k = k^2 (1/2 [k = 1] - 1/kappa) for both at beta = 0. Measured for k = 1, ..., 6 and
beta = 0, 1, 5, 20, without noise and with kappa = 4/3 of the threshold of degree 1, where some
degrees grow and others decay: log |c_k(t)/c_k(0)| / t from c_k(0) = 1e-6, at the time t when
|s_k| t = 1 or, for slow degrees, 10 growth times of the fastest one, which rounding excites.
The next term of the expansion is a relative 1e-12; rounding and the 400 steps stay below 1e-7.

Asked: relative error <= 1e-6 (absolute where the rate is zero).

    python validation/growth_of_the_uniform_state.py    # 3 s; exit code 1 on failure

References: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, section 7, for the
velocity in Fourier modes; the rates follow by linearisation.
"""

import sys

import numpy as np
from _report import Report, successful
from scipy.special import iv

import meanfield as mf

AMPLITUDE = 1e-6
DRIFTS = {"USA": mf.USA, "SA": mf.SA}


def attraction(name: str, beta: float, k: int) -> float:
    """I_k/beta (USA) or I_k/(beta I_0) (SA), and their limit at beta = 0."""
    if beta == 0:
        return 0.5 if k == 1 else 0.0
    return iv(k, beta) / beta / (iv(0, beta) if name == "SA" else 1)


def measured_rate(model: mf.Transformer, k: int, rates: np.ndarray) -> float:
    """Rate of degree k in a run of 400 equal steps, given all the predicted rates."""
    slowest = max(abs(rates[k - 1]), 0.1 * rates.max())
    end = 1 / slowest if slowest else 1.0
    start = mf.Circle(24).fourier([1] + [0] * (k - 1) + [AMPLITUDE])
    run = successful(mf.solve(model, start, (0, end), t_eval=[end], dt=end / 400))
    return float(np.log(abs(run.final.moment(k)) / AMPLITUDE) / end)


def main() -> int:
    report = Report(["drift", "beta", "kappa", "degree"])
    for name, drift in DRIFTS.items():
        for beta in (0.0, 1.0, 5.0, 20.0):
            for kappa in (np.inf, 4 / 3 / attraction(name, beta, 1)):
                model = mf.Transformer(drift(beta), kappa)
                rates = np.array(
                    [k**2 * (attraction(name, beta, k) - 1 / kappa) for k in range(1, 7)]
                )
                for k in range(1, 7):
                    report.compare(
                        *(name, f"{beta:g}", f"{kappa:.4g}", k),
                        predicted=rates[k - 1],
                        measured=measured_rate(model, k, rates),
                        tolerance=1e-6,
                        relative=True,
                    )
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())

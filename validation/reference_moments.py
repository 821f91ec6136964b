"""Claim: densities agree with an independent solver to nine digits.

Compared are the moments m_k = int cos(k theta) dmu, k = 1, 2, 3, and without noise also the
interaction energy E = (1/2 beta) int int e^{beta <x, y>} dmu dmu, at several times of

    without noise  mu_0 = 1 + 0.5 cos theta + 0.2 cos 2 theta, USA and SA, beta = 1 and 4;
    with noise     mu_0 = 1 + 0.1 cos theta, USA, four pairs (beta, kappa), up to t = 20.

The reference values come from other programs and other methods: characteristics of a
quadrature without noise, Fourier-Galerkin with Radau (tolerance 1e-11) with noise. They are
printed to 12 and 10 decimals.

Asked: absolute error <= 1e-9 at rtol = 1e-10.

    python validation/reference_moments.py    # 3 s; exit code 1 on failure

References: Rigollet, arXiv:2512.01868, equations (2), (3) and (9).
"""

import sys
from collections.abc import Iterator

import numpy as np
from _report import Report, successful

import meanfield as mf

Rows = dict[float, tuple[float, ...]]  # time: (m_1, m_2, m_3) or (m_1, m_2, m_3, E)

WITHOUT_NOISE: list[tuple[type, float, Rows]] = [
    (
        mf.USA,
        1.0,
        {
            0.25: (0.285415739419, 0.135451699055, 0.019900322220, 0.681571452773),
            0.5: (0.324661662144, 0.180193280135, 0.050210256948, 0.697068130476),
            1.0: (0.413114479931, 0.300065476267, 0.153465479571, 0.742250572679),
        },
    ),
    (mf.USA, 4.0, {0.25: (0.429504839197, 0.577876425476, 0.523522484082, 2.775193563320)}),
    (
        mf.SA,
        1.0,
        {
            0.25: (0.276781151744, 0.119903384069, 0.009909397770, 0.678282338715),
            0.5: (0.305792061956, 0.143232320472, 0.023186763249, 0.688677179595),
            1.0: (0.370331501177, 0.201331773257, 0.062822621940, 0.716132948844),
        },
    ),
    (
        mf.SA,
        4.0,
        {
            0.25: (0.263294463412, 0.116130006206, 0.002667910354, 1.603540348309),
            1.0: (0.306752739640, 0.180564341796, 0.018223191281, 1.694971698072),
        },
    ),
]

WITH_NOISE: list[tuple[float, float, Rows]] = [
    (
        1.0,
        3.0,
        {
            1.0: (0.0630207650, 0.0025577156, 0.0000926146),
            5.0: (0.1574319001, 0.0222379220, 0.0025078064),
            20.0: (0.8543067643, 0.5907004651, 0.3456319432),
        },
    ),
    (
        1.0,
        1.5,
        {
            1.0: (0.0451641464, 0.0010244670, 0.0000192360),
            5.0: (0.0300641302, 0.0005318546, 0.0000073020),
            20.0: (0.0065534198, 0.0000252746, 0.0000000756),
        },
    ),
    (
        2.0,
        2.0,
        {
            5.0: (0.2164754417, 0.0602526365, 0.0129497648),
            20.0: (0.9131297116, 0.7398296294, 0.5396615219),
        },
    ),
    (
        5.0,
        0.2,
        {
            1.0: (0.0440635088, 0.0032838320, 0.0001977408),
            20.0: (0.0036258063, 0.0000223343, 0.0000001109),
        },
    ),
]


def cases() -> Iterator[tuple[mf.Transformer, mf.Density, Rows]]:
    """Model, initial density and reference rows of every run."""
    circle = mf.Circle(32)
    two_modes = circle.density(lambda theta: 1 + 0.5 * np.cos(theta) + 0.2 * np.cos(2 * theta))
    one_mode = circle.density(lambda theta: 1 + 0.1 * np.cos(theta))
    for drift, beta, rows in WITHOUT_NOISE:
        yield mf.Transformer(drift(beta)), two_modes, rows
    for beta, kappa, rows in WITH_NOISE:
        yield mf.Transformer(mf.USA(beta), kappa), one_mode, rows


def main() -> int:
    report = Report(["drift", "kappa", "t", "quantity"], digits=12)
    for model, start, rows in cases():
        end = max(rows)
        run = successful(mf.solve(model, start, (0, end), t_eval=list(rows), rtol=1e-10))
        energy = run.observables["interaction_energy"].values
        for i, (t, row) in enumerate(rows.items()):
            measured = [run[i].moment(k).real for k in (1, 2, 3)] + [energy[i]]
            names = ["m_1", "m_2", "m_3", "E"]
            for name, predicted, value in zip(names, row, measured, strict=False):
                labels = (model.drift, f"{model.kappa:g}", f"{t:g}", name)
                report.compare(*labels, predicted=predicted, measured=value, tolerance=1e-9)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())

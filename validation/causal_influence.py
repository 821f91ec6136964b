"""Claim: indexed densities have exact derivatives, and with them the influence of positions.

1. Tangents by beta, kappa and in a direction at one node, USA and SA, "mean", "sum" and a window,
   on the circle, S^2 and Zonal(4), are those of differences of order 4 along the same steps: 1e-8.
   On the circle also Kuramoto's drift, a decay, a sink, classes with a coupling, all see all, a
   beta for each position, attention with matrices, and natural frequencies, by their width.
   Gradients are the transposes: <gradient, h> is the change of J along h to 1e-12, relative.
2. At the uniform state a change c(s) of degree 1 becomes e^{T C} c e^{-t/kappa}, T = w t,
   w = I_1(beta)/(beta I_0(beta)) under SA on the circle: 1e-9.
3. Shares of ten blocks of the sequence in the change of m_1 at s = 1, all blocks pushed by the same
   change sin(theta), are printed for e^{T C} and for runs that start at 1 + a cos(theta) for all s.
   Here kappa = 8.

4. Gradients, too. J = int sin(theta) dmu_1 at s = 1 has the gradient K_t(tau) sin(theta), all
   positions by one run backwards. At the uniform state K_t is the kernel of the continuum,
   e^{-t/kappa} sqrt(T/u) I_1(2 sqrt(T u)), u = log(1/tau): 1e-6, relative, tau in [0.02, 0.8].
5. When influence vanishes. Once all slices have clustered to the ordered state mu, a change
   s^p h(theta) grows at sigma(1/(1 + p)), sigma(c) the largest eigenvalue on odd functions of
   D_1 + c D_2, by how a slice and what acts on it change: h -> -div(h v) + Lap h/kappa and
   h -> -div(mu v_h). sigma(1) = 0, since all may turn together: the sum of all influence is
   constant. Hence int K_t(tau) tau^p dtau ~ e^{sigma(1/(1 + p)) t} for all p: K_t vanishes at
   every position, at last like e^{sigma(0) t}, and comes from u near v t, v = sigma'(1). The
   sigma are those of matrices in numpy; rates from t = 24 to 30, p = 0, 1, 2, a = 0.8: 1e-6.

    python validation/causal_influence.py [--quick]    # 25 s, 3 s quick

--quick has the circle and t <= 4 only, and no runs with a > 0. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.linalg import expm
from scipy.special import i0, i1

import meanfield as mf

STEP = 1e-3
QUIET = {"progress": False}
BETA, KAPPA = 2.0, 8.0


def fixed(degree, dt):
    return {"dt": dt, "min_degree": degree, "max_degree": degree, **QUIET}


SEEN = (
    (mf.SA, {"causal": True}),
    (mf.USA, {"causal": "mean"}),
    (mf.USA, {"causal": "sum"}),
    (mf.SA, {"causal": mf.Causal(window=0.5)}),
)


def differences(report, space, start, name, cases=SEEN, by_beta="beta"):
    """The tangents of a run against differences of order 4, and gradients against tangents.

    `by_beta` is the parameter that the argument of drifts is, and of `seen` where it is a function.
    """
    direction = np.zeros_like(start.each)
    direction[..., 1, 1] = 0.2
    h, options = direction.reshape(start.coefficients.shape), fixed(space.degree, 0.03)
    for drift, seen in cases:

        def run(beta=0.0, kappa=0.0, push=0.0, tangents=(), drift=drift, seen=seen):
            own = seen(1.5 + beta) if callable(seen) else seen
            model = mf.Transformer(drift(1.5 + beta), 4 + kappa, **own)
            mu = mf.Indexed(start.space, start.coefficients + push * h)
            given = {"tangents": list(tangents)} if tangents else {}
            return successful(mf.solve(model, mu, (0, 0.3), t_eval=[0.3], **options, **given))

        names = {"kappa": "kappa", "direction_0": "push"}
        if by_beta != "beta" or hasattr(drift(1.5), "beta"):
            names[by_beta] = "beta"
        whole = run(tangents=[h, *(name for name in names if name != "direction_0")])
        tangents, way = whole.tangents, seen.get("causal", "") if isinstance(seen, dict) else ""
        for key, of in names.items():
            c = [run(**{of: k * STEP}).final.coefficients for k in (-2, -1, 1, 2)]
            by = (c[0] - 8 * c[1] + 8 * c[2] - c[3]) / (12 * STEP)
            error = np.abs(tangents[key][-1].coefficients - by).max()
            label = (name, f"{type(drift(1.5)).__name__} {way}", key)
            report.compare(*label, predicted=0.0, measured=error, tolerance=1e-8)
        found = mf.gradient(
            lambda x: x[:, -1], whole, parameters=[n for n in names if n != "direction_0"]
        )
        along = found.initial.paired(mf.Variation(start.space, h))
        back = {**found.parameters, "direction_0": along}
        forth = {key: tangents[key][-1].expect(lambda x: x[:, -1]) for key in names}
        worst = max(abs(back[key] / forth[key] - 1) for key in names)
        label = name, f"{type(drift(1.5)).__name__} {way}", "gradient"
        report.compare(*label, predicted=0.0, measured=worst, tolerance=1e-12)


def others(report, space, law):
    """Other ways to see, and the drift of Kuramoto."""
    positions, sink = (mf.Positions([0, 0.5, 1], order=5, sink=m) for m in (0.0, 0.2))
    camps = {"coupling": np.array([[1.0, -2.0], [-1.0, 1.0]])}
    decay = {"causal": mf.Causal(decay=lambda u: np.exp(-2 * u))}
    for what, index, drift, seen in (
        ("a decay", positions, mf.SA, decay),
        ("all", positions, mf.SA, {}),
        ("a sink", sink, mf.SA, {"causal": True}),
        ("classes", mf.Classes([0.0, 1.0]), mf.USA, camps),
        ("Kuramoto", positions, lambda beta: mf.Kuramoto(), {"causal": "mean"}),
    ):
        differences(report, space, space.indexed(law, index), what, [(drift, seen)])

    def by_position(beta):
        return {"causal": mf.Causal("mean", beta=lambda s: beta + s)}

    def turning(factor):
        return {"frequency": mf.OfIndex(factor)}

    matrix, normal = np.array([[1.0, 0.3], [-0.2, 0.8]]), mf.NormalIndex(0.7, 6, 0.3)
    start = space.indexed(law, positions)
    differences(report, space, start, "beta(s)", [(lambda _: mf.USA(1.0), by_position)])
    attention = lambda beta: mf.Attention(beta=beta, Q=matrix, V=matrix.T)  # noqa: E731
    differences(report, space, start, "attention", [(attention, {"causal": True})])
    start = space.indexed(lambda s, x: 1 + 0.4 * np.cos(x) + 0 * s, normal)
    oscillators = [(lambda _: 3 * mf.Kuramoto(), turning)]
    differences(report, space, start, "frequencies", oscillators, "frequency.factor")


def pushed(start, block):
    """The change sin(theta) in one of ten blocks."""
    h = np.zeros_like(start.each)
    size = len(start.index) // 10
    h[block * size : (block + 1) * size, 1] = -0.5j
    return h.ravel()


def shares(a, times, degree=40, dt=0.1, order=4):
    """Shares (times, 10) of blocks in the change at s = 1, and its sum, for a start 1 + a cos."""
    index = mf.Positions(np.linspace(0, 1, 11), order=order)
    start = mf.Circle(degree).indexed(lambda s, x: 1 + a * np.cos(x) + 0 * s, index)
    model = mf.Transformer(mf.SA(BETA), KAPPA, causal=True)
    directions = [pushed(start, b) for b in range(10)]
    options = {"t_eval": times, "tangents": directions, **fixed(degree, dt)}
    run = successful(mf.solve(model, start, (0, times[-1]), **options))
    end = np.array(
        [[h.at_position(1.0).coefficients[1] for h in run.tangents[n]] for n in run.tangents]
    )
    total = -2 * end.imag.T
    return total, np.abs(run.final.at_position(1.0).moment(1))


def gradient_at_the_end(a, t, index, degree=32):
    """K_t(tau) at the nodes."""
    start = mf.Circle(degree).indexed(lambda s, x: 1 + a * np.cos(x) + 0 * s, index)
    model = mf.Transformer(mf.SA(BETA), KAPPA, causal=True)
    run = successful(mf.solve(model, start, (0, t), t_eval=[t], **fixed(degree, 0.05)))
    J = mf.Functional.mean(lambda x: x[:, 1], position=1.0)
    return -2 * mf.gradient(J, run, parameters=[]).initial.slices.coefficients[:, 1].imag


def kernel(report, t):
    """K_t at the uniform state."""
    ends = np.concatenate([[0], np.geomspace(1e-3, 0.8, 9), [1]])
    index = mf.Positions(ends, order=12)
    K, inner = gradient_at_the_end(0.0, t, index, 4), (index.nodes > 0.02) & (index.nodes < 0.8)
    T, u = t * i1(BETA) / (BETA * i0(BETA)), -np.log(index.nodes[inner])
    law = np.exp(-t / KAPPA) * np.sqrt(T / u) * i1(2 * np.sqrt(T * u))
    error = np.abs(K[inner] / law - 1).max()
    report.compare(
        "circle", f"K_t of the continuum, t = {t:g}", "gradient", predicted=0.0, measured=error,
        tolerance=1e-6,
    )  # fmt: skip


def rates(count=64):
    """sigma(c) of SA, as a function."""
    x, k = 2 * np.pi * np.arange(count) / count, np.fft.fftfreq(count, 1 / count)
    k[count // 2] = 0
    D = np.fft.ifft(1j * k[:, None] * np.fft.fft(np.eye(count), axis=0), axis=0).real
    Z, mu = np.exp(BETA * np.cos(x[:, None] - x)) / count, 1 + 0.5 * np.cos(x)
    for _ in range(2000):  # mu = (Z mu)^(kappa/beta), of mass 1
        mu = (Z @ mu) ** (KAPPA / BETA)
        mu /= mu.mean()
    level = Z @ mu
    v = D @ level / (BETA * level)
    own = D @ D / KAPPA - D @ np.diag(v)
    acting = -D @ np.diag(mu / level) @ (D @ Z / BETA - np.diag(v) @ Z)
    odd = np.sqrt(2 / count) * np.sin(np.outer(x, np.arange(1, count // 2)))
    own, acting = (odd.T @ matrix @ odd for matrix in (own, acting))
    return lambda c: np.linalg.eigvals(own + c * acting).real.max()


def vanishing(report):
    """Rates at which the influence vanishes after clustering."""
    sigma, index = rates(), mf.Positions(np.linspace(0, 1, 6), order=6)
    early, late = (gradient_at_the_end(0.8, t, index) for t in (24.0, 30.0))
    for p in (0, 1, 2):
        w = index.weights * index.nodes**p
        rate = np.log((w @ late) / (w @ early)) / 6
        numbers = {"predicted": sigma(1 / (1 + p)), "measured": rate, "tolerance": 1e-6}
        report.compare("circle", f"int tau^{p} K", "rate", **numbers)
    speed = (sigma(1 + 1e-4) - sigma(1 - 1e-4)) / 2e-4
    print(f"sigma(0) = {sigma(0.0):.6f}: K_t vanishes like this; it comes from u = {speed:.4f} t")


def main():
    quick = command_line(__doc__).quick
    report = Report(["space", "run", "what"])
    index = mf.Positions([0, 0.5, 1], order=5)
    circle, zonal, sphere = mf.Circle(32), mf.Zonal(4, 24), mf.Sphere(16)
    cases = [
        ("circle", circle, circle.indexed(lambda s, x: 1 + 0.4 * np.cos(x - s), index)),
    ]
    if not quick:
        cases += [
            ("Zonal(4)", zonal, zonal.indexed(lambda s, x: 1 + 0.4 * x * np.cos(s), index)),
            (
                "S^2",
                sphere,
                sphere.indexed(lambda s, x, y, z: 1 + 0.3 * z * np.cos(s) + 0.2 * x * s, index),
            ),
        ]
    for name, space, start in cases:
        differences(report, space, start, name)
    others(report, circle, lambda s, x: 1 + 0.4 * np.cos(x - s))

    w, times = i1(BETA) / (BETA * i0(BETA)), [1.0, 4.0] if quick else [1.0, 4.0, 12.0]
    total, _ = shares(0.0, times, degree=8, dt=0.01)
    index = mf.Positions(np.linspace(0, 1, 11), order=4)
    C = index.influence(mf.Transformer(mf.SA(BETA), causal=True))
    for t, row in zip(times, total, strict=True):
        end = (
            (index.interpolation(1.0) @ expm(w * t * C) * np.exp(-t / KAPPA))
            .reshape(10, 4)
            .sum(axis=1)
        )
        print(f"a = 0, t = {t}: sum {end.sum():.3f}, shares", (end / end.sum()).round(3))
        error = np.abs(row - end).max()
        report.compare(
            "circle", "SA", f"e^TC, t = {t}", predicted=0.0, measured=error, tolerance=1e-9
        )
    kernel(report, times[-1])
    if not quick:
        vanishing(report)
    for a in () if quick else (0.2, 0.8):
        total, r = shares(a, times)
        for t, row in zip(times, total, strict=True):
            print(f"a = {a}, t = {t}: sum {row.sum():.3f}, shares", (row / row.sum()).round(3))
        print(f"    order parameter at the end: {r:.3f}")
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())

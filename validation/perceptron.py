"""Claim: a perceptron beside attention decides each phase from its size on: 1, 1/beta, e^(-c beta).

Tokens follow x' = P_x (A(x) + F(x)), A softmax attention and F a perceptron, token by token.

1. Alignment, F of order 1: tokens follow x' = P_x (V B x/|B x| + F(x)), B = K^T Q, at order 1/beta.
   300 tokens all around the circle, F of 8 neurons (tanh), t = 1, beta = 50 to 400. Asked: the
   order, between the last two beta, of 1 to 0.1. Without V B, on S^2 with Q = K = V = 1, F(x) = W x
   by ReLU: attention moves nothing at this order, and tokens end at the top eigenvector of W and at
   its antipode, beta = 30. Asked: mean distance below 1e-3 at t = 25.
2. Heat, F of order 1/beta: V = -1, F = c/beta grad phi. A density at rest has
   K * mu proportional to e^(c phi), K = e^(beta <x, y>), so that its moments are those of the Gibbs
   density e^(c phi) times lambda_0/lambda_l, which tends to 1: for phi = <w, x>

       circle: m_k = I_k(c)/I_0(c) I_0(beta)/I_k(beta),    S^2: the same with I_(l+1/2);
       for phi = cos(2 theta)/2 on the circle m_2k = I_k(c/2)/I_0(c/2) I_0(beta)/I_2k(beta).

   `solve` from the uniform density comes to rest there. Asked of the first four moments: 1e-10.
3. Pairing, F of order e^(-c beta): two tokens on the circle at +- phi/2, F(x) = eps diag(-1, 1) x,
   which pulls them apart. phi' = 2 sin phi (eps - 1/(1 + e^(beta (1 - cos phi)))): they merge below

       cos phi* = 1 - log(1/eps - 1)/beta ,

   and separate above it; all do below eps = 1/(1 + e^(2 beta)), none above eps = 1/2. Asked: runs
   from phi* (1 -+ 1e-6) part at the rate 2 beta eps (1 - eps) sin^2 phi* to 1e-4, relative, and
   end at 0 and pi to 1e-6; with half of the smallest eps, tokens at pi - 0.01 merge.

    python validation/perceptron.py [--quick] [--figure FILE.png]    # 3 s, 1 s quick

--quick: fewer tokens and fewer beta. Exit code 1 on failure.

Reference: Bruno, Pasqualotto and Agazzi, arXiv:2509.25040, remark 2.1, which asks for it.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp
from scipy.special import ive

import meanfield as mf
from meanfield.plotting import theme

ALIGNING = (50.0, 100.0, 200.0, 400.0)
Q = np.array([[1.0, 0.3], [-0.2, 0.9]])
K = np.array([[0.9, -0.1], [0.4, 1.1]])
V = np.array([[1.0, 0.2], [-0.3, 0.7]])
W = np.array([[0.6, 0.3, 0.0], [0.1, -0.2, 0.2], [0.0, -0.1, 0.1]])
APART = np.diag([-1.0, 1.0])
PAIRS = ((5.0, 1e-2), (10.0, 1e-2), (10.0, 1e-6), (20.0, 1e-6), (20.0, 1e-12))  # beta, eps
OFF = 1e-6


def linear(matrix: np.ndarray) -> mf.FeedForward:
    """x -> matrix x by ReLU: the parts of x that are positive and negative."""
    one = np.eye(len(matrix))
    return mf.FeedForward(np.vstack([one, -one]), np.hstack([matrix, -matrix]))


def constant(w) -> mf.FeedForward:
    """x -> w."""
    return mf.FeedForward(np.zeros((len(w), len(w))), np.eye(len(w)), outer_bias=np.array(w))


def neurons() -> mf.FeedForward:
    """Eight neurons in the plane, of no symmetry."""
    rng = np.random.default_rng(5)
    inner, outer = rng.normal(size=(8, 2)), rng.normal(size=(2, 8))
    return mf.FeedForward(inner, outer / np.sqrt(8), rng.normal(size=8), np.tanh)


# 1. Alignment -------------------------------------------------------------------------------


def check_alignment(report: Report, n: int) -> list[float]:
    start, F, B = mf.Tokens.on_circle(2 * np.pi * np.arange(n) / n), neurons(), K.T @ Q

    def velocity(_t, flat):
        x = flat.reshape(-1, 2)
        y = x @ (V @ B).T / np.linalg.norm(x @ B.T, axis=1, keepdims=True) + F(x)
        return (y - (x * y).sum(axis=1, keepdims=True) * x).ravel()

    law = solve_ivp(velocity, (0, 1), start.x.ravel(), rtol=1e-10, atol=1e-12).y[:, -1]
    errors = []
    for beta in ALIGNING:
        model = mf.Transformer(mf.Attention(Q, K, V, beta=beta) + F)
        run = successful(mf.solve(model, start, (0, 1), t_eval=[1], rtol=1e-7))
        errors.append(float(np.linalg.norm(run.final.x - law.reshape(-1, 2), axis=1).max()))
    print("alignment: beta times the farthest", *np.round(np.array(errors) * ALIGNING, 2))
    order = float(np.log2(errors[-2] / errors[-1]))
    report.compare("order in 1/beta", "alignment", predicted=1, measured=order, tolerance=0.1)
    return errors


def check_ends(report: Report, n: int) -> None:
    start = mf.Tokens.uniform(n, 3, rng=1)
    model = mf.Transformer(mf.SA(30.0) + linear(W))
    end = successful(mf.solve(model, start, (0, 25), t_eval=[25], rtol=1e-7)).final.x
    values, vectors = np.linalg.eig(W)
    top = np.real(vectors[:, values.real.argmax()])
    far = float(np.linalg.norm(end - np.outer(end @ top, top), axis=1).mean())
    report.compare("mean distance", "top of W", predicted=0, measured=far, tolerance=1e-3)
    share = float((end @ top > 0).mean())
    report.compare("both points", "top of W", predicted=0.5, measured=share, tolerance=0.4)


# 2. Heat ------------------------------------------------------------------------------------


def check_gibbs(report: Report, cases) -> dict:
    circle, sphere, found = mf.Circle(32), mf.Sphere(14), {}
    for name, beta, c in cases:
        space = sphere if name == "S^2" else circle
        nu = 0.5 if name == "S^2" else 0.0
        F = linear(-APART) if name == "cos 2" else constant(np.eye(space.dimension)[0])
        model = mf.Transformer(-mf.SA(beta) + c / beta * F)
        end = 40 * beta if name != "cos 2" else 80 * beta / 4
        run = successful(mf.solve(model, space.uniform(), (0, end), t_eval=[end], rtol=1e-9))
        l = np.arange(1, 5)
        order, size = (2 * l, c / 2) if name == "cos 2" else (l, c)
        known = ive(l + nu, size) / ive(nu, size) * ive(nu, beta) / ive(order + nu, beta)
        for degree, value in zip(order, known, strict=True):
            got = moment(run.final, int(degree))
            case = f"{name}, beta = {beta:g}, c = {c:g}, degree {degree}"
            report.compare("moment", case, predicted=value, measured=got, tolerance=1e-10)
        found[name, beta, c] = run.final
    return found


def moment(mu: mf.Density, degree: int) -> float:
    """The mean of cos(k theta), or of the Legendre polynomial of x_1."""
    series = np.eye(degree + 1)[degree]
    kind = np.polynomial.chebyshev.chebval
    if mu.space.dimension == 3:
        kind = np.polynomial.legendre.legval
    return float(mu.expect(lambda x: kind(x[..., 0], series)))


# 3. Pairing ---------------------------------------------------------------------------------


def threshold(beta: float, eps: float) -> float:
    """phi*."""
    return float(2 * np.arcsin(np.sqrt(np.log(1 / eps - 1) / (2 * beta))))


def angle_of(tokens: mf.Tokens) -> float:
    if len(tokens) == 1:  # they have merged
        return 0.0
    x, y = tokens.x
    return float(2 * np.arctan2(np.linalg.norm(x - y), np.linalg.norm(x + y)))


def pair(beta: float, eps: float, phi: float, times) -> np.ndarray:
    """Angles of two tokens that begin at the angle phi."""
    start = mf.Tokens.on_circle([phi / 2, -phi / 2])
    model = mf.Transformer(mf.SA(beta) + eps * linear(APART))
    options = {"t_eval": times, "rtol": 1e-10, "merge": 1e-8}
    run = successful(mf.solve(model, start, (0, times[-1]), **options))
    return np.array([angle_of(tokens) for tokens in run])


def check_pairs(report: Report, cases) -> None:
    for beta, eps in cases:
        phi, case = threshold(beta, eps), f"beta = {beta:g}, eps = {eps:g}"
        rate = 2 * beta * eps * (1 - eps) * np.sin(phi) ** 2
        times = np.array([0.5, 1.5, 60.0 + 20 / (beta * np.sin(phi) ** 2)]) / rate
        times[2] = max(times[2], 40 / eps)
        for sign, end in ((-1, 0.0), (1, np.pi)):
            angles = pair(beta, eps, phi * (1 + sign * OFF), times)
            away = sign * (angles / phi - 1)
            measured = np.log(away[1] / away[0]) / (times[1] - times[0]) / rate
            options = {"predicted": 1, "measured": measured, "tolerance": 1e-4}
            report.compare("rate of parting, of law", case, **options)
            options = {"predicted": end, "measured": angles[2], "tolerance": 1e-6}
            report.compare("angle at the end", case, **options)
    beta = cases[0][0]
    small = 0.5 / (1 + np.exp(2 * beta))
    last = pair(beta, small, np.pi - 0.01, np.array([60 / small]))[0]
    case = f"beta = {beta:g}, eps = {small:.2g}"
    report.compare("angle at the end", case, predicted=0, measured=last, tolerance=1e-6)


# The figure ---------------------------------------------------------------------------------


def draw(errors: list[float], gibbs: dict, path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.4), dpi=200, layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.loglog(ALIGNING, errors, "o", label="measured")
    left.loglog(ALIGNING, errors[-1] * ALIGNING[-1] / np.array(ALIGNING), "k:", label=r"$1/\beta$")
    left.set(xlabel=r"$\beta$", ylabel="largest distance to the law", title="$F$ of order 1")
    left.set_xticks(ALIGNING, [f"{beta:g}" for beta in ALIGNING])
    left.minorticks_off()
    left.legend(fontsize=8)
    theta = np.linspace(-np.pi, np.pi, 400)
    circle = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    for name, beta, c in gibbs:
        if name == "S^2":
            continue
        phi = np.cos(theta) if name == "cos 1" else np.cos(2 * theta) / 2
        weights = np.exp(c * phi)
        color = "C0" if name == "cos 1" else "C1"
        middle.plot(theta, gibbs[name, beta, c].at(circle), color=color, lw=1)
        middle.plot(theta, weights / weights[:-1].mean(), "k:", lw=0.8)
    middle.set(xlabel="angle", ylabel="density at rest")
    middle.set_title(r"$F = c\nabla\varphi/\beta$, $V = -1$")
    eps = np.geomspace(1e-12, 0.49, 300)
    for i, beta in enumerate((5.0, 10.0, 20.0)):
        inside = eps > 1 / (1 + np.exp(2 * beta))
        right.semilogx(
            eps[inside], [threshold(beta, e) for e in eps[inside]], color=f"C{i}",
            label=rf"$\beta = {beta:g}$",
        )  # fmt: skip
    right.set(xlabel=r"$\varepsilon$", ylabel=r"$\varphi^*$", title="pairs below it merge")
    right.legend(fontsize=8)
    figure.savefig(path)


def main() -> int:
    arguments = command_line(__doc__, "fewer tokens and beta", "where to draw the three scales")
    report, quick = Report(["what", "case"], digits=8), arguments.quick
    errors = check_alignment(report, 200 if quick else 300)
    check_ends(report, 100 if quick else 600)
    cases = [("cos 1", 8.0, 1.0), ("cos 1", 20.0, 2.0), ("cos 2", 20.0, 1.0), ("S^2", 8.0, 1.0)]
    gibbs = check_gibbs(report, cases[1:3] if quick else cases)
    check_pairs(report, PAIRS[:3] if quick else PAIRS)
    if arguments.figure:
        with theme.style():
            draw(errors, gibbs, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())

"""Claim: a member of an ensemble has the bits that it has alone, whoever else is in the ensemble.

Ensembles of random beta, kappa and initial densities, some of the latter on few modes: USA and SA
on the circle, S^2 and the sphere of R^5, attention with matrices on the circle; with two threads.
Members drawn at random are solved again alone. Compared are the coefficients and degrees of all
states, all observables, and the counts of steps: no bit may differ.

And: whether a stationary state is stable, by the inertia of a small matrix, is what the spectrum of
the linearised equation says.

    python validation/ensembles.py [--quick]    # 3 s, 1 s quick

--quick has fewer members. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, successful
from scipy.special import iv

import meanfield as mf

COUNTS = ("steps", "rejected", "evaluations", "weights", "degree_changes", "highest_degree")


def starts(space: mf.spaces.Space, count: int, rng: np.random.Generator) -> list[mf.Density]:
    """Random densities, on 8 to 24 degrees."""
    return [
        space.with_degree(int(degree)).perturbed(0.2 / degree, rng=rng)
        for degree in rng.integers(8, 25, count)
    ]


def cases(members: int) -> dict[str, tuple]:
    """By name: the model of arrays beta and kappa, the space, and options."""
    matrices = np.random.default_rng(5).standard_normal((3, 2, 2))

    def attention(beta, kappa):
        return mf.Transformer(mf.Attention(*matrices, beta=beta), kappa)

    return {
        "circle, USA": (lambda b, k: mf.Transformer(mf.USA(b), k), mf.Circle(16), {}),
        "circle, SA": (lambda b, k: mf.Transformer(mf.SA(b), k), mf.Circle(16), {}),
        "S^2, USA": (lambda b, k: mf.Transformer(mf.USA(b), k), mf.Sphere(16), {}),
        "S^2, SA": (lambda b, k: mf.Transformer(mf.SA(b), k), mf.Sphere(16), {}),
        "Zonal(5), USA": (lambda b, k: mf.Transformer(mf.USA(b), k), mf.Zonal(5, 16), {}),
        "Zonal(5), SA": (lambda b, k: mf.Transformer(mf.SA(b), k), mf.Zonal(5, 16), {}),
        "circle, attention": (attention, mf.Circle(16), {}),
    }


def differing(run: mf.Solution, alone: mf.Solution, i: int) -> int:
    """How many arrays of a member differ from those of its own run, in any bit."""
    pairs = [(run.t, alone.t)]
    for together, single in zip(run, alone, strict=True):
        pairs.append((together[i].space.degree, single.space.degree))
        pairs.append((together[i].coefficients, single.coefficients))
    pairs += [(run.stats[name][i], alone.stats[name]) for name in COUNTS]
    for name, values in alone.observables.data_vars.items():
        here = run.observables[name]
        pairs.append((here.isel(member=i) if "member" in here.dims else here, values))
    return sum(not np.array_equal(one, other, equal_nan=True) for one, other in pairs)


def bits(report: Report, members: int, taken: int) -> None:
    for name, (model, space, options) in cases(members).items():
        rng = np.random.default_rng(1)
        beta, kappa = rng.uniform(0.5, 3, members), rng.uniform(0.3, 8, members)
        densities = starts(space, members, rng)
        times = {"t_span": (0, 0.5), "t_eval": [0, 0.13, 0.5]}
        together = mf.Density.stack(densities)
        run = successful(mf.solve(model(beta, kappa), together, threads=2, **times, **options))
        found = 0
        for i in rng.choice(members, taken, replace=False):
            alone = mf.solve(model(beta[i], kappa[i]), densities[i], **times)
            found += differing(run, successful(alone), int(i))
        spread = np.ptp(run.stats["steps"])
        label = f"{taken} of {members} members, steps differ by {spread}"
        report.compare(name, label, predicted=0, measured=found, tolerance=0)


def stability(report: Report, pairs: int) -> None:
    """The verdict by inertia and by the spectrum, of many states, stable or not."""
    rng, circle, different, unstable = np.random.default_rng(2), mf.Circle(64), 0, 0
    for _ in range(pairs):
        beta, part = rng.uniform(0.5, 5), rng.uniform(0.6, 3)
        model = mf.Transformer(mf.USA(beta), part * beta / iv(1, beta))
        for guess in (circle.uniform(), circle.von_mises(0, 5.0), circle.von_mises(0, 0.3)):
            state = mf.stationary(model, guess)
            if state.converged and abs(state.stability(2).gap) > 1e-8:
                different += state.stable != state.stability(2).stable
                unstable += not state.stable
    name = "stability"
    report.compare(name, "verdicts that differ", predicted=0, measured=different, tolerance=0)
    some = min(1, unstable)
    report.compare(name, "unstable states among them", predicted=1, measured=some, tolerance=0)


def main() -> int:
    quick = "--quick" in sys.argv[1:]
    report = Report(["case", "quantity"])
    bits(report, *((6, 2) if quick else (20, 6)))
    stability(report, 6 if quick else 40)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())

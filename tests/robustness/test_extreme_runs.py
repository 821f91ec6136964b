"""Runs at the edges of numbers: each ends in a result, in a status that says why, or is refused.

Runs are drawn at random, from seeds, over all states and drifts, and made in processes of their
own, which are stopped where a run hangs.
"""

import multiprocessing
import queue
import time
import traceback
import warnings

import numpy as np

import meanfield as mf

HANGS = 60.0  # seconds of one run; those of the suite take less than 10, compilation included
STEPS = 300  # the most of a run
MAY_BE_NAN = {
    "free_energy",  # of SA
    "dissipation",
    "interaction_energy",  # of drifts that increase none
    "mean_cosine",  # where no pair has a mass: with a warning
    "effective_rank",  # of tokens at 0
    "cluster_mass",  # lists of clusters are padded
    "cluster_point",
}
WORKERS = 2


# What is drawn -----------------------------------------------------------------------------


def number(chance, *ordinary, positive=True):
    """An ordinary number, or one from the whole range of them."""
    if chance.random() < 0.5:
        return float(chance.choice(ordinary))
    size = float(10.0 ** chance.uniform(-307, 307))
    if chance.random() < 0.3:
        size = float(chance.choice([1e-300, 5e-324, 1e-16, 1e16, 1e300, 1.7e308]))
    return size if positive or chance.random() < 0.5 else -size


def beta(chance):
    """An inverse temperature of either sign."""
    return number(chance, 0.0, 0.5, 4.0, 40.0, -3.0, 699.0, positive=False)


def drift(chance, given):
    """A drift that may suit a state."""
    zonal = [
        lambda: mf.USA(float(np.clip(beta(chance), -700, 700))),
        lambda: mf.SA(beta(chance)),
        mf.Kuramoto,
        lambda: mf.Interaction.chebyshev([0.0, number(chance, 1.0, positive=False), 0.5]),
        lambda: number(chance, 0.5, positive=False) * mf.USA(1.0) - 2 * mf.Kuramoto(),
        lambda: number(chance, 0.5, positive=False) * mf.SA(beta(chance)),
    ]
    general = [
        lambda: mf.Attention(beta=beta(chance), V=number(chance, 1.0, -1.0, positive=False)),
        lambda: mf.Attention(beta=beta(chance), weights=weights(chance)),
    ]
    parts = [
        lambda: mf.FeedForward(number(chance, 1.0), number(chance, 1.0), activation=np.tanh),
        lambda: mf.Field(lambda x: size * x**2),
    ]
    size = number(chance, 1.0, positive=False)
    general.append(lambda: mf.Attention(beta=beta(chance)) + size * parts[chance.integers(2)]())
    kinds = zonal
    if isinstance(given, mf.Gaussian) or not getattr(given, "on_sphere", True):
        kinds = general
    elif isinstance(given, mf.Tokens):
        kinds = [*zonal, *general, mf.Hardmax]
    return kinds[chance.integers(len(kinds))]()


def weights(chance):
    """Weights of attention."""
    kinds = [
        mf.Softmax,
        mf.Unnormalised,
        mf.L2,
        mf.Linear,
        mf.Sinkhorn,
        lambda: mf.Sigmoid(number(chance, 0.0, -3.0, positive=False)),
    ]
    return kinds[chance.integers(len(kinds))]()


def density(chance):
    """A density, almost a Dirac, almost 0 somewhere, or almost uniform."""
    degree = int(chance.choice([1, 2, 3, 8, 32, 64]))
    circle = mf.Circle(degree)
    kinds = [
        lambda: circle.uniform(),
        lambda: circle.perturbed(number(chance, 1e-3, 1e-9), rng=0),
        lambda: circle.von_mises(1.0, number(chance, 1.0, 30.0, 1e3)),
        lambda: circle.density(lambda a: 1 + np.cos(a)),
        lambda: circle.density(
            lambda a: np.exp(-min(number(chance, 1.0), 700.0) * (1 + np.cos(a)))
        ),
        lambda: mf.Sphere(min(degree, 16)).density(lambda x, y, z: 1 + z),
        lambda: mf.Sphere(min(degree, 8)).density(lambda x, y, z: np.exp(9 * z)),
        lambda: mf.Zonal(dimension(chance), degree).density(lambda x: 1 + x),
        lambda: mf.Zonal(dimension(chance), degree).uniform(),
    ]
    return kinds[chance.integers(len(kinds))]()


def dimension(chance):
    """A dimension, now and then a large one."""
    return int(chance.choice([2, 3, 4, 17, 500]))


def masses(chance, n):
    """None, or masses of which some are 0, or almost."""
    if chance.random() < 0.5:
        return None
    found = chance.random(n) * (chance.random(n) < 0.5)
    found[chance.integers(n)] = 1.0
    if chance.random() < 0.3:
        found *= 10.0 ** chance.uniform(-300, 0, n)
    return found / found.sum()


def points(chance, n, d):
    """Points on the sphere: anywhere, nearly the same, nearly antipodal, or all of that."""
    x = chance.standard_normal((n, d))
    how = chance.integers(4)
    if how == 1:
        x = x[:1] + 10.0 ** chance.uniform(-17, -3) * x
    if how == 2:
        x = x[:1] * chance.choice([-1, 1], (n, 1)) + 10.0 ** chance.uniform(-17, -3) * x
    if how == 3:
        x = np.eye(d)[np.arange(n) % d]
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def tokens(chance):
    """Tokens on a sphere, or in R^d."""
    n, d = int(chance.choice([2, 2, 3, 9])), int(chance.choice([2, 2, 3, 5, 200]))
    x = points(chance, n, d)
    if chance.random() < 0.2:
        return mf.Tokens(x * number(chance, 1.0), masses(chance, n), on_sphere=False)
    radii = None
    if chance.random() < 0.2:
        radii = [number(chance, 1.0) for _ in range(n)]
    return mf.Tokens(x, masses(chance, n), radii)


def sphere_tokens(chance):
    """Tokens on a sphere."""
    n = int(chance.choice([2, 3, 9]))
    return mf.Tokens(points(chance, n, int(chance.choice([2, 3, 5]))), masses(chance, n))


def state(chance):
    """Any state."""
    kinds = [
        lambda: density(chance),
        lambda: density(chance),
        lambda: mf.Characteristics(density(chance), nodes=int(chance.choice([16, 256]))),
        lambda: tokens(chance),
        lambda: tokens(chance),
        lambda: mf.Gram(np.eye(3)) if chance.random() < 0.3 else sphere_tokens(chance).gram(),
        lambda: mf.Equiangular(2 + number(chance, 0.0, 8.0), chance.choice([0.0, 0.5, 0.999])),
        lambda: mf.Equiangular(10, gap=min(1.0, number(chance, 1e-9))),
        lambda: gaussian(chance),
    ]
    return kinds[chance.integers(len(kinds))]()


def gaussian(chance):
    """A normal law, of any variances."""
    d = int(chance.choice([1, 2, 3]))
    variances = [number(chance, 1.0, 0.0) for _ in range(d)]
    return mf.Gaussian([number(chance, 0.0, 1.0, positive=False)] * d, np.diag(variances))


def model(chance, given):
    """A model that may suit a state."""
    options, flat = {}, not getattr(given, "on_sphere", True) or isinstance(given, mf.Gaussian)
    if isinstance(given, mf.Density | mf.Tokens) and chance.random() < 0.5:
        options["kappa"] = number(chance, 1.0, 20.0)
    if isinstance(given, mf.Tokens) and chance.random() < 0.2:
        options["reaction"] = number(chance, 1.0, positive=False)
    radii = getattr(given, "radii", None) is not None
    if (
        not flat
        and isinstance(given, mf.Tokens | mf.Equiangular)
        and (chance.random() < 0.2 or radii)
    ):
        normalisations = [mf.PreLN(), mf.PeriLN(), mf.MixLN(number(chance, 1.0)), mf.PostLN()]
        options["normalisation"] = normalisations[chance.integers(4 - radii)]
    return mf.Transformer(drift(chance, given), **options)


def span(chance):
    """A span of time, and when to look: at 101 times, or at a few."""
    start = 0.0 if chance.random() < 0.7 else number(chance, 1.0, 1e12, -1.0, positive=False)
    end = start + number(chance, 1.0, 1.0, 30.0, 1e6, 1e16)
    if chance.random() < 0.5:
        return (start, end), {}
    return (start, end), {"t_eval": [end]}


def options(chance, tried, given):
    """Options of `solve`, most of which suit."""
    found = {"max_steps": int(chance.integers(1, STEPS))}
    if isinstance(given, mf.Density):
        found["max_degree"] = 128 if given.space.dimension == 2 else 64
    noise = isinstance(given, mf.Tokens) and tried.noisy
    if chance.random() < 0.3 and not noise:
        found["until"] = "steady"
    if chance.random() < 0.3:
        found["rtol"] = float(chance.choice([1e-13, 1e-11, 1e-5, 1e-3]))
    if chance.random() < 0.2:
        found["dt"] = number(chance, 0.1, 0.01)
    if chance.random() < 0.1 and not noise:
        found["scheme"] = list(mf.steppers.SCHEMES + mf.steppers.SPLITTINGS)[chance.integers(6)]
    if chance.random() < 0.2 and isinstance(given, mf.Tokens) and not noise:
        found["merge"] = number(chance, 1e-3)
    return found


# What comes of it --------------------------------------------------------------------------


def outcome(seed):
    """What came of the run of a seed: a status, "refused", or "FAILED: ..."; and what it was."""
    chance = np.random.default_rng(seed)
    what = f"seed {seed}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            given = state(chance)
            tried, times = model(chance, given), span(chance)
            chosen = {**times[1], **options(chance, tried, given)}
            what += f": solve({tried!r}, {given!r}, {times[0]!r}, {chosen!r})"
            found, why = run(tried, given, times[0], chosen)
        except (ValueError, TypeError, mf.MeanfieldError) as error:
            found, why = "refused", str(error)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.filename.rsplit('meanfield/', 1)[-1]}:{place.lineno}"
            found, why = f"FAILED: {type(error).__name__} in {where}", str(error)
    for warning in caught:
        if not issubclass(warning.category, mf.UnresolvedWarning):
            where = f"{warning.filename.rsplit('meanfield/', 1)[-1]}:{warning.lineno}"
            found, why = f"FAILED: {warning.category.__name__} in {where}", str(warning.message)
    return found, f"{what}: {why}"


def run(tried, given, span, chosen):
    """The status of a run, or what is wrong with its result."""
    done = mf.solve(tried, given, span, **chosen)
    if not all(map(finite, done.states)):
        return "FAILED: a state that is not finite", done.status
    if not done.success and not done.message:
        return "FAILED: no message", done.status
    for name, values in done.observables.items():
        if name == "speed" and done.status == "step_too_small":
            values = values[..., :-1]  # it may have no finite value there
        if name not in MAY_BE_NAN and np.isnan(values).any():
            return f"FAILED: observable {name} is nan", f"{done.status}: {values.values!r}"
    return done.status, done.message


def finite(state):
    """Whether all numbers of a state are finite."""
    kept = [v for v in vars(state).values() if isinstance(v, np.ndarray)]
    if isinstance(state, mf.Density):
        kept.append(state.coefficients)
    return all(np.isfinite(array).all() for array in kept if array.dtype.kind in "fc")


# In processes of their own -----------------------------------------------------------------


def worker(seeds, answers):
    """Make the runs of the seeds that come; tell which one begins, and what came of it."""
    for seed in iter(seeds.get, None):
        answers.put((seed, None, ""))
        answers.put((seed, *outcome(seed)))


def outcomes(count):
    """What came of the runs of as many seeds, each with what it was; those that hang are killed."""
    context = multiprocessing.get_context("spawn")
    seeds, left = context.Queue(), count
    for seed in range(count):
        seeds.put(seed)

    def started():
        answers = context.Queue()
        process = context.Process(target=worker, args=(seeds, answers), daemon=True)
        process.start()
        return [process, answers, None, time.monotonic()]

    workers = [started() for _ in range(min(WORKERS, count))]
    while left:
        for i, (process, answers, seed, since) in enumerate(workers):
            try:
                seed, found, why = answers.get(timeout=0.05)
            except queue.Empty:
                if process.is_alive() and time.monotonic() - since < HANGS:
                    continue
                found = "FAILED: hangs" if process.is_alive() else "FAILED: dies"
                why = f"seed {seed}"
                process.kill()
                workers[i] = started()
            else:
                workers[i][2:] = seed, time.monotonic()
            if found is not None:
                left -= 1
                yield found, why
    for process, *_ in workers:
        process.kill()
        process.join()


def test_runs_at_the_edges_of_numbers_end_in_a_result_a_status_or_a_refusal(attack):
    count = attack.rounds(12, 2000)
    found = outcomes(count) if attack.long else map(outcome, range(count))
    for result, why in found:
        if result.startswith("FAILED"):
            attack.failed(result.removeprefix("FAILED: "), why)
        else:
            attack.saw(result)

"""Threads: whatever runs at the same time comes out as it does alone, bit for bit."""

import hashlib
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import meanfield as mf
from meanfield.lowlevel.blas import one_blas_thread
from meanfield.lowlevel.compilation import COMPILING
from meanfield.lowlevel.fourier import PLANNING, RealTransform
from meanfield.plotting import theme

ROOT = Path(__file__).resolve().parents[2]
THREADS = 8
USA, NOISY = mf.Transformer(mf.USA(beta=2.0)), mf.Transformer(mf.USA(beta=2.0), kappa=8.0)
SA, NOISY_SA = mf.Transformer(mf.SA(beta=2.0)), mf.Transformer(mf.SA(beta=2.0), kappa=8.0)
CIRCLE = mf.Circle(24)
SPACES = {"circle": mf.Circle, "sphere": mf.Sphere, "zonal": lambda degree: mf.Zonal(5, degree)}
NOISES = (mf.Isotropic(), mf.Anisotropic(np.diag([0.1, 0.2, 0.3])))
OWN = mf.Interaction(lambda t: np.sin(t) + t**3, name="own")

SHARED = {}  # the same objects in all threads


def share():
    """Make them anew: nothing of what they compute and keep is there."""
    SHARED["circle"] = mf.Circle(24).von_mises(0.3, 1.0)
    SHARED["sphere"] = mf.Sphere(10).von_mises_fisher((0.0, 0.6, 0.8), 1.0)
    SHARED["zonal"] = mf.Zonal(5, 16).von_mises_fisher(1.0)


def bits(*values):
    """The bits of arrays, numbers and states, for comparison."""
    checksum = hashlib.sha256()
    for value in values:
        for array in value.arrays().values() if hasattr(value, "arrays") else [(None, value)]:
            checksum.update(np.ascontiguousarray(array[1]).tobytes())
    return checksum.hexdigest()


def of_run(run):
    """The bits of a run: times, states, and all that is measured."""
    measured = [run.observables[name].values for name in run.observables]
    return bits(run.t, *run.states, *measured)


def density(place, model, k, **options):
    def job():
        degree = {"circle": 24, "sphere": 8, "zonal": 12}[place] + 3 * k
        space = SPACES[place](degree)
        start = space.perturbed(1e-2, rng=k)
        return of_run(mf.solve(model, start, (0, 0.3), t_eval=[0, 0.1, 0.3], rtol=1e-6, **options))

    return job


def moved(model, state, **options):
    return lambda: of_run(mf.solve(model, state(), (0, 0.2), t_eval=[0.1, 0.2], **options))


def shared_state(place):
    """A state that all threads use at once, its properties not computed before."""

    def job():
        state = SHARED[place]
        found = [state.values, state.expect(lambda x: x[..., -1] ** 2), state.spectral_tail]
        found += [state.at(np.eye(state.dimension)), state.sample(50, rng=1).x]
        found += mf.measure(NOISY, state).values()
        return bits(*found, pickle.loads(pickle.dumps(state)), state.space.points)

    return job


def tokens(n, d, k):
    return lambda: mf.Tokens.uniform(n, d, rng=k)


def distances(k):
    def job():
        a, b = (mf.Tokens.uniform(60, 2, rng=k + i) for i in (0, 100))
        x, y = (mf.Tokens.uniform(30, 3, rng=k + i) for i in (0, 100))
        circle, other = CIRCLE.von_mises(0.1 * k, 1.0), CIRCLE.von_mises(1.0, 2.0)
        found = [mf.wasserstein(a, b, p=p) for p in (1, 2)] + [mf.wasserstein(x, y, p=2)]
        found += [mf.wasserstein(circle, other, p=2), mf.wasserstein(a, circle, p=1)]
        found += [mf.mmd(x, y), mf.sobolev_distance(circle, other)]
        found += [mf.sinkhorn_divergence(x, y)]
        found += [mf.sliced_wasserstein(x, y, rng=k)]
        return bits(*(np.asarray(value, dtype=float) for value in found))

    return job


def branch(k):
    def job():
        diagram = mf.branches(mf.USA(beta=3.0 + k / 10), mf.Circle(8), kappa=(0.7, 0.9))
        states = mf.stationary_states(mf.Transformer(mf.Kuramoto(), 2.5), mf.Circle(8))
        points = [state.legendre_moments for state in states]
        return bits(*points, *(diagram.data[name].values for name in ("kappa", "order_parameter")))

    return job


def file(k, folder):
    def job():
        run = mf.solve(NOISY, CIRCLE.von_mises(0.1 * k, 1.0), (0, 0.1), t_eval=[0, 0.1])
        path = folder / f"run{k}-{threading.get_ident()}.nc"
        run.save(path)
        loaded = mf.load(path)
        assert loaded.model == run.model
        return of_run(loaded)

    return job


def figure(k, folder):
    def job():
        path = folder / f"figure{k}-{threading.get_ident()}.png"
        run = mf.solve(NOISY, CIRCLE.von_mises(0.1 * k, 1.0), (0, 0.1), t_eval=[0, 0.05, 0.1])
        run.plot().savefig(path, dpi=50, metadata={"Software": None})
        return hashlib.sha256(path.read_bytes()).hexdigest()

    return job


def jobs(folder, variants):
    """Name and function of everything that runs at the same time, in some variants."""
    found = {}
    for k in range(variants):
        for place, more in product(SPACES, (0, variants)):
            found[f"density, {place} {k + more}"] = density(place, NOISY, k + more)
            found[f"SA, {place} {k + more}"] = density(place, NOISY_SA, k + more)
        found[f"explicit scheme {k}"] = density(
            "circle", NOISY, k, scheme=mf.steppers.DormandPrince
        )
        found[f"characteristics {k}"] = moved(SA, lambda k=k: mf.Characteristics(SHARED["circle"]))
        found[f"tokens {k}"] = moved(SA, tokens(40, 3, k))
        found[f"tokens in R^12 {k}"] = moved(SA, tokens(70, 12, k))
        for engine in (mf.engines.Direct(2), mf.engines.Modes(threads=2), mf.engines.Modes(1e-6)):
            for d in (2, 3):
                found[f"{engine!r}, d = {d} {k}"] = moved(USA, tokens(300, d, k), engine=engine)
        found[f"any interaction {k}"] = moved(mf.Transformer(OWN), tokens(80, 3, k))
        found[f"attention {k}"] = moved(
            mf.Transformer(mf.Attention(Q=np.eye(4), beta=2.0 + k, causal=True)), tokens(90, 4, k)
        )
        for noise in NOISES:
            common = mf.CommonTranslations(9.0)
            noisy = mf.Transformer(mf.SA(beta=1.0), 8.0, noise=noise, common=common)
            name = type(noise).__name__
            found[f"{name} noise {k}"] = moved(noisy, tokens(50, 3, k), rng=k, dt=0.05)
        found[f"Gram {k}"] = moved(SA, lambda k=k: tokens(12, 5, k)().gram())
        found[f"equiangular {k}"] = moved(SA, lambda k=k: mf.Equiangular(8 + k, 0.1))
        gaussian = mf.Gaussian(np.zeros(2), np.diag([1.0, 0.5 + 0.1 * k]))
        found[f"Gaussian {k}"] = moved(
            mf.Transformer(mf.Attention(Q=-np.eye(2), K=np.eye(2))), lambda g=gaussian: g
        )
        found[f"distances {k}"] = distances(k)
        found[f"file {k}"] = file(k, folder)
    for k in range(variants // 2 or 1):
        found[f"branches {k}"] = branch(k)
        found[f"figure {k}"] = figure(k, folder)
    found |= {f"one {place} for all": shared_state(place) for place in SPACES}
    return found


def all_at_once(tasks, threads=THREADS):
    """Run (name, function) in threads that begin together; the results by their places."""
    results, numbers, gate = (
        [None] * len(tasks),
        iter(range(len(tasks))),
        threading.Barrier(threads),
    )

    def work():
        gate.wait()
        for number in numbers:
            try:
                results[number] = tasks[number][1]()
            except Exception as error:
                results[number] = repr(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


@pytest.mark.bits
def test_what_runs_at_the_same_time_comes_out_as_it_does_alone(attack, tmp_path):
    """Different things in eight threads, then the same in all of them: bits, no crash."""
    rng, found = random.Random(0), jobs(tmp_path, attack.rounds(1, 4))
    share()
    alone = {name: job() for name, job in found.items()}
    end = time.monotonic() + (1200 if attack.long else 0)
    while True:
        share()
        tasks = rng.sample(list(found.items()), len(found))
        tasks += [entry for entry in rng.sample(tasks, 3) for _ in range(4)]
        for (name, _), result in zip(tasks, all_at_once(tasks), strict=True):
            if result == alone[name]:
                attack.saw("the same bits")
            else:
                attack.failed("other bits or an error", f"{name}: {result}")
        if time.monotonic() > end:
            break


# What threads share ----------------------------------------------------------------------------


BLAS = """
import threading
import numpy, scipy.linalg
from meanfield.lowlevel.blas import _libraries, one_blas_thread

def threads():
    return {library["num_threads"] for library in _libraries(True).select(user_api="blas").info()}

def other():
    with one_blas_thread():
        first.set()
        second.wait()

before, first, second = threads(), threading.Event(), threading.Event()
worker = threading.Thread(target=other)
worker.start()
first.wait()
with one_blas_thread(), one_blas_thread():
    second.set()
    worker.join()
    assert threads() == {1}
assert threads() == before
"""


def test_blas_has_its_threads_again_when_the_last_block_is_left():
    """Also where the first one to enter is the first one to leave; in these tests BLAS has one."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", BLAS], env=environment, check=True)


def test_states_and_drifts_are_pickled_while_others_use_them():
    """What they compute and keep on the way is not a part of them."""
    for _ in range(2):
        density = mf.Circle(24).von_mises(0.3, 1.0)
        drift = mf.Interaction(np.sin, name="sine")
        done = threading.Event()

        def use(density=density, drift=drift, done=done):
            for degree in range(1, 40):
                drift.attraction(degree, 3)
                density.__dict__.pop("values", None)
                assert density.values.size
            done.set()

        user = threading.Thread(target=use)
        user.start()
        while not done.is_set():
            pickle.dumps(drift)
            copy = pickle.loads(pickle.dumps(density))
            assert bits(copy) == bits(density) and not copy.coefficients.flags.writeable
        user.join()


def test_one_thread_at_a_time_draws_and_the_style_of_the_user_comes_back():
    before = dict(matplotlib.rcParams)

    def draw(seconds):
        with theme.style():
            time.sleep(seconds)
            return matplotlib.rcParams["lines.linewidth"] == theme.STYLE["lines.linewidth"]

    tasks = [("draw", partial(draw, 0.01 * k)) for k in range(4)]
    assert all_at_once(tasks, 4) == [True] * 4
    assert dict(matplotlib.rcParams) == before


# Processes -------------------------------------------------------------------------------------


def run_of(k):
    """A small run, as its bits, with threads of its own engine."""
    tokens = mf.Tokens.uniform(300, 2, rng=k)
    run = mf.solve(USA, tokens, (0, 0.1), t_eval=[0.1], engine=mf.engines.Modes(threads=2))
    density = mf.Circle(20 + k).von_mises(0.3, 1.0)
    return of_run(run), of_run(mf.solve(NOISY, density, (0, 0.1), t_eval=[0.1]))


def solved(k):
    """A result, to be pickled."""
    return mf.solve(NOISY, mf.Circle(20 + k).von_mises(0.3, 1.0), (0, 0.1), t_eval=[0, 0.1])


@pytest.mark.long
@pytest.mark.bits
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_give_the_bits_of_this_one(method):
    """Models, states and results travel to them and back; here numba and FFTW are in use."""
    alone = [run_of(k) for k in range(2)]
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        assert list(pool.map(run_of, range(2))) == alone
        assert of_run(pool.submit(solved, 1).result()) == of_run(solved(1))


def plan_and_compile():
    """What needs all the locks: 0 if they can be had."""
    RealTransform(62, rows=1)
    with COMPILING, one_blas_thread():
        raise SystemExit(0)


def test_a_fork_waits_for_what_another_thread_has_begun():
    """Its child would find locks taken for ever, by a thread that it does not have."""
    fork = multiprocessing.get_context("fork")
    for lock in (PLANNING, COMPILING):
        taken = threading.Event()

        def hold(lock=lock, taken=taken):
            with lock:
                taken.set()
                time.sleep(0.3)

        holder = threading.Thread(target=hold)
        holder.start()
        taken.wait()
        child = fork.Process(target=plan_and_compile)
        child.start()
        child.join(10)
        status = child.exitcode
        child.kill()
        holder.join()
        assert status == 0


def test_forks_while_threads_plan_and_solve(attack):
    """Children that plan, compile and solve, of a process in which other threads do."""
    fork, ended = multiprocessing.get_context("fork"), threading.Event()

    def others():
        for k in range(10**6):
            RealTransform(32 + 2 * (k % 50), rows=2)
            if ended.is_set():
                return

    workers = [threading.Thread(target=others) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(attack.rounds(4, 200)):
        child = fork.Process(target=solved, args=(1,))
        child.start()
        child.join(60)
        if child.exitcode == 0:
            attack.saw("a child that solved")
        else:
            attack.failed("a child that did not", str(child.exitcode))
            child.kill()
    ended.set()
    for worker in workers:
        worker.join()

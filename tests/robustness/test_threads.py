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
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf
from meanfield.lowlevel import compilation, fourier
from meanfield.lowlevel.blas import one_blas_thread
from meanfield.lowlevel.fourier import RealTransform

ROOT = Path(__file__).parents[2]
THREADS = 8
USA, NOISY = mf.Transformer(mf.USA(beta=2.0)), mf.Transformer(mf.USA(beta=2.0), kappa=8.0)
SA, NOISY_SA = mf.Transformer(mf.SA(beta=2.0)), mf.Transformer(mf.SA(beta=2.0), kappa=8.0)
CIRCLE = mf.Circle(24)
SPACES = {"circle": mf.Circle, "sphere": mf.Sphere, "zonal": lambda degree: mf.Zonal(5, degree)}
NOISES = (mf.Isotropic(), mf.CommonNoise(), mf.Anisotropic(np.diag([0.1, 0.2, 0.3])))
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
        return bits(*found, pickle.loads(pickle.dumps(state)), state.geometry.points)

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
        diagram = mf.branches(mf.USA(beta=3.0 + k / 10), mf.Circle(12), kappa=(0.5, 0.9))
        states = mf.stationary_states(mf.Transformer(mf.USA(beta=4.0), 0.45), mf.Circle(16))
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


def jobs(folder):
    """Name and function of everything that runs at the same time."""
    found = {}
    for k in range(3):
        for place in SPACES:
            found[f"density, {place} {k}"] = density(place, NOISY, k)
            found[f"SA, {place} {k}"] = density(place, NOISY_SA, k)
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
            noisy = mf.Transformer(mf.SA(beta=1.0), 8.0, noise=noise)
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
    for k in range(2):
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


def test_what_runs_at_the_same_time_comes_out_as_it_does_alone(attack, tmp_path):
    """Different things in eight threads, then the same in all of them: bits, no crash."""
    rng, found = random.Random(0), jobs(tmp_path)
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

"""Calls that are right, and values that are not: one argument at a time is replaced by them.

As a script it makes the calls whose numbers it reads, one a line, and writes what came of each.
"""

import datetime
import decimal
import fractions
import json
import linecache
import math
import os
import pathlib
import re
import signal
import sys
import tempfile
import traceback
import warnings
from functools import cache

import numpy as np

MEMORY = 2 * 10**9  # bytes that a call may take
SECONDS = 10


class OfTheCaller(Exception):
    """What a function of the caller's raises."""


class Floats(np.ndarray):
    """A subclass of arrays."""


class Lying:
    """An object whose repr and conversions fail."""

    def __repr__(self):
        raise OfTheCaller("no repr")

    def __array__(self, *_given, **_named):
        raise OfTheCaller("no array")


def raises(*_arguments, **_named):
    raise OfTheCaller("from the function")


def returns_none(*_arguments, **_named):
    return None


def returns_text(*_arguments, **_named):
    return "text"


def returns_ragged(*_arguments, **_named):
    return [[1.0], [1.0, 2.0]]


def nested(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


def recursive():
    found = []
    found.append(found)
    return found


def a_frame():
    import pandas as pd

    return pd.DataFrame({"a": [1.0, None]})


def labelled():
    import xarray as xr

    return xr.DataArray([1.0, np.nan], dims="t")


ANY = {
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "10**5000": lambda: 10**5000,
    "2**63": lambda: 2**63,
    "10**12": lambda: 10**12,
    "10**9": lambda: 10**9,
    "-1": lambda: -1,
    "0": lambda: 0,
    "1e300": lambda: 1e300,
    "1e-300": lambda: 1e-300,
    "-0.0": lambda: -0.0,
    "0.5": lambda: 0.5,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "Fraction": lambda: fractions.Fraction(7, 3),
    "huge Fraction": lambda: fractions.Fraction(10**400, 3),
    "Decimal": lambda: decimal.Decimal("2.5"),
    "Decimal nan": lambda: decimal.Decimal("sNaN"),
    "masked": lambda: np.ma.masked,
    "masked array": lambda: np.ma.masked_array([0.1, 0.2], [True, False]),
    "complex": lambda: 1 + 2j,
    "True": lambda: True,
    "None": lambda: None,
    "empty text": lambda: "",
    "'3'": lambda: "3",
    "b'3'": lambda: b"3",
    "bytearray": lambda: bytearray(b"3"),
    "long text": lambda: "x" * 5000,
    "surrogate": lambda: os.fsdecode(b"\xff\xfe"),
    "NUL": lambda: "a\0b",
    "nowhere": lambda: pathlib.Path("/nowhere/at/all.nc"),
    "long path": lambda: pathlib.Path("y" * 5000),
    "datetime": lambda: datetime.datetime(2020, 1, 1),
    "timedelta": lambda: datetime.timedelta(seconds=1),
    "datetime64": lambda: np.datetime64("2020-01-01"),
    "timedelta64": lambda: np.timedelta64(5, "s"),
    "NaT": lambda: np.datetime64("NaT"),
    "list of dates": lambda: [np.datetime64("2020-01-01"), np.datetime64("2020-01-02")],
    "object array": lambda: np.array([None, "a"], dtype=object),
    "array of text": lambda: np.array(["1", "2"]),
    "objects of text": lambda: np.array(["1", "2"], dtype=object),
    "empty list": lambda: [],
    "empty array": lambda: np.empty((0, 3)),
    "0-d array": lambda: np.array(1.0),
    "0-d object": lambda: np.array(None, dtype=object),
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "rank 5": lambda: np.ones((1, 1, 2, 1, 1)),
    "nested": lambda: nested(900),
    "recursive": recursive,
    "generator": lambda: (x for x in [1, 2]),
    "dict": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "range": lambda: range(3),
    "structured": lambda: np.zeros(2, dtype=[("a", float)]),
    "complex array": lambda: np.array([1j, 2.0]),
    "bool array": lambda: np.array([True, False]),
    "nan array": lambda: np.array([np.nan, 1.0]),
    "float16": lambda: np.float16(0.5),
    "longdouble": lambda: np.longdouble("1e1000"),
    "subclass": lambda: np.ones(2).view(Floats),
    "a class": lambda: int,
    "an exception": lambda: ValueError("x"),
    "a module": lambda: math,
    "object": object,
    "lying": Lying,
    "raises": lambda: raises,
    "returns None": lambda: returns_none,
    "returns text": lambda: returns_text,
    "returns ragged": lambda: returns_ragged,
    "frame": a_frame,
    "labelled": labelled,
    "lambda of nothing": lambda: lambda: 1,
}


def numbers_of(good):
    """The good value as an array; None if it is none."""
    if not isinstance(good, list | tuple | np.ndarray):
        return None
    array = np.asarray(good)
    return array if array.dtype.kind in "fi" and array.ndim and array.size else None


def masked_like(good):
    """The good value with one entry masked; None if it is no array."""
    array = numbers_of(good)
    if array is None:
        return None
    mask = np.zeros(array.shape, bool)
    mask.flat[0] = True
    return np.ma.masked_array(array, mask)


def _changed(change):
    def like(good):
        array = numbers_of(good)
        return None if array is None else change(array)

    return like


def _with_first(value, dtype=float):
    def change(array):
        changed = array.astype(dtype)
        changed.flat[0] = value
        return changed

    return _changed(change)


LIKE = {  # made of the good value, where that is an array
    "one masked": masked_like,
    "one nan": _with_first(math.nan),
    "one inf": _with_first(math.inf),
    "one 1e308": _with_first(1e308),
    "one None": _with_first(None, object),
    "one 10**400": _with_first(10**400, object),
    "one text": _with_first("1", object),
    "texts": _changed(lambda array: array.astype(str)),
    "complex": _changed(lambda array: array + 0.5j),
    "one axis more": _changed(lambda array: array[..., None]),
    "first entry": _changed(lambda array: array[0]),
    "twice": _changed(lambda array: np.concatenate([array, array])),
    "reversed": _changed(lambda array: array[::-1]),
    "fractions": _changed(lambda a: np.vectorize(fractions.Fraction, otypes=[object])(a)),
}
FUNCTIONS = (
    *("f", "function", "potential", "scale", "alpha", "events", "callback"),
    *("drift", "source", "starts", "kernel", "weight", "level", "modes"),
)
LONG = {  # runs of any length, by choice: to a source that is never met ends after 10^7 steps
    ("stationary_states", "starts"),
    ("splitting", "source"),
    ("splitting", "loops"),
}
RETURNING = ("returns None", "returns text", "returns ragged")
ANYTHING = ("value",)  # what describes anything
VALUES = [*ANY, *(f"like: {name}" for name in LIKE)]


def hostile(name, good):
    """A value by its name; None where there is none like the good one."""
    if name.startswith("like: "):
        return LIKE[name.removeprefix("like: ")](good)
    return ANY[name]()


# Calls that are right ----------------------------------------------------------------------------


@cache
def calls():
    """(name, function, good arguments) of all that is called; no call takes more than a second."""
    import matplotlib as mpl

    mpl.use("Agg")
    import meanfield as mf
    from meanfield import engines, plotting
    from meanfield.models import noise, normalisation
    from meanfield.models.ensembles import ginibre, ginibre_product, goe, wishart
    from meanfield.models.noise import Anisotropic
    from meanfield.models.scalings import logarithmic, power

    folder = pathlib.Path(tempfile.mkdtemp())
    circle, sphere, zonal = mf.Circle(8), mf.Sphere(4), mf.Zonal(5, 6)
    wave = circle.fourier([1, 0.2, 0.05])
    ball = sphere.zonal([1, 0.3])
    angles = np.array([0.0, 1.0, 2.5])
    tokens, three = mf.Tokens.on_circle(angles), mf.Tokens.uniform(4, 3, rng=0)
    others = mf.Tokens.uniform(4, 3, rng=1)
    square = np.array([[1.0, 0.2], [0.2, 0.5]])
    gaussian, gram = mf.Gaussian([0.5, 0.0], square), three.gram()
    equal = mf.Equiangular(8, 0.1)
    drift, noisy = mf.USA(2.0), mf.Transformer(mf.USA(2.0), 4.0)
    quiet = mf.Transformer(drift)
    attention = mf.Attention(Q=square)
    span = (0.0, 0.01)
    run = mf.solve(noisy, wave, span, t_eval=np.linspace(0, 0.01, 5))
    entropy = mf.Functional(
        lambda mu: (mu.values * np.log(mu.values)) @ mu.space.weights,
        lambda mu: 1 + np.log(mu.values),
    )
    kept = mf.solve(quiet, three, span, t_eval=[0.01], dense=True)
    path = mf.solve(quiet, three, span, t_eval=[0.0, 0.005, 0.01])
    around = mf.solve(quiet, tokens, span)
    law = mf.solve(mf.Transformer(attention), gaussian, span, t_eval=[0.0, 0.01])

    def moved(drift, **parts):
        return mf.solve(mf.Transformer(drift, **parts), three, span, t_eval=[0.01])

    file = run.save(folder / "run.nc")
    np.save(folder / "x.npy", three.x)
    state = mf.stationary(mf.Transformer(drift, 3.0), circle.fourier([1, 0.3]))
    calm = mf.stationary(mf.Transformer(drift, 1.0), circle.uniform())
    curve = mf.Characteristics(wave)
    diagram = mf.branches(mf.Kuramoto(), circle, (1.5, 2.5), max_step=0.5)
    driven = mf.Transformer(
        2.0 * mf.Kuramoto() + mf.Field(lambda x: x @ [[0.0, 1.0], [-1.0, 0.0]] + [0.5, 0.0]), 1.4
    )
    orbit = mf.cycle(driven, circle.von_mises(0.0, 0.3), tolerance=1e-3)
    few = {"replicas": 2, "rng": 0, "dt": 0.05, "coupling": False, "floor": False}
    study = mf.propagation_of_chaos(noisy, wave, [4, 8], [0.0, 0.05], **few)
    config = folder / "run.toml"
    config.write_text(
        '[model]\nkappa = 4.0\ndrift = {kind = "USA", beta = 2.0}\n[space]\nkind = "Circle"\n'
        'degree = 8\n[initial]\nkind = "Fourier"\ncos = [0.1]\n[solve]\nt_span = [0.0, 0.01]\n'
    )

    def whole(theta):
        return 1 + 0.1 * np.cos(theta)

    def first(points):
        return points[..., 0]

    def mean_of(state):
        return state.expect(first)

    def member(x, y, z):
        return 1 + 0.1 * z

    def potential(t):
        return t**2

    def size(x):
        return 1.0 + 0 * x[..., 0]

    torus = mf.Torus(8, 2)
    plane = torus.von_mises([0.0, 1.0], 0.1)
    places = mf.TorusTokens([[0.1, 0.2], [1.0, 2.0]])
    fluid = mf.solve(noisy, wave, span, t_eval=[0.01], dense=True)
    alone = mf.Transformer(mf.Potential(lambda x: 0.5 * x[..., 0] ** 2), 17.0)
    hills = mf.Transformer(
        mf.Kuramoto() + mf.Potential(lambda x: 0.1 * x[..., 0] ** 2 + 0.01 * x[..., 0]), 2.5
    )
    left, right = (mf.stationary(hills, mf.Circle(16).von_mises(at, 3.0)) for at in (np.pi, 0.0))
    free, single = mf.Transformer(mf.Field(np.zeros_like), 1.0), mf.Tokens.on_circle([0.3])

    def turned(x, y):
        return y - x + 0 * (x + y)

    def near(x, y):
        return 1.0 + 0 * (x * y).sum(axis=-1)

    def level(tokens):
        return np.abs(np.arctan2(tokens.x[..., 0, 1], tokens.x[..., 0, 0]))

    def spread(drift):
        return mf.solve(mf.Transformer(drift, 4.0), wave, span, t_eval=[0.01])

    passages = mf.first_passages(
        free, single, level, target=0.6, t_max=5.0, replicas=64, rng=0, dt=0.05, progress=False
    )
    rare = {"rng": 0, "dt": 0.05, "batch": None, "store": None, "executor": None}
    rare["progress"] = False
    series = circle.indexed(lambda s, theta: 1 + 0 * s * theta, mf.Positions(order=3))
    listed = [
        ("Circle", mf.Circle, {"degree": 8}),
        ("Sphere", mf.Sphere, {"degree": 8}),
        ("Zonal", mf.Zonal, {"dimension": 4, "degree": 8}),
        ("Torus", mf.Torus, {"degree": 8, "dimension": 2}),
        ("Circle.uniform of degree", lambda degree: mf.Circle(degree).uniform(), {"degree": 8}),
        ("Sphere.uniform of degree", lambda degree: mf.Sphere(degree).uniform(), {"degree": 8}),
        ("Circle.embed", circle.embed, {"theta": angles}),
        ("Circle.density", circle.density, {"f": whole}),
        ("Sphere.density", sphere.density, {"f": member}),
        ("Zonal.density", zonal.density, {"f": whole}),
        ("Circle.fourier", circle.fourier, {"coefficients": [1.0, 0.2]}),
        ("Sphere.zonal", sphere.zonal, {"coefficients": [1.0, 0.2], "axis": [0.0, 0.0, 1.0]}),
        ("Zonal.zonal", zonal.zonal, {"coefficients": [1.0, 0.2]}),
        ("Circle.von_mises", circle.von_mises, {"mean": 1.0, "concentration": 0.1}),
        (
            "Sphere.von_mises_fisher",
            sphere.von_mises_fisher,
            {"mean": [0.0, 0.0, 1.0], "concentration": 0.01},
        ),
        ("Zonal.von_mises_fisher", zonal.von_mises_fisher, {"concentration": 0.01}),
        ("Circle.estimate", circle.estimate, {"sample": angles, "bandwidth": 1.5}),
        ("Sphere.estimate", sphere.estimate, {"sample": three.x, "bandwidth": 2.5}),
        ("Circle.perturbed", circle.perturbed, {"amplitude": 1e-3, "rng": 0, "degrees": [1, 2]}),
        ("Sphere.perturbed", sphere.perturbed, {"amplitude": 1e-3, "rng": 0, "degrees": [1, 2]}),
        ("Circle.with_degree", circle.with_degree, {"degree": 4}),
        ("Indexed", mf.Indexed, {"space": series.space, "coefficients": series.coefficients}),
        (
            "circle.indexed",
            circle.indexed,
            {"f": lambda s, theta: 1 + 0 * s * theta, "index": series.index},
        ),
        ("indexed.sample", series.sample, {"n": 5, "rng": 0, "ordered": True}),
        ("indexed.at_position", series.at_position, {"s": 0.5}),
        ("indexed.blocks", series.blocks, {"count": 2}),
        ("Density", mf.Density, {"space": circle, "coefficients": wave.coefficients.real}),
        ("Density.at", wave.at, {"points": tokens.x}),
        ("Density.expect", wave.expect, {"f": first}),
        ("Density.moment", wave.moment, {"k": 1}),
        ("Density.moment of Sphere", ball.moment, {"k": 1}),
        ("Density.sample", wave.sample, {"n": 5, "rng": 0}),
        ("Density.sample of Sphere", ball.sample, {"n": 5, "rng": 0}),
        ("Density.rotate", wave.rotate, {"rotation": 0.5}),
        ("Density.rotate of Sphere", ball.rotate, {"rotation": np.eye(3)}),
        ("Density.resample", wave.resample, {"degree": 6}),
        ("Density.stack", mf.Density.stack, {"densities": [wave, wave]}),
        (
            "Density.mixture",
            mf.Density.mixture,
            {"weights": [0.5, 0.5], "densities": [wave, circle.uniform()]},
        ),
        ("Density.checked_positive", wave.checked_positive, {"tolerance": 1e-10}),
        ("Density.warn_if_unresolved", wave.warn_if_unresolved, {"tolerance": 1e-3}),
        (
            "Characteristics",
            mf.Characteristics,
            {"density": wave, "nodes": 256, "limit": [1.0, 0.0]},
        ),
        ("Characteristics.expect", curve.expect, {"f": first}),
        ("Characteristics.moment", curve.moment, {"k": 1}),
        ("Characteristics.coefficients", curve.coefficients, {"degree": 3}),
        ("Characteristics.clusters", curve.clusters, {"radius": 0.1, "least": 0.01}),
        ("Characteristics.w2_to_dirac", curve.w2_to_dirac, {"point": [1.0, 0.0]}),
        (
            "Tokens",
            mf.Tokens,
            {
                "x": tokens.x,
                "masses": [0.5, 0.25, 0.25],
                "radii": [1.0, 2.0, 1.0],
                "on_sphere": True,
            },
        ),
        ("Tokens of R^d", lambda x: mf.Tokens(x, on_sphere=False), {"x": square}),
        ("Tokens.uniform", mf.Tokens.uniform, {"n": 4, "d": 3, "rng": 0, "shape": (2,)}),
        ("Tokens.on_circle", mf.Tokens.on_circle, {"angles": angles, "masses": [0.5, 0.25, 0.25]}),
        (
            "TorusTokens",
            mf.TorusTokens,
            {"angles": [[0.1, 0.2], [1.0, 2.0]], "masses": [0.5, 0.5]},
        ),
        ("Tokens.orthonormal", mf.Tokens.orthonormal, {"n": 3, "d": 4}),
        (
            "Tokens.from_file",
            mf.Tokens.from_file,
            {"path": folder / "x.npy", "key": None, "on_sphere": True, "normalise": False},
        ),
        ("Tokens.to_density", three.to_density, {"space": sphere, "bandwidth": 2.5}),
        ("Tokens.expect", three.expect, {"f": first}),
        ("Tokens.cluster_labels", three.cluster_labels, {"angle": 0.1}),
        ("Gram", mf.Gram, {"G": gram.G, "masses": [0.25] * 4}),
        ("Dirac", mf.Dirac, {"point": [1.0, 0.0]}),
        ("Dirac.expect", mf.Dirac([1.0, 0.0]).expect, {"f": first}),
        ("Gaussian", mf.Gaussian, {"mean": [0.5, 0.0], "cov": square}),
        ("Gaussian.rank", gaussian.rank, {"negligible": 1e-6}),
        ("Gaussian.quadrature", gaussian.quadrature, {"nodes": 4}),
        ("Gaussian.sample", gaussian.sample, {"n": 4, "rng": 0}),
        ("Equiangular", mf.Equiangular, {"n": 8.0, "rho": 0.1, "radius": 1.0}),
        ("Equiangular of gap", lambda n, gap: mf.Equiangular(n, gap=gap), {"n": 8, "gap": 0.5}),
        ("Equiangular.to_tokens", equal.to_tokens, {"d": 8}),
        ("USA", mf.USA, {"beta": 2.0}),
        ("SA", mf.SA, {"beta": 2.0}),
        (
            "CosineSeries",
            mf.CosineSeries,
            {"coefficients": [0.0, 1.0], "name": "own", "derivative": None},
        ),
        (
            "Interaction",
            mf.Interaction,
            {"potential": potential, "name": "own", "tolerance": 1e-12},
        ),
        ("Interaction.chebyshev", mf.Interaction.chebyshev, {"coefficients": [0.0, 1.0]}),
        ("Attention", mf.Attention, {"Q": square, "K": square, "V": square}),
        ("Hardmax", mf.Hardmax, {"Q": square, "K": square, "V": square}),
        ("FeedForward", mf.FeedForward, {"inner": square, "outer": square, "bias": [0.1, 0.2]}),
        ("Rotary", mf.Rotary, {"base": 100.0, "size": 2, "interleaved": False}),
        ("ALiBi", mf.ALiBi, {"slopes": [0.5, 0.25]}),
        ("RelativeBias", mf.RelativeBias, {"values": [0.0, 1.0, 0.5]}),
        ("LayerNorm", mf.LayerNorm, {"gain": [1.0, 2.0], "bias": [0.0, 0.5], "eps": 1e-5}),
        ("RMSNorm", mf.RMSNorm, {"gain": [1.0, 2.0], "eps": 1e-5}),
        ("PreLN", mf.PreLN, {"attention": mf.RMSNorm(), "feedforward": mf.LayerNorm()}),
        ("PostLN", mf.PostLN, {"attention": mf.RMSNorm(), "feedforward": mf.LayerNorm()}),
        ("Field", mf.Field, {"function": np.sin}),
        ("Potential", mf.Potential, {"function": np.sin}),
        ("PeriodicKernel", mf.PeriodicKernel, {"potential": np.add, "circles": 2}),
        ("PairKernel", mf.PairKernel, {"kernel": np.add, "tolerance": 1e-9}),
        ("HigherOrder", mf.HigherOrder, {"modes": [2, -1]}),
        (
            "HigherOrder of densities",
            lambda modes: spread(mf.HigherOrder(modes)),
            {"modes": [2, -1]},
        ),
        (
            "PairKernel of tokens",
            lambda kernel, weight: moved(mf.PairKernel(kernel, weight=weight)),
            {"kernel": turned, "weight": near},
        ),
        (
            "PairKernel of densities",
            lambda kernel, weight: spread(mf.PairKernel(kernel, weight=weight)),
            {"kernel": turned, "weight": near},
        ),
        (
            "Potential of tokens",
            lambda function: moved(mf.Potential(function)),
            {"function": first},
        ),
        (
            "Potential of densities",
            lambda function: spread(mf.Potential(function)),
            {"function": first},
        ),
        ("Torus.density", torus.density, {"f": lambda a, b: 1 + 0.1 * np.cos(a - b)}),
        ("Torus.von_mises", torus.von_mises, {"mean": [0.0, 1.0], "concentration": 0.1}),
        ("Torus.perturbed", torus.perturbed, {"amplitude": 1e-3, "rng": 0, "degrees": [1, 2]}),
        ("Torus.with_degree", torus.with_degree, {"degree": 4}),
        ("Density.at of Torus", plane.at, {"points": places.x}),
        ("Density.moment of Torus", plane.moment, {"k": 1}),
        ("Density.sample of Torus", plane.sample, {"n": 5, "rng": 0}),
        ("Density.rotate of Torus", plane.rotate, {"rotation": [0.5, 0.1]}),
        ("TorusTokens.moment", places.moment, {"k": 1}),
        (
            "wasserstein on the torus",
            mf.wasserstein,
            {"a": places, "b": mf.TorusTokens([[0.3, 0.2], [1.0, 1.0]]), "p": 2},
        ),
        ("mmd on the torus", mf.mmd, {"a": places, "b": plane, "beta": 1.0}),
        (
            "sobolev_distance on the torus",
            mf.sobolev_distance,
            {"a": places, "b": plane, "s": 1, "degree": 8},
        ),
        ("Field of tokens", lambda function: moved(mf.Field(function)), {"function": np.sin}),
        ("Sum", mf.Sum, {"drifts": [drift, attention], "factors": [1.0, 0.5]}),
        ("factor * drift", lambda factor: factor * (drift + attention), {"factor": 2.0}),
        ("drift + drift", lambda drift: mf.USA(1.0) + drift, {"drift": attention}),
        ("PerLayer", mf.PerLayer, {"values": [1.0, 2.0], "duration": 1.0}),
        ("Sigmoid", mf.Sigmoid, {"bias": 0.5}),
        ("Sinkhorn", mf.Sinkhorn, {"tolerance": 1e-10, "most_iterations": 100}),
        ("NGPT", mf.NGPT, {"alpha": 1.0}),
        ("MixLN", mf.MixLN, {"tau": 1.0}),
        ("Anisotropic", Anisotropic, {"sigma": square}),
        ("Causal", mf.Causal, {"divide": "mean", "window": 0.5, "decay": np.cos, "beta": np.exp}),
        ("Positions", mf.Positions, {"breaks": [0, 0.5, 1], "order": 3, "sink": 0.1}),
        ("Classes", mf.Classes, {"values": [0.0, 1.0], "shares": [0.25, 0.75]}),
        ("NormalIndex", mf.NormalIndex, {"width": 1.0, "count": 5, "centre": 0.5}),
        ("OfIndex", mf.OfIndex, {"factor": 0.5}),
        ("Lorentzian", mf.Lorentzian, {"width": 0.5, "centre": 1.0}),
        ("causal tokens", lambda **own: moved(drift, **own), {"causal": "mean"}),
        ("CommonRotations", mf.CommonRotations, {"kappa": 2.0}),
        ("CommonTranslations", mf.CommonTranslations, {"kappa": 2.0}),
        ("CommonMatrix", mf.CommonMatrix, {"kappa": 2.0}),
        ("MultiplicativeIto", mf.MultiplicativeIto, {"scale": size}),
        ("MultiplicativeStratonovich", mf.MultiplicativeStratonovich, {"scale": size}),
        (
            "Transformer",
            mf.Transformer,
            {
                **{"drift": drift, "kappa": 2.0, "normalisation": normalisation.PostLN()},
                **{"noise": noise.Isotropic(), "common": mf.CommonRotations(2.0)},
                **{"reaction": 0.0, "feedforward": None},
            },
        ),
        ("MeanField", mf.MeanField, {"run": run}),
        ("ClosedCovariance", mf.ClosedCovariance, {"model": law.model, "state": gaussian}),
        ("attend tokens", mf.attend, {"drift": drift, "state": three}),
        ("measure", mf.measure, {"model": noisy, "state": wave, "t": 0.0}),
        ("measure tokens", mf.measure, {"model": quiet, "state": three, "t": 0.0}),
        ("cluster_labels", mf.cluster_labels, {"state": three, "angle": 0.1}),
        ("inner_product_histogram", mf.inner_product_histogram, {"state": three, "bins": 10}),
        ("merge_events", mf.merge_events, {"n": 4, "angle": 0.1}),
        ("kernel_modes", mf.kernel_modes, {"tokens": tokens, "beta": 2.0}),
        ("rescaled", mf.rescaled, {"x": square, "V": square, "t": 0.5}),
        ("principal_circle", mf.principal_circle, {"tokens": others.x}),
        ("principal_sphere", mf.principal_sphere, {"tokens": mf.Tokens.uniform(9, 5, rng=0).x}),
        ("goe", goe, {"dimension": 3, "rng": 0, "shape": (2,)}),
        ("ginibre", ginibre, {"dimension": 3, "rng": 0, "shape": (2,), "rows": 2}),
        ("ginibre_product", ginibre_product, {"dimension": 3, "rng": 0, "shape": (2,)}),
        ("wishart", wishart, {"dimension": 3, "rng": 0, "shape": (2,)}),
        ("logarithmic", logarithmic, {"n": 8, "gamma": 1.0, "offset": 0.0}),
        ("power", power, {"n": 8, "d": 3, "factor": 1.0}),
        (
            "solve",
            mf.solve,
            {
                **{"model": noisy, "state": wave, "t_span": span, "t_eval": [0.0, 0.01]},
                **{"rtol": 1e-6, "dt": None, "scheme": None, "until": None, "events": ()},
                **{"callback": None, "observe": None, "min_degree": 8, "max_degree": 16},
                **{"max_steps": 1000, "progress": False, "checkpoint": None},
                **{"checkpoint_every": 60.0, "resume": False, "provenance": None},
                **{"steady_tolerance": 1e-10, "merge": None, "engine": None, "dense": True},
            },
        ),
        (
            "solve tokens",
            mf.solve,
            {
                **{"model": noisy, "state": three, "t_span": span, "t_eval": [0.0, 0.01]},
                **{"dt": 0.01, "rng": 0, "progress": False, "engine": engines.Direct()},
            },
        ),
        (
            "extend",
            mf.extend,
            {
                **{"run": run, "t_end": 0.02, "t_eval": [0.02], "events": None, "callback": None},
                **{"observe": None, "until": None, "max_steps": 1000, "progress": False},
                **{"threads": 1},
            },
        ),
        ("Solution.__call__", kept, {"t": 0.005}),
        ("Solution.__call__ of densities", fluid, {"t": [0.005, 0.01]}),
        ("Solution.save", kept.save, {"path": folder / "other.nc", "dense": True}),
        ("Solution.plot", run.plot, {"kind": "overview"}),
        ("Solution.animate", run.animate, {"path": folder / "movie.gif", "fps": 20.0, "dpi": 20.0}),
        ("load", mf.load, {"path": file}),
        ("wasserstein", mf.wasserstein, {"a": wave, "b": tokens, "p": 2, "up_to_rotation": False}),
        ("wasserstein on S^2", mf.wasserstein, {"a": ball, "b": three, "p": 2, "cells": 200}),
        ("wasserstein of tokens", mf.wasserstein, {"a": three, "b": others, "p": 1}),
        (
            "sliced_wasserstein",
            mf.sliced_wasserstein,
            {"a": three, "b": others, "p": 2, "projections": 8, "rng": 0},
        ),
        (
            "conditional_wasserstein",
            mf.conditional_wasserstein,
            {"a": three, "b": others, "p": 2, "blocks": 2},
        ),
        ("mmd", mf.mmd, {"a": three, "b": ball, "beta": 1.0}),
        (
            "sobolev_distance",
            mf.sobolev_distance,
            {"a": wave, "b": tokens, "s": 1, "degree": 8, "up_to_rotation": False},
        ),
        (
            "sinkhorn_divergence",
            mf.sinkhorn_divergence,
            {"a": three, "b": others, "p": 2, "blur": 0.5, "cells": 100},
        ),
        (
            "stationary",
            mf.stationary,
            {
                **{"model": mf.Transformer(drift, 3.0), "guess": wave, "symmetry": "axisymmetric"},
                **{"apart_from": (), "tolerance": 1e-12, "max_degree": 64},
            },
        ),
        (
            "stationary_states",
            mf.stationary_states,
            {
                **{"model": mf.Transformer(mf.Kuramoto(), 3.0), "space": circle, "count": 2},
                **{"starts": 1, "rng": 0, "symmetry": "axisymmetric"},
            },
        ),
        (
            "basins",
            mf.basins,
            {
                **{"model": mf.Transformer(mf.Kuramoto(), 3.0), "starts": [wave], "rng": 0},
                **{"count": 1, "vary": None, "t_end": 0.1, "rtol": 1e-3, "level": 0.9},
                **{"progress": False},
            },
        ),
        (
            "escape_time",
            mf.escape_time,
            {
                **{"state": mf.stationary(alone, mf.Circle(32).uniform()), "n": 1},
                **{"around": None, "start": [1.0, 0.0]},
            },
        ),
        (
            "first_passages",
            mf.first_passages,
            {
                **{"model": free, "tokens": single, "level": level, "target": 0.6, "t_max": 5.0},
                **{"source": 0.1, "replicas": 32, **rare},
            },
        ),
        (
            "splitting",
            mf.splitting,
            {
                **{"model": free, "tokens": single, "level": level, "source": 0.2, "target": 0.8},
                **{"entrance": 0.25, "replicas": 5, "killed": 1, "repetitions": 2, "loops": 2},
                **rare,
            },
        ),
        ("FirstPassages.exponential_test", passages.exponential_test, {"rng": 1}),
        (
            "transition_path",
            mf.transition_path,
            {"a": left, "b": right, "images": 9, "method": "manifold", "symmetry": "axisymmetric"},
        ),
        ("saddles", mf.saddles, {"state": calm, "symmetry": "axisymmetric"}),
        ("stability", mf.stability, {"model": noisy, "density": circle.uniform(), "count": 2}),
        ("symmetrised", mf.symmetrised, {"density": circle.uniform(), "symmetry": "axisymmetric"}),
        ("StationaryState.stability", state.stability, {"count": 2}),
        (
            "branches",
            mf.branches,
            {
                **{"drift": mf.Kuramoto(), "space": circle, "kappa": (1.5, 2.5)},
                **{"symmetry": "axisymmetric", "degrees": (1,), "secondary": False, "vary": None},
                **{"stability": False, "save_at": (), "max_step": 0.5, "max_points": 20},
                **{"observables": None, "beta": None, "progress": False},
            },
        ),
        (
            "follow",
            lambda **given: [s for s, _ in zip(mf.follow(**given), range(3), strict=False)],
            {
                **{"state": state, "kappa": (2.5, 4.0), "beta": None, "vary": None},
                **{"decreasing": False, "max_step": 0.5, "max_points": 5},
            },
        ),
        (
            "cycle",
            mf.cycle,
            {
                **{"model": driven, "guess": orbit.at(0.0), "period": orbit.period},
                **{"tolerance": 1e-3, "max_degree": 12, "max_intervals": 20},
            },
        ),
        (
            "cycles",
            mf.cycles,
            {
                **{"source": driven, "start": orbit, "kappa": (1.35, 1.45), "vary": None},
                **{"at": 1.4, "tolerance": 1e-3, "max_degree": 12, "max_intervals": 20},
                **{"max_step": 0.3, "max_points": 1, "progress": False},
            },
        ),
        ("Cycle.at", orbit.at, {"phase": 0.3}),
        ("Cycle.run", orbit.run, {"count": 3}),
        (
            "phase_diagram",
            mf.phase_diagram,
            {
                **{"drift": mf.USA, "space": circle, "beta": (1.0, 1.2), "degrees": (1,)},
                **{"max_step": 0.2, "executor": None, "progress": False},
            },
        ),
        ("Diagram.special", diagram.special, {"kind": "bifurcation", "branch": 1}),
        ("Diagram.states_at", diagram.states_at, {"value": 2.2}),
        ("Diagram.ground_state", diagram.ground_state, {"value": 2.2}),
        ("Diagram.curve", diagram.curve, {"degree": 1}),
        ("Diagram.plot", diagram.plot, {"kind": "order_parameter"}),
        ("Diagram.save", diagram.save, {"path": folder / "diagram.nc"}),
        (
            "propagation_of_chaos",
            mf.propagation_of_chaos,
            {
                **{"model": noisy, "mu0": wave, "sizes": [4, 8], "times": [0.0, 0.05], **few},
                **{"distances": ["W1"], "functionals": {"m": mean_of}, "rtol": 1e-6},
                **{"store": None, "executor": None, "progress": False},
            },
        ),
        (
            "sweep",
            mf.sweep,
            {
                **{"f": whole, "parameters": {"theta": [0.0, 1.0]}, "replicas": None, "rng": 1},
                **{"store": None, "executor": None, "errors": "raise", "batch": 1},
                **{"progress": False},
            },
        ),
        ("gradient", mf.gradient, {"f": entropy, "run": run, "parameters": ["beta"]}),
        (
            "lyapunov_exponents",
            mf.lyapunov_exponents,
            {"run": run, "count": 1, "renewals": 2, "rng": 0},
        ),
        ("Functional", mf.Functional, {"value": entropy.value, "variation": entropy.variation}),
        ("Study.rate", study.rate, {"name": "W1", "t": 0.05}),
        ("Study.weak_rate", study.weak_rate, {"name": "x_1", "t": 0.05}),
        ("Study.save", study.save, {"path": folder / "study.nc"}),
        ("Study.load", mf.Study.load, {"path": study.save(folder / "study.nc")}),
        ("Study.plot", study.plot, {"kind": "rates"}),
        ("Diagram.load", mf.Diagram.load, {"path": diagram.save(folder / "diagram.nc")}),
        ("Direct", engines.Direct, {"threads": 1}),
        ("Modes", engines.Modes, {"tolerance": 1e-10, "threads": 1}),
        ("Automatic", engines.Automatic, {"tolerance": 1e-10, "threads": 1}),
        ("read_config", mf.read_config, {"path": config}),
        ("parse_config", mf.parse_config, {"data": mf.read_config(config).data, "source": None}),
        (
            "run_config",
            mf.run_config,
            {
                **{"config": mf.read_config(config), "out": folder / "configured.nc"},
                **{"resume": False, "progress": False},
            },
        ),
        ("build", mf.build, {"family": mf.Drift, "data": {"kind": "USA", "beta": 1.0}}),
        ("describe", mf.describe, {"value": drift}),
        ("schema", mf.schema, {"family": mf.Drift}),
        ("spacetime", plotting.spacetime, {"solution": run, "member": None, "scale": "auto"}),
        ("snapshots", plotting.snapshots, {"solution": run, "times": None, "count": 3}),
        ("spectrum", plotting.spectrum, {"solution": run, "times": None, "count": 3}),
        (
            "observables",
            plotting.observables,
            {"solution": run, "names": ["entropy"], "log_time": False},
        ),
        ("trajectories", plotting.trajectories, {"solution": around, "count": 3}),
        ("paths", plotting.paths, {"solution": path, "count": 3}),
        ("inner_products", plotting.inner_products, {"solution": path, "bins": 10}),
        ("variances", plotting.variances, {"solution": law, "log_time": False}),
        ("ellipses", plotting.ellipses, {"solution": law, "times": None, "count": 3}),
        ("declare", plotting.declare, {"name": "own", "symbol": "$o$", "flat": False}),
        ("rates", plotting.rates, {"study": study, "t": 0.05, "name": "W1"}),
        ("bifurcation", plotting.bifurcation, {"diagram": diagram, "y": None, "log": False}),
    ]
    return listed + [
        (name, kind, good) for name, kind, good in kinds() if name not in named(listed)
    ]


def named(listed):
    """The public names that are called, of functions, classes and methods."""
    return {name.split(".")[0].split(" ")[0] for name, _, _ in listed}


def kinds():
    """(name, kind, good arguments) of all public kinds that numbers make: 1, or their defaults."""
    import meanfield as mf
    from meanfield.core.parameters import parameters_of

    for family in (mf.Drift, mf.Weights, mf.Normalisation, mf.Noise, mf.CommonNoise):
        for name, kind in sorted(family.kinds.items()):
            parameters = parameters_of(kind).items()
            good = {key: 1.0 if p.required else p.default for key, p in parameters}
            try:
                kind(**good)
            except (TypeError, ValueError):
                continue
            yield name, kind, good


NOT_CALLED = {
    *(
        "CheckpointError",
        "ConfigError",
        "MeanfieldError",
        "StorageError",
        "StorageWarning",
        "ShortenedWarning",
        "SlowWarning",
    ),
    *(
        "UnresolvedWarning",
        "Distance",
        "KernelModes",
        "PhaseDiagram",
        "NoisePhaseDiagram",
        "Cusp",
        "FlowTangents",
        "Gradient",
        "LyapunovExponents",
        "StateChange",
        "Tangents",
        "Variation",
        "Rate",
        "SpecialPoint",
    ),
    *("Basins", "StationaryStates", "Stability", "Sweep", "Transition", "Tricritical"),  # results
    *("Saddle", "Saddles", "TransitionPath", "EscapeTime"),  # results
    *("MeanEstimate", "SplittingStudy"),  # results
    *("CycleBranch", "CycleSpecial"),  # results
    "first_lyapunov",  # which takes a Hopf point, see tests/bifurcation/test_cycles.py
    "citation",  # which takes any number of things, see tests/app/test_citation.py
    "doctor",  # which takes nothing
    *("CommonNoise", "Drift", "Motion", "Noise", "Normalisation", "Pointwise"),  # to build on
    *("State", "Weights", "ZonalDrift", "Index", "Frequency", "Norm", "PositionalEncoding"),
    *("Configuration", "LastState", "Start", "TokenMotion"),  # read from files, or to build on
    *("from_pyshtools", "to_pyshtools"),  # need another package
}


# What came of one --------------------------------------------------------------------------------


def nonsense(result):
    """Why what a call returned makes no sense, though it says success; "" if it does."""
    if not isinstance(result, int):
        repr(result)
    parts = getattr(result, "final", getattr(result, "density", result))
    if hasattr(result, "success") and not result.success:
        return ""
    if isinstance(parts, float | np.floating | np.ndarray):
        found = np.asarray(parts)
    elif hasattr(parts, "coefficients") and not callable(parts.coefficients):
        found = np.asarray(parts.coefficients)
    elif hasattr(parts, "x"):
        found = np.asarray(parts.x)
    elif hasattr(parts, "described") and getattr(parts, "has_table", False):
        found = [np.ravel(v) for v in parts.described.values() if isinstance(v, float | np.ndarray)]
        found = np.concatenate(found) if found else np.zeros(0)
    else:
        value = getattr(parts, "value", 0.0)
        found = np.asarray(value) if isinstance(value, float | np.ndarray) else np.zeros(0)
    return "nan" if found.dtype.kind in "fc" and np.isnan(found).any() else ""


def judged(argument, given, error):
    """The outcome of a call that raised: whether the package refused it, in words that help."""
    from meanfield.core.errors import MeanfieldError

    if isinstance(error, OfTheCaller):
        return "error of the caller's function"
    text, frames = str(error), traceback.extract_tb(error.__traceback__)
    where = f"{type(error).__name__}: {text[:150]!r} at {frames[-1].filename}:{frames[-1].lineno}"
    if not isinstance(error, TypeError | ValueError | MeanfieldError):
        return f"FAILED: foreign exception: {where}"
    line = linecache.getline(frames[-1].filename, frames[-1].lineno).strip()
    if "/meanfield/" not in frames[-1].filename or not line.startswith("raise"):
        return f"FAILED: foreign exception: {where}"
    if len(text) > 1000:
        return f"FAILED: a message of {len(text)} characters: {where}"
    named = rf"(?<![a-zA-Z]){argument.rstrip('s')}"
    with_masses = argument in ("angles", "x") and re.search("masses|radii", text)  # as many
    own_file = (
        with_masses
        or argument == "data"
        or (isinstance(error, MeanfieldError) and str(given)[:100] in text)
    )
    if not own_file and not re.search(named, text, re.IGNORECASE):
        return f"FAILED: no name of the argument: {where}"
    return "refused"


def outcome(number):
    """What comes of a call by its number; "" if there is no such value, or for -i - 1 no error.

    Numbers < 0 stand for the calls that are right.
    """
    if number < 0:
        _, function, good = calls()[-number - 1]
        try:
            function(**good)
        except Exception as error:
            return f"FAILED: a call that is right: {type(error).__name__}: {error}"
        finally:
            _close_figures()
        return ""
    call, argument, value = all_calls()[number]
    name, function, good = calls()[call]
    given = hostile(value, good[argument])
    slow = "long" if (name, argument) in LONG else f"FAILED: more than {SECONDS} s"
    if given is None and value.startswith("like: "):
        return ""
    TooSlow.seen = False
    signal.setitimer(signal.ITIMER_PROF, SECONDS, 0.5)  # of the processor; again where it is caught
    try:
        result = function(**{**good, argument: given})
        why = nonsense(result)
    except TooSlow:
        return slow
    except Exception as error:  # whatever it is
        if TooSlow.seen:  # a point of a sweep may raise anything
            return slow
        if argument in FUNCTIONS and callable(given) and value not in RETURNING:
            return "error of the caller's function"
        return judged(argument, given, error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        _close_figures()
    if why:
        return f"FAILED: success with {why}"
    if value in ("masked", "masked array", "like: one masked") and argument not in ANYTHING:
        return "FAILED: a masked array was taken"
    return "accepted"


def _close_figures():
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is not None:
        plt.close("all")


@cache
def all_calls():
    """(call, argument, value) of every one; any first part of them is a fair choice."""
    found = [
        (call, argument, value)
        for call, (_, _, good) in enumerate(calls())
        for argument in good
        for value in VALUES
    ]
    return [found[i] for i in np.random.default_rng(1).permutation(len(found))]


def described(number):
    if number < 0:
        return calls()[-number - 1][0]
    call, argument, value = all_calls()[number]
    return f"{calls()[call][0]}({argument} = {value})"


class TooSlow(BaseException):
    """The end of a call that takes too long; a sweep takes it for an error of one of its points."""

    seen = False


def _too_slow(*_):
    TooSlow.seen = True
    raise TooSlow


def main():
    import resource

    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp())
    signal.signal(signal.SIGPROF, _too_slow)
    calls()
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        answers.write(json.dumps([int(line), described(int(line)), outcome(int(line))]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

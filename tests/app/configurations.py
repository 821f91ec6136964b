"""Small valid configurations, as plain data, and what is made of them."""

from copy import deepcopy
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

import meanfield as mf
from meanfield.app.configuration import parse_config, run_config, schema
from meanfield.app.tasks import TASKS
from meanfield.core.kinds import Kind
from meanfield.core.parameters import parameters_of

ROOT = Path(__file__).resolve().parents[2]
UNIFORM = {"kind": "Uniform", "n": 6, "d": 3, "rng": 1}
ANGLES = {"kind": "Angles", "angles": [0.0, 1.0, 2.0]}
SA = {"kind": "SA", "beta": 1.0}
NOISY = {"drift": SA, "kappa": 3.0}
GOE = {"kind": "GOE", "rng": 3}
LAW = {"kind": "Gaussian", "mean": [0.5, -0.2], "cov": [[1.0, 0.3], [0.3, 0.5]]}
SPAN = {"t_span": [0.0, 0.1], "t_eval": [0.0, 0.05, 0.1]}
FOURIER = {"kind": "Fourier"}


def density(**tables):
    """A small valid configuration of a density, as plain data, with some tables changed."""
    data = {
        "model": {"drift": {"kind": "USA", "beta": 1.0}, "kappa": 3.0},
        "space": {"kind": "Circle", "degree": 16},
        "initial": {"kind": "Fourier", "cos": [0.3, 0.1], "sin": [0.0, 0.0, 0.05]},
        "solve": SPAN,
        **tables,
    }
    return {name: table for name, table in data.items() if table is not None}


def tokens(model=None, x=UNIFORM, solve=None, **initial):
    """A small valid configuration of tokens."""
    return {
        "model": {"drift": SA} if model is None else model,
        "initial": {"kind": "Tokens", "x": x, **initial},
        "solve": {**SPAN, **(solve or {})},
    }


def attention(**keys):
    """The same with Attention."""
    return tokens({"drift": {"kind": "Attention", **keys}})


def gaussian(drift=None, **solve):
    """A small valid configuration of a Gaussian."""
    model = {"drift": {"kind": "Attention", **(drift or {})}}
    return {"model": model, "initial": LAW, "solve": {**SPAN, **solve}}


def equiangular(model=None, solve=None, **initial):
    """A small valid configuration of equiangular tokens."""
    return {
        "model": {"drift": SA} if model is None else model,
        "initial": {"kind": "Equiangular", "n": 32, "rho": 0.0, **initial},
        "solve": {**SPAN, **(solve or {})},
    }


STUDY = {
    "model": {"drift": "Kuramoto", "kappa": 1.0},
    "space": {"kind": "Circle", "degree": 16},
    "initial": {"kind": "Fourier", "cos": [0.5]},
    "chaos": {"sizes": [8, 16], "times": [0.0, 0.2], "replicas": 4, "rng": 3, "dt": 0.1},
}
BRANCHES = {
    "drift": "Kuramoto",
    "space": {"kind": "Circle", "degree": 16},
    "bifurcation": {"kappa": [1.5, 3.0], "save_at": [2.5]},
}
PLANE = {
    "drifts": ["USA", "SA"],
    "space": {"kind": "Circle", "degree": 16},
    "phase_diagram": {"beta": [1.0, 3.5], "degrees": [1]},
}


BASES = {
    "density": density(),
    "tokens": tokens(),
    "attention": attention(),
    "gaussian": gaussian(),
    "equiangular": equiangular(),
    "study": STUDY,
    "branches": BRANCHES,
    "plane": PLANE,
}


def changed(base, changes):
    """A valid configuration with other values at dotted keys; what is None is left out."""
    data = deepcopy(BASES[base])
    for key, value in changes.items():
        *above, last = key.split(".")
        table = reduce(getitem, above, data)
        if value is None:
            del table[last]
        else:
            table[last] = value
    return data


def refusal(data, source=None):
    """The message with which a configuration is refused, when it is read or run."""
    with pytest.raises(mf.ConfigError) as caught:
        run_config(parse_config(data, source=source), progress=False)
    return str(caught.value)


def solved(data, source=None):
    return run_config(parse_config(data, source=source), progress=False)


def state_of(data, source=None):
    return parse_config(data, source=source).begin()


def begun(initial, source=None, **space):
    """The state, of degree 16, that a table [initial] describes."""
    given = density(initial=initial, space={"kind": "Circle", "degree": 16, **space})
    return parse_config(given, source=source).begin()


# Kinds of the package --------------------------------------------------------------------------


def families(base=Kind):
    """All families of the package, by name, but for what the explorer shows: links describe it."""
    found = {}
    for cls in base.__subclasses__():
        ours = cls.__module__.startswith("meanfield.")
        if "kinds" in cls.__dict__ and ours and not cls.__module__.startswith("meanfield.explore"):
            found[cls.__name__] = cls
        found |= families(cls)
    return found


for name in TASKS:
    schema(name)  # imports all that a file can describe
FAMILIES = families()


def of_files(family):
    """The kinds of the package in a family that a file can describe: without functions."""
    return {
        name
        for name, kind in family.kinds.items()
        if kind.__module__.startswith("meanfield.")
        and kind.has_table
        and not any(
            p.required and p.form.json({}) == {"not": {}} for p in parameters_of(kind).values()
        )
    }

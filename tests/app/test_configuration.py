"""Configuration files: all that can be described, what the errors say, what is built from them."""

import json
import re
import tomllib
from copy import deepcopy
from functools import reduce
from inspect import signature
from operator import getitem
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.app.configuration import parse_config, read_config, run_config, schema
from meanfield.app.tasks import BY_PROGRAM, TASKS, Arguments
from meanfield.core.identity import digest
from meanfield.core.kinds import Kind, KindOf, build, describe, parameters_of
from meanfield.core.kinds import schema as schema_of_kinds

ROOT = Path(__file__).resolve().parents[2]
FILES = [*sorted((ROOT / "examples").glob("*.toml")), ROOT / "benchmarks" / "circle.toml"]
UNIFORM = {"kind": "Uniform", "n": 6, "d": 3, "rng": 1}
ANGLES = {"kind": "Angles", "angles": [0.0, 1.0, 2.0]}
SA = {"kind": "SA", "beta": 1.0}
NOISY = {"drift": SA, "kappa": 3.0}
GOE = {"kind": "GOE", "rng": 3}
LAW = {"kind": "Gaussian", "mean": [0.5, -0.2], "cov": [[1.0, 0.3], [0.3, 0.5]]}
SPAN = {"t_span": [0.0, 0.1], "t_eval": [0.0, 0.05, 0.1]}


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


def refusal(data, source=None):
    """The message with which a configuration is refused, when it is read or run."""
    with pytest.raises(mf.ConfigError) as caught:
        run_config(parse_config(data, source=source), progress=False)
    return str(caught.value)


def solved(data, source=None):
    return run_config(parse_config(data, source=source), progress=False)


# All that can be described ---------------------------------------------------------------------

numbers = st.floats(-50, 50)
positive = st.floats(1e-3, 1e3)
natural = st.integers(1, 9)
seeds = st.integers(0, 2**40)
ensembles = numbers | st.lists(numbers, min_size=1, max_size=3)
positive_ensembles = positive | st.lists(positive, min_size=1, max_size=3)
series = st.lists(numbers, max_size=3)
laws = st.just("Uniform") | st.fixed_dictionaries(
    {"kind": st.just("VonMises"), "concentration": st.floats(0, 9)}, optional={"mean": numbers}
)
matrices = st.sampled_from([2.0, [[1.0, 0.0], [0.5, 2.0]], [[[1.0]], [[2.0]]], GOE])
weights = st.sampled_from(["Softmax", "L2", {"kind": "Sigmoid", "bias": -1.5}])
DRAWN = {"n": st.integers(2, 5), "d": st.integers(2, 5), "rng": seeds}
RANDOM = ({"rng": seeds}, {"scale": numbers, "columns": natural, "heads": natural})
NONE: tuple = ({}, {})

EVERY = {  # of every kind: strategies of what it requires, and of what may be left out
    "Drift": {
        "USA": ({"beta": ensembles}, {}),
        "SA": ({"beta": ensembles}, {}),
        "Kuramoto": NONE,
        "CosineSeries": (
            {"coefficients": st.lists(numbers, min_size=2, max_size=4), "name": st.just("W")},
            {},
        ),
        "Attention": (
            {},
            {"Q": matrices, "weights": weights, "causal": st.booleans(), "beta": numbers},
        ),
        "Hardmax": ({}, {"V": matrices, "ties": st.floats(0, 1e-6)}),
    },
    "Weights": {
        "Softmax": NONE,
        "Unnormalised": NONE,
        "L2": NONE,
        "Linear": NONE,
        "Sigmoid": ({}, {"bias": numbers}),
        "Sinkhorn": ({}, {"tolerance": positive, "most_iterations": natural}),
    },
    "Normalisation": {
        "PostLN": NONE,
        "PreLN": NONE,
        "PeriLN": NONE,
        "SqrtScaling": NONE,
        "MixLN": ({"tau": positive}, {}),
        "NGPT": ({}, {"alpha": positive}),
    },
    "Noise": {
        "Isotropic": NONE,
        "CommonNoise": NONE,
        "Anisotropic": ({"sigma": st.just([[2.0, 0.5], [0.5, 1.0]])}, {}),
    },
    "FeedForward": {
        "FeedForward": (
            {"inner": st.just([[1.0, 2.0]]), "outer": st.just([[1.0], [0.0]])},
            {"bias": st.just([0.5]), "activation": st.sampled_from(["relu", "tanh"])},
        )
    },
    "Given": {
        "FromFile": ({"file": st.just("numbers.npz")}, {"key": st.just("a")}),
        "PerLayer": (
            {"values": st.lists(numbers, min_size=1, max_size=4) | st.just([GOE, GOE])},
            {"duration": positive},
        ),
        "Ginibre": (RANDOM[0], {**RANDOM[1], "rows": natural}),
        "GinibreProduct": RANDOM,
        "GOE": RANDOM,
        "Wishart": RANDOM,
        "Logarithmic": ({}, {"gamma": ensembles, "offset": ensembles}),
        "Power": ({}, {"d": natural, "factor": ensembles}),
    },
    "Geometry": {
        "Circle": ({"degree": natural}, {}),
        "Sphere": ({"degree": natural}, {}),
        "Zonal": ({"dimension": st.integers(2, 9), "degree": natural}, {}),
    },
    "Points": {
        "Angles": ({"angles": st.lists(numbers, min_size=2, max_size=4)}, {}),
        "Orthonormal": ({"n": st.integers(2, 4)}, {"d": st.integers(4, 6)}),
        "Normal": (DRAWN, {"replicas": natural}),
        "Uniform": (DRAWN, {"replicas": natural}),
        "File": ({"file": st.just("numbers.npz")}, {"key": st.just("a")}),
    },
    "Start": {
        "Uniform": NONE,
        "Fourier": ({}, {"cos": series, "sin": series}),
        "VonMises": ({"concentration": st.floats(0, 9)}, {"mean": numbers}),
        "VonMisesFisher": ({"concentration": st.floats(0, 9)}, {"mean": st.just([0.0, 0.6, 0.8])}),
        "Legendre": ({"coefficients": series}, {"axis": st.just([0.0, 0.6, 0.8])}),
        "Perturbed": (
            {"amplitude": positive, "rng": seeds},
            {"degrees": st.lists(natural, min_size=1, max_size=3)},
        ),
        "Sample": (
            {"file": st.just("numbers.npz")},
            {"key": st.just("a"), "layer": st.integers(0, 3), "bandwidth": positive},
        ),
        "Mixture": (
            {
                "components": st.lists(
                    st.fixed_dictionaries({"weight": positive, "law": laws}), min_size=1
                )
            },
            {},
        ),
        "Ensemble": ({"members": st.lists(laws, min_size=1)}, {}),
        "AlongCharacteristics": ({"law": laws}, {"nodes": natural, "limit": st.just([1.0, 0.0])}),
        "SampledTokens": ({"law": laws, "n": natural, "rng": seeds}, {"replicas": natural}),
        "Tokens": (
            {"x": st.sampled_from([[[0.6, 0.8], [1.0, 0.0]], {**UNIFORM, "n": 2}])},
            {"masses": st.just([0.25, 0.75]), "radii": st.just([1.0, 2.0])},
        ),
        "Gram": ({"G": st.just([[1.0, 0.5], [0.5, 1.0]])}, {"masses": st.just([0.25, 0.75])}),
        "Equiangular": (
            {
                "n": positive_ensembles.map(lambda n: np.add(n, 2).tolist()),
                "rho": st.floats(0, 0.9),
            },
            {"radius": positive},
        ),
        "Gaussian": ({"mean": st.just(LAW["mean"]), "cov": st.just(LAW["cov"])}, {}),
    },
    "Weighted": {"Weighted": ({"weight": positive, "law": laws}, {})},
    "Summation": {
        "Direct": ({}, {"threads": natural}),
        "Modes": ({}, {"threads": natural, "tolerance": positive}),
        "Automatic": ({}, {"threads": natural, "tolerance": positive}),
    },
    "Times": {
        "Linspace": ({"count": st.integers(2, 99)}, {}),
        "Geomspace": ({"count": st.integers(2, 99), "first": positive}, {}),
    },
    "Transformer": {
        "Transformer": (
            {"drift": st.sampled_from(["Kuramoto", SA, "Attention"])},
            {
                "kappa": (positive_ensembles | st.just(np.inf)),
                "normalisation": st.sampled_from(["PreLN", {"kind": "NGPT", "alpha": 0.5}]),
                "reaction": numbers,
            },
        )
    },
}


def families(base=Kind):
    """All families of the package, by name."""
    found = {}
    for cls in base.__subclasses__():
        if "kinds" in cls.__dict__ and cls.__module__.startswith("meanfield."):
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
        and kind.kept
        and not any(
            p.required and p.form.json({}) == {"not": {}} for p in parameters_of(kind).values()
        )
    }


def test_every_kind_is_tried_below():
    tried = {name: set(kinds) for name, kinds in EVERY.items()}
    assert tried == {name: of_files(family) for name, family in FAMILIES.items()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory, with a file of numbers."""
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "numbers.npz", a=np.eye(2), b=np.ones(3))
    return tmp_path


@pytest.mark.parametrize("kind", [f"{f}.{k}" for f, kinds in EVERY.items() for k in kinds])
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_kind_survives_its_own_json(folder, kind, data):
    """Provenance must be enough to build it again, bit for bit: inf, arrays and defaults too."""
    family, name = kind.split(".")
    required, optional = EVERY[family][name]
    table = {"kind": name, **data.draw(st.fixed_dictionaries(required, optional=optional))}
    made = build(FAMILIES[family], table)
    described = describe(made)
    again = build(FAMILIES[family], json.loads(json.dumps(described, allow_nan=False)))
    assert type(made).__name__ == name and type(again) is type(made)
    if name == "Equiangular":  # kept as its logit, which rho and gap round
        np.testing.assert_allclose(again.logit, made.logit, rtol=1e-13, atol=1e-13)
    else:
        assert digest(again) == digest(made) and describe(again) == described
    definitions = {}
    assert not faults(table, KindOf(FAMILIES[family]).json(definitions), definitions)


@pytest.mark.parametrize("family", EVERY)
def test_a_kind_without_parameters_is_written_as_its_name(family):
    for name, (required, _) in EVERY[family].items():
        if not required:
            assert digest(build(FAMILIES[family], name)) == digest(
                build(FAMILIES[family], {"kind": name})
            )


# JSON schemas ----------------------------------------------------------------------------------

WORDS = {"$schema", "$ref", "$defs", "title", "description", "default", "type", "properties"}
WORDS |= {"required", "additionalProperties", "items", "anyOf", "enum", "const", "not"}
WORDS |= {"minimum", "exclusiveMinimum", "minItems", "uniqueItems"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "number": (int, float)}
TYPES["integer"] = int


def faults(data, node, definitions):
    """Why data do not fit a JSON schema, of the words that ours have; [] if they do."""
    assert node.keys() <= WORDS, node.keys() - WORDS
    if "$ref" in node:
        return faults(data, definitions[node["$ref"].removeprefix("#/$defs/")], definitions)
    if "anyOf" in node and all(faults(data, one, definitions) for one in node["anyOf"]):
        return [f"{data!r} fits none of them"]
    kind = node.get("type")
    boolean = isinstance(data, bool) and kind != "boolean"
    if kind is not None and (boolean or not isinstance(data, TYPES[kind])):
        return [f"{data!r} is no {kind}"]
    wrong = [f"{data!r} is not {word}" for word in ("const",) if data != node.get(word, data)]
    if data not in node.get("enum", [data]) or node.get("not") == {}:
        wrong.append(f"{data!r} is not allowed")
    if kind in ("number", "integer"):
        low = data < node.get("minimum", data) or not data > node.get("exclusiveMinimum", -np.inf)
        wrong += [f"{data} is too small"] if low else []
    if kind == "array":
        few = len(data) < node.get("minItems", 0)
        same = node.get("uniqueItems") and len(set(map(str, data))) < len(data)
        wrong += ["too few, or equal entries"] if few or same else []
        for entry in data:
            wrong += faults(entry, node.get("items", {}), definitions)
    if kind == "object":
        wrong += [f"no {key}" for key in node.get("required", []) if key not in data]
        further = node.get("additionalProperties", {})
        for key, value in data.items():
            inner = node.get("properties", {}).get(key, further)
            wrong += [f"unknown {key}"] if inner is False else faults(value, inner, definitions)
    return wrong


def kind_of(data):
    return next((work for work in TASKS if work in data), "solve")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_files_of_the_experiments_are_valid(path):
    config = read_config(path)
    again = parse_config(json.loads(json.dumps(config.data, allow_nan=False)), source=path)
    assert again.data == config.data and type(again) is type(config)
    root = schema(kind_of(config.data))
    assert not faults(config.data, root, root["$defs"])


@pytest.mark.parametrize("work", TASKS)
def test_a_schema_is_json_with_the_words_of_docstrings(work):
    root = schema(work)
    assert json.loads(json.dumps(root, allow_nan=False)) == root
    assert work in root["required"] and not root["additionalProperties"]
    references = set(re.findall(r'"#/\$defs/([^"]+)"', json.dumps(root)))
    assert references == set(root["$defs"])
    for name, node in root["$defs"].items():
        assert node["description"], name
        for key, entry in node["properties"].items():
            assert key == "kind" or entry.get("description"), f"{name}: what is {key}?"
    with pytest.raises(ValueError, match="solve"):
        schema("stud")


@pytest.mark.parametrize("data", [density(), tokens(), gaussian(), equiangular(), STUDY, BRANCHES])
def test_what_the_schema_refuses_the_reader_refuses(data):
    """Every table without each of its keys, and with a key too many."""
    root, refused = schema(kind_of(data)), 0
    for table, content in data.items():
        if isinstance(content, dict):
            fewer = [{k: v for k, v in content.items() if k != key} for key in content]
            for variant in [{**content, "beta_": 1.0}, *fewer]:
                given = {**data, table: variant}
                if faults(given, root, root["$defs"]):
                    refused += 1
                    with pytest.raises(mf.ConfigError):
                        parse_config(given)
    assert refused >= 5


def test_the_schema_of_a_family_has_all_of_its_kinds():
    root = schema_of_kinds(FAMILIES["Weights"])
    names = {node["properties"]["kind"]["const"] for node in root["$defs"].values()}
    assert names >= set(EVERY["Weights"])


# Reading ---------------------------------------------------------------------------------------


def test_a_file_reads_like_its_data(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        'title = "inf"\n[model]\ndrift = "Kuramoto"\nkappa = inf\n[space]\nkind = "Circle"\n'
        'degree = 8\n[initial]\nkind = "Uniform"\n[solve]\nt_span = [0, 1]\n'
    )
    config = read_config(path)
    assert config.tables["model"].kappa == np.inf and config.tables["title"] == "inf"
    assert config.source == path and config.data["model"]["kappa"] == "inf"


def test_the_arguments_of_a_file_are_those_of_python():
    """All but those that only a program can give; what is left out is left to Python."""
    functions = {
        "solve": mf.solve,
        "chaos": mf.propagation_of_chaos,
        "bifurcation": mf.branches,
        "phase_diagram": mf.phase_diagram,
    }
    assert set(functions) == set(TASKS)
    for work, function in functions.items():
        table = TASKS[work].required()[work]
        assert isinstance(table, Arguments)
        assert set(table.keys) == set(signature(function).parameters) - BY_PROGRAM
        assert set(schema(work)["properties"][work]["properties"]) == set(table.keys)
    given = {**SPAN, "rtol": 1e-6, "dt": 0.1, "until": "steady", "steady_tolerance": 1e-3}
    given |= {"min_degree": 8, "max_degree": 64, "max_steps": 9, "checkpoint_every": 7.0}
    found = parse_config(density(solve=given)).tables["solve"]
    assert found.keys() == given.keys() and found["rtol"] == 1e-6
    options = {
        "scheme": "Layers",
        "dt": 0.1,
        "merge": 1e-6,
        "engine": {"kind": "Direct", "threads": 2},
    }
    found = parse_config(tokens(solve=options)).tables["solve"]
    assert found["scheme"] is mf.steppers.Layers
    assert found["engine"] == mf.engines.Direct(threads=2)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"kind": "Linspace", "count": 5}, np.linspace(1, 3, 5)),
        ({"kind": "Geomspace", "count": 3, "first": 0.02}, [1.0, 1.02, 3.0]),
        ([1.0, 1.5], [1.0, 1.5]),
    ],
)
def test_output_times_are_listed_or_spaced(times, expected):
    given = density(solve={"t_span": [1.0, 3.0], "t_eval": times})
    np.testing.assert_allclose(solved(given).t, expected, rtol=1e-15)


# Refusing --------------------------------------------------------------------------------------

FOURIER = {"kind": "Fourier"}
MEMBERS = {"kind": "Ensemble", "members": ["Uniform"]}
SKEW = {"kind": "Anisotropic", "sigma": [[1, 2], [0, 1]]}
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


REFUSED = {  # of which configuration, what is changed, the key that is named, and what is said
    "density": [
        ({"model.drift": "Usa"}, "model.drift.kind", 'got "Usa"; did you mean USA'),
        ({"model.drift": 3}, "model.drift", "table.*got 3"),
        ({"model.drift": {"beta": 1.0}}, "model.drift.kind", "Kuramoto.*missing"),
        ({"space": {"kind": "Torus", "degree": 8}}, "space.kind", "Circle, Sphere, Zonal"),
        ({"space": 8}, "space", "table.*got 8"),
        ({"initial": {"kind": "vonmises"}}, "initial.kind", "did you mean VonMises"),
        (
            {"initial": {"kind": "Ensemble", "members": [{"kind": "x"}]}},
            "initial.members[0].kind",
            '"x"',
        ),
        ({"solve.scheme": "Layer"}, "solve.scheme", "Krogstad.*Strang.*did you mean Layers"),
        ({"solve.until": "Steady"}, "solve.until", "did you mean steady"),
        ({"space.degre": 8}, "space.degre", "did you mean degree"),
        ({"space.degree": None}, "space.degree", "required.*missing"),
        ({"model.drift": {"kind": "Kuramoto", "beta": 1}}, "model.drift.beta", "unknown key"),
        ({"model": None}, "model", "required"),
        ({"initial": None}, "initial", "required"),
        ({"rtol": 0.001}, "rtol", r"did you mean rtol in \[solve\]"),
        ({"spaec": 1}, "spaec", "did you mean space"),
        ({"model.drift.beta": "4"}, "model.drift.beta", 'got "4"'),
        ({"model.drift.beta": np.nan}, "model.drift.beta", "finite.*nan"),
        ({"model.drift.beta": "inf"}, "model.drift.beta", "finite.*inf"),
        ({"model.drift.beta": True}, "model.drift.beta", "got true"),
        ({"model.drift.beta": [1.0, True]}, "model.drift.beta", "got true"),
        ({"model.drift.beta": []}, "model.drift.beta", "finite"),
        ({"model.drift.beta": [[1], [1, 2]]}, "model.drift.beta", "rows of equal length"),
        ({"model.drift.beta": {"x": 1}}, "model.drift.beta.kind", "Logarithmic.*missing"),
        (
            {"model.drift.beta": GOE},
            "model.drift.beta.kind",
            "expected one of FromFile, Logarithmic, Power, ",
        ),
        (
            {"model.drift.beta": {"kind": "PerLayer", "values": [1, 2]}},
            "model.drift.beta.kind",
            "Logarithmic",
        ),
        ({"model.kappa": 0}, "model.kappa", "> 0.*got 0"),
        ({"model.kappa": [1, -2]}, "model.kappa", r"> 0.*got \[1, -2\]"),
        ({"model.kappa": np.nan}, "model.kappa", "> 0.*got nan"),
        ({"model.kappa": {"a": 1}}, "model.kappa", "got a table"),
        (
            {"model.drift": {"kind": "SA", "beta": [1, 2]}, "model.kappa": [1, 2, 3]},
            "model",
            r"kappa has shape \(3,\)",
        ),
        ({"space.degree": 0}, "space", ">= 1.*got degree = 0"),
        ({"space.degree": 8.5}, "space.degree", "whole.*8.5"),
        ({"initial.cos": [0, "a"]}, "initial.cos", 'got "a"'),
        ({"initial.sin": 1}, "initial.sin", r"shape \(\)"),
        ({"initial.cos": [np.inf]}, "initial.cos", "finite"),
        ({"initial": {"kind": "VonMises", "concentration": -1}}, "initial.concentration", ">= 0"),
        ({"initial": {"kind": "Mixture", "components": []}}, "initial.components", "at least"),
        (
            {"initial": {"kind": "Mixture", "components": [{"law": "Uniform"}]}},
            "initial.components[0].weight",
            "required",
        ),
        ({"initial": {"kind": "Ensemble", "members": []}}, "initial.members", "at least"),
        ({"title": 3}, "title", "string.*got 3"),
        ({"solve.t_span": [0, 0]}, "solve.t_span", "start < end"),
        ({"solve.t_span": [1, 0]}, "solve.t_span", "start < end"),
        ({"solve.t_span": [0, "1"]}, "solve.t_span[1]", "finite"),
        ({"solve.t_span": 1}, "solve.t_span", "array.*got 1"),
        ({"solve.t_span": None}, "solve.t_span", "required"),
        ({"solve.rtol": 0}, "solve.rtol", "> 0"),
        ({"solve.rtol": 1e-20}, "solve.rtol", "1e-13"),
        ({"solve.dt": -1}, "solve.dt", "> 0.*got -1"),
        ({"solve.t_eval": [0, 2]}, "solve.t_eval", "within"),
        ({"solve.t_eval": [0.5, 0.5]}, "solve.t_eval", "increase"),
        ({"solve.t_eval": []}, "solve.t_eval", "times"),
        ({"solve.t_eval": {"kind": "Linspace", "count": 1}}, "solve.t_eval.count", ">= 2"),
        ({"solve.t_eval": {"kind": "Geomspace", "count": 5, "first": 3}}, "solve.t_eval", "within"),
        ({"solve.steady_tolerance": 0.001}, "solve.steady_tolerance", "until"),
        (
            {"solve.min_degree": 64, "solve.max_degree": 32},
            "solve",
            "min_degree = 64, max_degree = 32",
        ),
        ({"solve.max_degree": 8, "solve.min_degree": 8}, "solve", "max_degree = 8 and degree 16"),
        ({"solve.checkpoint_every": -1}, "solve.checkpoint_every", ">= 0"),
        ({"space": None}, "initial", r"\[space\]"),
        ({"initial.cos": [1.5]}, "initial", "negative"),
        ({"initial.cos": [0.0] * 17}, "initial", "17"),
        (
            {
                "initial": {
                    "kind": "Ensemble",
                    "members": ["Uniform", {"kind": "Fourier", "sin": [2]}],
                }
            },
            "initial",
            r"members\[1\]: .*negative",
        ),
        ({"space": {"kind": "Sphere", "degree": 4}}, "initial", "Fourier.*Legendre"),
        (
            {
                "space": {"kind": "Zonal", "dimension": 4, "degree": 4},
                "initial": {"kind": "Legendre", "coefficients": [0.1], "axis": [0, 0, 1]},
            },
            "initial",
            "axis",
        ),
        ({"model.drift": "Hardmax"}, "solve", "Hardmax.*Tokens"),
        ({"model": {"drift": SA, "reaction": 1}}, "solve", "reaction"),
        ({"model": {"drift": SA, "normalisation": "PreLN"}}, "solve", "normalisation"),
        ({"model.drift": {"kind": "SA", "beta": "Logarithmic"}}, "model", "number of tokens"),
        ({"solve.rng": 1}, "solve.rng", "Tokens"),
        ({"solve.merge": 0.01}, "solve.merge", "Tokens"),
        ({"solve.engine": "Direct"}, "solve.engine", "Tokens"),
    ],
    "tokens": [
        (
            {"initial.x": {"kind": "Unifrm", "n": 6, "d": 3, "rng": 1}},
            "initial.x.kind",
            "did you mean Uniform",
        ),
        ({"initial.x": "Uniform"}, "initial.x.n", "required"),
        ({"model.normalisation": "preln"}, "model.normalisation.kind", "mean PreLN"),
        ({"solve.engine": "Mode"}, "solve.engine.kind", "did you mean Modes"),
        ({"model.normalisation": "MixLN"}, "model.normalisation.tau", "required"),
        ({"space": {"kind": "Circle", "degree": 8}}, "initial", r"\[space\]"),
        ({"initial.x.n": 1}, "solve", "n >= 2"),
        ({"initial.x.d": 1}, "initial", "d >= 2"),
        ({"initial.x": [[1, 0], [1]]}, "initial.x", "rows of equal length"),
        ({"initial.x": [1, 0]}, "initial", r"\(n, d\)"),
        ({"initial.x": [[1, 1], [1, 0]]}, "initial", "unit vectors"),
        ({"initial.x": {"kind": "Orthonormal", "n": 3, "d": 2}}, "initial.x", "n <= d"),
        ({"initial.x": {"kind": "Normal", "n": 6, "d": 3, "rng": 1}}, "initial", "on_sphere"),
        ({"initial.on_sphere": False}, "solve", "Attention"),
        ({"initial.masses": [1.0]}, "initial", "6 masses"),
        ({"initial.radii": [2.0] * 6}, "solve", "PreLN"),
        ({"initial.x.n": 10**15}, "initial", "GB.*smaller n"),
        ({"initial.x": {"kind": "Orthonormal", "n": 10**15}}, "initial", "GB.*smaller n"),
        ({"solve.max_degree": 64}, "solve.max_degree", "Density"),
        ({"solve.merge": 0.2}, "solve.merge", "0.1.*got 0.2"),
        ({"initial.x.replicas": 2, "solve.merge": 1e-08}, "solve", "replicas"),
        ({"solve.scheme": "Strang"}, "solve", "DormandPrince"),
        ({"solve.scheme": "Layers"}, "solve", "needs dt"),
        ({"model.kappa": 3.0}, "solve.rng", "required.*repeated"),
        ({"solve.rng": 2}, "solve.rng", "kappa = inf"),
        ({"solve.rng": 1}, "initial.x.rng", "and solve.rng are both 1"),
        ({"model.kappa": 3.0, "solve.rng": 2, "solve.merge": 1e-08}, "solve", "without noise"),
        (
            {"model.kappa": 3.0, "solve.rng": 2, "solve.scheme": "Layers", "solve.dt": 1},
            "solve",
            "Strang",
        ),
        ({"model.noise": "CommonNoise"}, "model", "kappa = inf"),
        ({"model.noise": SKEW, "solve.rng": 2}, "model.noise", "symmetric"),
    ],
    "attention": [
        ({"model.drift.weights": "L3"}, "model.drift.weights.kind", 'got "L3"; did you mean L2'),
        (
            {"model.drift.K": {"kind": "GUE", "rng": 1}},
            "model.drift.K.kind",
            'got "GUE"; did you mean GOE',
        ),
        ({"model.drift.V": {"kind": "GOE"}}, "model.drift.V.rng", "required"),
        (
            {"model.drift.Q": {"kind": "GOE", "rg": 1, "rng": 1}},
            "model.drift.Q.rg",
            "did you mean rng",
        ),
        ({"model.drift.Q": {"kind": "Logarithmic"}}, "model.drift.Q.kind", "GOE.*Wishart"),
        ({"model.drift.Q": "x"}, "model.drift.Q", 'got "x"'),
        ({"model.drift.Q": [1, 2]}, "model.drift.Q", r"shape \(2,\)"),
        (
            {"model.drift.Q": [[1, 2]], "model.drift.K": [[1, 2, 3]]},
            "model.drift.Q",
            "equal shapes",
        ),
        (
            {"model.drift.V": {"kind": "PerLayer", "values": [1, {"kind": "GOE", "rng": -1}]}},
            "model.drift.V.values[1].rng",
            ">= 0",
        ),
        (
            {"model.drift.V": {"kind": "PerLayer", "values": [1.0, GOE]}},
            "model",
            r"one shape.*\(\), \(3, 3\)",
        ),
        (
            {"model.drift.beta": {"kind": "PerLayer", "values": []}},
            "model.drift.beta.values",
            "PerLayer",
        ),
        (
            {"model.drift.weights": {"kind": "Sigmoid", "bias": "x"}},
            "model.drift.weights.bias",
            "finite",
        ),
        ({"solve.engine": "Modes"}, "solve", "one way"),
        ({"model.reaction": 1.0}, "solve", "reaction"),
        (
            {"model.drift.V": {"kind": "GOE", "rng": 1}},
            "model.drift.V.rng",
            "and initial.x.rng are both 1",
        ),
    ],
    "gaussian": [
        ({"initial.men": [0]}, "initial.men", "did you mean mean"),
        ({"initial.cov": [[1, 0.3], [0.2, 1]]}, "initial", "symmetric"),
        ({"initial.cov": [[1, 0.3]]}, "initial", r"\(1, 2\)"),
        ({"model.drift.weights": "Sigmoid"}, "solve", "affine"),
        ({"model.drift.weights": {"kind": "Sinkhorn", "tolerance": 0.5}}, "solve", "tolerance"),
        ({"model.drift.causal": True}, "solve", "causal"),
        ({"model.drift.beta": [1, 2]}, "solve", "single model"),
        ({"model.drift.beta": "Logarithmic"}, "model", "number of tokens"),
        ({"solve.rng": 1}, "solve.rng", "Tokens"),
        ({"model.kappa": 2.0}, "solve", "without noise"),
        ({"model.drift": SA}, "solve", "Attention"),
        ({"space": {"kind": "Circle", "degree": 3}}, "initial", r"\[space\]"),
    ],
    "equiangular": [
        ({"initial.gap": 0.5}, "initial", "both"),
        ({"initial.rho": None}, "initial", "neither"),
        ({"initial.n": -3}, "initial.n", "> 0"),
        ({"initial.rho": 1.0}, "initial", "rho < 1"),
        ({"model.kappa": 2.0}, "solve", "[Nn]oise"),
        ({"model.drift": "Hardmax"}, "solve", "Hardmax"),
        ({"solve.rng": 1}, "solve", "rng"),
        ({"solve.scheme": "Strang"}, "solve", "DormandPrince.*Layers"),
        ({"solve.scheme": "Layers"}, "solve", "needs dt"),
        ({"model.drift.beta": [1, 2], "initial.n": [3, 4, 5]}, "solve", r"\(3,\)"),
        (
            {"model.drift.beta": {"kind": "Logarithmic", "gamma": "x"}},
            "model.drift.beta.gamma",
            '"x"',
        ),
        ({"model.drift.beta": "Power"}, "model", "needs d"),
    ],
    "study": [
        ({"chaos.sizes": [16, 8]}, "chaos.sizes", "increasing"),
        ({"chaos.sizes": [1, 8]}, "chaos.sizes", ">= 2"),
        ({"chaos.sizes": [8.5, 16]}, "chaos.sizes[0]", "whole number; got 8.5"),
        ({"chaos.times": [-1, 2.0]}, "chaos.times", ">= 0"),
        ({"chaos.replicas": 1}, "chaos", ">= 2.*got replicas = 1"),
        ({"chaos.rng": None}, "chaos.rng", "required"),
        ({"chaos.rngs": 3}, "chaos.rngs", "did you mean rng"),
        ({"chaos.rng": 10**20}, "chaos.rng", r"2\^63"),
        ({"chaos.distances": ["W3"]}, "chaos", "W1, W2"),
        ({"chaos.distances": "W1"}, "chaos.distances", "array"),
        ({"chaos.floor": 1}, "chaos.floor", "got 1"),
        ({"chaos.dt": 0.0}, "chaos.dt", "> 0"),
        ({"model.kappa": [1.0, 2.0]}, "chaos", "single model"),
        ({"model.reaction": 1.0}, "chaos", "reaction"),
        ({"initial": MEMBERS}, "chaos", "single density"),
        ({"initial": {"kind": "Tokens", "x": UNIFORM}}, "initial.kind", '"Tokens"'),
        (
            {"space": {"kind": "Zonal", "dimension": 3, "degree": 9}, "initial": "Uniform"},
            "chaos",
            "Zonal",
        ),
        ({"solve": {"t_span": [0.0, 1.0]}}, "solve", "unknown key"),
    ],
    "branches": [
        ({"bifurcation.kappa": [3.0, 1.5]}, "bifurcation.kappa", "first < last"),
        ({"bifurcation.kappa": 2.0}, "bifurcation.kappa", "range"),
        ({"bifurcation.kappa": [0.0, 2.0]}, "bifurcation.kappa", "0 < first"),
        ({"bifurcation.save_at": [5.0]}, "bifurcation.save_at", "1.5 to 3"),
        ({"bifurcation.saveat": [2.0]}, "bifurcation.saveat", "did you mean save_at"),
        ({"bifurcation.degrees": [2]}, "bifurcation", "degree 2"),
        ({"bifurcation.max_points": 0}, "bifurcation", ">= 1"),
        ({"bifurcation.stability": 1}, "bifurcation.stability", "got 1"),
        ({"bifurcation.symmetry": "octahedral"}, "bifurcation.symmetry", "octahedral"),
        ({"drift": "Attention"}, "bifurcation", "Attention"),
        ({"drift": "USA"}, "bifurcation", "beta"),
        ({"drift": {"kind": "USA", "beta": [1.0, 2.0]}}, "bifurcation", "single"),
        ({"model": {"drift": "Kuramoto"}}, "model", "unknown key"),
    ],
    "plane": [
        ({"drifts": "USA"}, "drifts", 'array.*got "USA"'),
        ({"drifts": []}, "drifts", "array"),
        ({"drifts": ["USA", "USA"]}, "drifts", "at most once"),
        ({"drifts": ["USA", "UAS"]}, "drifts[1]", 'got "UAS"; did you mean USA'),
        ({"drifts": ["Kuramoto"]}, "phase_diagram", "Kuramoto"),
        ({"phase_diagram.beta": [3.5]}, "phase_diagram.beta", "range"),
        ({"phase_diagram.degrees": 1}, "phase_diagram.degrees", "array.*got 1"),
    ],
}


@pytest.mark.parametrize(
    ("base", "changes", "key", "message"),
    [(base, *case) for base, cases in REFUSED.items() for case in cases],
)
def test_what_is_wrong_is_refused_by_key(base, changes, key, message):
    text = refusal(changed(base, changes), source="run.toml")
    assert all(line.startswith("run.toml: ") for line in text.splitlines())
    first = text.splitlines()[0].removeprefix("run.toml: ")
    assert first.startswith((f"{key}: ", f"{key} and ")), text
    assert re.search(message, text), text
    if base != "density":
        assert key.split(".")[-1] + ": " + key.split(".")[-1] + " must" not in text


def test_all_problems_are_reported_at_once_each_with_the_file():
    data = density(title=3, space={"kind": "Circle", "degre": 8}, solve={"t_span": 1, "rtol": "x"})
    data["model"] = {"drift": {"kind": "USA", "beta": "a"}, "kappa": -1, "noise": "Common"}
    lines = refusal(data, source="folder/run.toml").splitlines()
    assert all(line.startswith("folder/run.toml: ") for line in lines)
    keys = {line.split(": ")[1] for line in lines}
    assert keys == {
        *("title", "space.degree", "space.degre", "solve.t_span", "solve.rtol"),
        *("model.drift.beta", "model.kappa", "model.noise.kind"),
    }


def test_without_a_file_the_key_comes_first():
    assert refusal(tokens(NOISY)).startswith("solve.rng: ")
    assert refusal(density(initial={**FOURIER, "cos": [1.5]})).startswith("initial: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[model]\ndrift = \nbeta = 1\n", r"run\.toml: not TOML: .*line 2, column 9"),
        (b"[model]\nbeta = [1,\n", r"run\.toml: not TOML: .*end of document"),
        (b"\x89HDF\r\n", r"run\.toml: expected a TOML file"),
    ],
)
def test_a_malformed_file_is_refused_by_line(tmp_path, content, message):
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(mf.ConfigError, match=message):
        read_config(path)


def test_a_missing_file_is_named_with_the_place_where_it_was_sought(tmp_path):
    with pytest.raises(mf.ConfigError, match="no such configuration file") as caught:
        read_config(tmp_path / "gone.toml")
    assert str(tmp_path / "gone.toml") in str(caught.value)
    with pytest.raises(mf.ConfigError, match="cannot be read"):
        read_config(tmp_path)
    with pytest.raises(TypeError, match="path"):
        read_config(3)


def test_memory_that_is_not_there_is_told_by_key():
    config = parse_config(tokens(), source="run.toml")
    with (
        pytest.raises(mf.ConfigError, match=r"run.toml: solve: .*more memory .*allocate 9 PiB"),
        config.blaming("solve"),
    ):
        raise MemoryError("Unable to allocate 9 PiB")


def test_seeds_may_be_equal_where_equal_numbers_are_wanted():
    """Of the matrices of a model, and of the members of an ensemble; else not."""
    parse_config(attention(Q=GOE, V={"kind": "PerLayer", "values": [GOE, GOE]}))
    noise = {"kind": "Perturbed", "amplitude": 0.01, "rng": 1}
    parse_config(density(initial={"kind": "Ensemble", "members": [noise, noise]}))
    drawn = {"kind": "SampledTokens", "law": noise, "n": 5, "rng": 1}
    assert "initial.law.rng and initial.rng are both 1" in refusal(density(initial=drawn))


def test_a_run_needs_a_configuration_and_a_file_to_resume():
    config = parse_config(density())
    with pytest.raises(TypeError, match="read_config"):
        run_config({"solve": {}})
    with pytest.raises(ValueError, match="resume"):
        run_config(config, resume=True)
    with pytest.raises(ValueError, match="resume"):
        run_config(parse_config(PLANE), "plane.nc", resume=True)


# Densities -------------------------------------------------------------------------------------


def begun(initial, source=None, **space):
    """The state, of degree 16, that a table [initial] describes."""
    given = density(initial=initial, space={"kind": "Circle", "degree": 16, **space})
    return parse_config(given, source=source).begin()


@given(a=st.floats(-0.3, 0.3), b=st.floats(-0.3, 0.3))
def test_fourier_is_the_series_it_says(a, b):
    found = begun({**FOURIER, "cos": [a, 0.1], "sin": [b]})
    theta = found.geometry.angles
    expected = 1 + a * np.cos(theta) + 0.1 * np.cos(2 * theta) + b * np.sin(theta)
    np.testing.assert_allclose(found.values, expected, atol=1e-14)


def test_laws_are_the_methods_of_spaces():
    axis, circle, sphere = [0.0, 0.6, 0.8], mf.Circle(16), mf.Sphere(16)
    fisher = {"kind": "VonMisesFisher", "concentration": 3.0}
    noise = {"kind": "Perturbed", "amplitude": 0.01, "rng": 3}
    pairs = [
        (begun("Uniform"), circle.uniform()),
        (
            begun({"kind": "VonMises", "concentration": 2.0, "mean": 1.0}),
            circle.von_mises(1.0, 2.0),
        ),
        (begun({**noise, "degrees": [1, 2]}), circle.perturbed(0.01, rng=3, degrees=[1, 2])),
        (begun({**fisher, "mean": axis}, kind="Sphere"), sphere.von_mises_fisher(axis, 3.0)),
        (
            begun(fisher, kind="Zonal", dimension=64),
            mf.Zonal(64, 16).von_mises_fisher(concentration=3.0),
        ),
        (
            begun({"kind": "Legendre", "coefficients": [0.5], "axis": axis}, kind="Sphere"),
            sphere.zonal([1, 0.5], axis=axis),
        ),
        (begun(noise, kind="Zonal", dimension=3), mf.Zonal(3, 16).perturbed(0.01, rng=3)),
    ]
    for found, expected in pairs:
        assert found.geometry == expected.geometry
        np.testing.assert_array_equal(found.coefficients, expected.coefficients)


def test_a_mixture_is_the_weighted_mean_of_its_components():
    peak = {"kind": "VonMises", "mean": 1.0, "concentration": 2.0}
    parts = [{"law": peak, "weight": 3.0}, {"law": "Uniform", "weight": 1.0}]
    mixed = begun({"kind": "Mixture", "components": parts})
    np.testing.assert_allclose(mixed.values, 0.75 * begun(peak).values + 0.25, atol=1e-15)


def test_an_ensemble_has_the_members_it_lists():
    members = [{"kind": "Perturbed", "amplitude": 0.01, "rng": seed} for seed in (1, 2, 1)]
    found = begun({"kind": "Ensemble", "members": members})
    assert found.shape == (3,)
    one, two, again = found.coefficients
    assert np.array_equal(one, again) and not np.allclose(one, two)


def test_characteristics_of_a_law():
    law = {"kind": "Legendre", "coefficients": [0.5]}
    given = {"kind": "AlongCharacteristics", "law": law, "nodes": 4096, "limit": [0.0, 0.0, 1.0]}
    found = begun(given, kind="Sphere", degree=8)
    assert isinstance(found, mf.Characteristics) and len(found) <= 4096
    assert found.limit.tolist() == [0, 0, 1]
    for wrong, message in ((4, "integrate"), (0, ">= 1")):
        with pytest.raises(mf.ConfigError, match=f"initial.*{message}"):
            begun({**given, "nodes": wrong}, kind="Sphere", degree=8)
    with pytest.raises(mf.ConfigError, match=r"initial: .*unit vector"):
        begun({**given, "limit": [0.0, 1.0]}, kind="Sphere", degree=8)


def test_a_series_of_cosines_is_the_potential_over_the_angle():
    """W = cos(theta) is Kuramoto, whatever its constant."""
    drift = {"kind": "CosineSeries", "coefficients": [7.0, 1.0]}
    found = parse_config(density(model={"drift": drift})).tables["model"].drift
    known = mf.Kuramoto().attraction(8, 2)
    np.testing.assert_allclose(found.attraction(8, 2)[1:], known[1:], atol=1e-15)


def test_angles_vectors_and_hidden_states_in_a_plane_give_the_same_density(tmp_path):
    """The projection keeps the plane of planar tokens, up to a rotation or reflection of it."""
    rng = np.random.default_rng(0)
    angles = rng.vonmises(0.5, 2.0, 200)
    vectors = mf.Circle.embed(angles)
    hidden = np.stack([rng.standard_normal((200, 2)), 3 * vectors]) @ np.eye(2, 5)
    np.save(tmp_path / "angles.npy", angles)
    np.savetxt(tmp_path / "vectors.csv", vectors, delimiter=",")
    np.savez(tmp_path / "hidden.npz", hidden=hidden, names=np.array(["a"]))
    sample, source = {"kind": "Sample", "bandwidth": 0.5}, tmp_path / "run.toml"
    one = begun({**sample, "file": "angles.npy"}, source)
    two = begun({**sample, "file": "vectors.csv"}, source)
    three = begun({**sample, "file": "hidden.npz", "key": "hidden", "layer": 1}, source)
    np.testing.assert_allclose(two.coefficients, one.coefficients, atol=1e-14)
    np.testing.assert_allclose(abs(three.coefficients), abs(one.coefficients), atol=1e-13)
    states = rng.standard_normal((300, 20)) + 0.5
    np.save(tmp_path / "states.npy", states)
    on_sphere = begun({**sample, "file": "states.npy"}, source, kind="Sphere")
    expected = mf.Sphere(16).estimate(mf.principal_sphere(states), bandwidth=0.5)
    np.testing.assert_array_equal(on_sphere.coefficients, expected.coefficients)


BAD_FILES = [
    ("x.npy", b"", {}, "numbers"),
    ("x.npz", b"PK\x03\x04broken", {}, "numbers"),
    ("x.csv", b"1,2\n3,x\n", {}, "numbers"),
    ("x.npz", {"a": np.ones(3), "b": np.ones(3)}, {}, "key.* a, b"),
    ("x.npz", {"a": np.ones(3)}, {"key": "c"}, "key.*'c'"),
    ("x.npz", {"a": np.array(["x"])}, {}, "real numbers"),
    ("x.npz", {"a": np.ones((2, 3, 4))}, {}, "layer = 0 to 1; got none"),
    ("x.npz", {"a": np.ones((2, 3, 4))}, {"layer": 2}, "layer = 0 to 1; got 2"),
    ("x.npz", {"a": np.ones(3)}, {"layer": 0}, r"layer = 0 needs an array \(layers, n, d\)"),
    ("x.npz", {"a": np.full((3, 4), np.nan)}, {}, "3 not finite"),
    ("x.npz", {"a": np.ones((3, 0))}, {}, r"empty; got shape \(3, 0\)"),
    ("x.npz", {"a": np.ones((3, 2))}, {}, "worst length"),
]


@pytest.mark.parametrize(("name", "content", "keys", "message"), BAD_FILES)
def test_a_bad_sample_file_is_refused_by_key(tmp_path, name, content, keys, message):
    path = tmp_path / name
    np.savez(path, **content) if isinstance(content, dict) else path.write_bytes(content)
    with pytest.raises(mf.ConfigError, match=rf"run.toml: initial.*: .*{message}"):
        begun({"kind": "Sample", "file": name, **keys}, tmp_path / "run.toml")


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (density(initial={"kind": "Sample", "file": "gone.npy"}), "initial.file"),
        (tokens(x={"kind": "File", "file": "gone.npy"}), "initial.x.file"),
        (attention(Q={"kind": "FromFile", "file": "gone.npy"}), "model.drift.Q.file"),
    ],
)
def test_data_files_are_looked_for_beside_the_configuration(tmp_path, data, key):
    source = tmp_path / "run.toml"
    text = refusal(data, source)
    assert f"{key}: " in text and '"gone.npy"' in text and str(tmp_path / "gone.npy") in text
    text = refusal(json.loads(json.dumps(data).replace("gone.npy", "gone.txt")), source)
    assert f"{key}: " in text and ".npz" in text


# Tokens and models -----------------------------------------------------------------------------


def state_of(data, source=None):
    return parse_config(data, source=source).begin()


def test_positions_are_those_of_python(tmp_path):
    uniform = state_of(tokens(x={**UNIFORM, "replicas": 2}))
    assert np.array_equal(uniform.x, mf.Tokens.uniform(6, 3, rng=1, shape=(2,)).x)
    assert np.array_equal(state_of(tokens(x=ANGLES)).x, mf.Tokens.on_circle([0.0, 1.0, 2.0]).x)
    basis = state_of(tokens(x={"kind": "Orthonormal", "n": 2, "d": 4}, masses=[0.25, 0.75]))
    assert np.array_equal(basis.x, np.eye(2, 4)) and basis.masses.tolist() == [0.25, 0.75]
    plane = state_of(tokens(x={**UNIFORM, "kind": "Normal"}, on_sphere=False))
    assert np.array_equal(plane.x, np.random.default_rng(1).standard_normal((6, 3)))
    np.savez(tmp_path / "x.npz", a=uniform.x, b=[0.5, 1.5])
    for key, expected in (("a", uniform.x), ("b", mf.Tokens.on_circle([0.5, 1.5]).x)):
        found = state_of(
            tokens(x={"kind": "File", "file": "x.npz", "key": key}), tmp_path / "run.toml"
        )
        assert np.array_equal(found.x, expected)
    gram = state_of({**tokens(), "initial": {"kind": "Gram", "G": ANGLES}})
    assert isinstance(gram, mf.Gram) and gram.G[0, 1] == pytest.approx(np.cos(1.0), rel=1e-15)


def test_tokens_are_sampled_from_a_law():
    drawn = {"kind": "SampledTokens", "law": {**FOURIER, "cos": [0.5]}, "n": 4000, "rng": 5}
    found = begun({**drawn, "replicas": 4}, degree=8)
    assert found.shape == (4,) and len(found) == 4000
    means = found.x[..., 0].mean(axis=1)  # 1/4, with variance 1/2 - 1/16
    assert np.abs(means - 0.25).max() < 4 * np.sqrt(0.4375 / 4000)
    assert len(set(means)) == 4


def test_replicas_come_before_the_ensemble_of_the_model():
    model = {"drift": {"kind": "SA", "beta": [[1.0], [2.0]]}}
    for initial in (
        {"kind": "Tokens", "x": {**UNIFORM, "replicas": 4}},
        {"kind": "Gram", "G": {**UNIFORM, "replicas": 4}},
    ):
        given = {"model": {**model, "kappa": [np.inf] * 3}, "initial": initial, "solve": SPAN}
        assert solved(given).shape == (4, 2, 3)


def test_matrices_are_drawn_read_or_written(tmp_path):
    np.savez(tmp_path / "weights.npz", q=np.diag([1.0, 2.0, 3.0]), v=np.eye(3))
    two = {"heads": 2}
    q = {"kind": "Ginibre", "rows": 2, "rng": 3, **two}
    v = {"kind": "PerLayer", "values": [{**GOE, **two}, {"kind": "Wishart", "rng": 5, **two}]}
    run = solved(attention(Q=q, K={**q, "rng": 4, "scale": 0.5}, V={**v, "duration": 0.5}))
    drift = run.model.drift
    assert np.array_equal(drift.Q, mf.ensembles.ginibre(3, 3, (2,), rows=2))
    assert np.array_equal(drift.K, 0.5 * mf.ensembles.ginibre(3, 4, (2,), rows=2))
    expected = [mf.ensembles.goe(3, 3, (2,)), mf.ensembles.wishart(3, 5, (2,))]
    assert np.array_equal(drift.V.values, expected) and drift.V.duration == 0.5
    read = {"kind": "FromFile", "file": "weights.npz", "key": "q"}
    per_layer = {"kind": "PerLayer", "values": [1, 2]}
    drift = solved(attention(Q=read, beta=per_layer), tmp_path / "run.toml").model.drift
    assert np.array_equal(drift.Q, np.diag([1.0, 2.0, 3.0])) and drift.K == 1.0
    assert drift.beta.values.tolist() == [1, 2]
    text = refusal(attention(Q={**read, "key": "x"}), tmp_path / "run.toml")
    assert "run.toml: model: " in text and "'x'" in text


def test_a_perceptron_and_a_reaction_reach_the_model():
    table = {"inner": [[1, 2, 3]], "outer": [[1], [0], [0]], "bias": [2], "activation": "tanh"}
    given = tokens({"drift": SA, "feedforward": table, "reaction": 0.5})
    model = parse_config(given).tables["model"]
    assert model.feedforward(np.ones(3)).tolist() == [np.tanh(8.0), 0, 0]
    assert model.reaction == 0.5


def test_what_is_left_out_is_as_in_python():
    for name in ("Attention", "Hardmax", "Kuramoto"):
        model = parse_config(tokens({"drift": name})).tables["model"]
        assert model == mf.Transformer(getattr(mf, name)())
    with_default = parse_config(tokens({"drift": SA, "noise": "Isotropic"})).tables["model"]
    assert with_default == mf.Transformer(mf.SA(1.0)) and not with_default.noisy


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        ({"kind": "Logarithmic", "gamma": 2.0}, 2 * np.log([32, 1e12])),
        (
            {"kind": "Logarithmic", "gamma": [1.0, 2.0], "offset": 1},
            [1 + np.log(32), 1 + 2 * np.log(1e12)],
        ),
        ({"kind": "Power", "d": 5, "factor": 0.5}, np.sqrt([32, 1e12]) / 2),
    ],
)
def test_beta_may_grow_with_the_number_of_tokens(beta, expected):
    run = solved(equiangular({"drift": {"kind": "SA", "beta": beta}}, n=[32.0, 1e12]))
    np.testing.assert_allclose(run.model.drift.beta, expected, rtol=1e-15)
    assert run.provenance["config"]["model"]["drift"]["beta"] == beta


@pytest.mark.parametrize("drift", ["SA", "Attention"])
def test_beta_of_tokens_knows_their_number(drift):
    beta = {"kind": "Logarithmic", "gamma": [1.0, 2.0]}
    run = solved(tokens({"drift": {"kind": drift, "beta": beta}}, x=ANGLES))
    np.testing.assert_allclose(run.observables["beta"], np.log(3) * np.array([1, 2]), rtol=1e-15)


@pytest.mark.parametrize(
    ("normalisation", "gap"),
    [("PostLN", 7.8028862e-8), ("PreLN", 1.590707e-2), ("NGPT", 6.4724415e-9)],
)
def test_equiangular_tokens_end_at_the_known_gap(normalisation, gap):
    times = {"t_span": [0.0, 10.0], "t_eval": [10.0], "rtol": 1e-12}
    run = solved(equiangular({"drift": SA, "normalisation": normalisation}, times))
    np.testing.assert_allclose(run.final.gap, gap, rtol=4e-7)


def test_arrays_make_an_ensemble_and_layers_are_taken():
    solve = {"t_span": [0.0, 2.0], "t_eval": {"kind": "Linspace", "count": 5}}
    given = equiangular(
        {"drift": {"kind": "SA", "beta": [[0.0], [1.0]]}}, {**solve, "scheme": "Layers", "dt": 0.5}
    )
    given["initial"] = {"kind": "Equiangular", "n": [4.0, 1e12, 8.5], "gap": 1e-3}
    run = solved(given)
    assert run.shape == (2, 3) and len(run) == 5 and run.stats["schemes"] == {"Layers": 4}


@pytest.mark.parametrize("kind", ["Softmax", "L2", "Sinkhorn", "Linear"])
def test_a_gaussian_is_solved_as_in_python(kind, tmp_path):
    config = parse_config(gaussian({"V": [[1, 2], [0, 1]], "weights": kind}))
    run = run_config(config, tmp_path / "run.nc", progress=False)
    model = mf.Transformer(mf.Attention(V=[[1, 2], [0, 1]], weights=getattr(mf, kind)()))
    same = mf.solve(model, mf.Gaussian(LAW["mean"], LAW["cov"]), (0, 0.1), t_eval=[0, 0.05, 0.1])
    np.testing.assert_array_equal(run.final.cov, same.final.cov)
    np.testing.assert_array_equal(mf.load(tmp_path / "run.nc").final.mean, same.final.mean)


def test_random_matrices_have_the_dimension_of_the_gaussian():
    run = solved(gaussian({"Q": GOE, "weights": "L2"}))
    np.testing.assert_array_equal(run.model.drift.Q, mf.ensembles.goe(2, 3))


# What is kept of a run -------------------------------------------------------------------------

KEPT = {
    "density": density(),
    "ensemble": changed("density", {"model.drift": SA, "model.kappa": [1.0, np.inf]}),
    "sphere": density(
        space={"kind": "Sphere", "degree": 8}, initial={"kind": "Legendre", "coefficients": [0.5]}
    ),
    "zonal": density(
        space={"kind": "Zonal", "dimension": 64, "degree": 8},
        initial={"kind": "VonMisesFisher", "concentration": 1.0},
    ),
    "characteristics": density(
        model={"drift": SA},
        initial={"kind": "AlongCharacteristics", "law": {**FOURIER, "cos": [0.5]}},
    ),
    "tokens": tokens(),
    "noise": tokens(NOISY, {**UNIFORM, "replicas": 2}, {"rng": 2, "dt": 0.05}),
    "layers": tokens(solve={"scheme": "Layers", "dt": 0.05}),
    "pre-LN": tokens({"drift": SA, "normalisation": "PreLN"}),
    "attention": attention(Q=GOE, weights="L2"),
    "gram": {**tokens(), "initial": {"kind": "Gram", "G": UNIFORM}},
    "gaussian": gaussian(),
    "equiangular": equiangular(),
}


@pytest.mark.parametrize("data", KEPT.values(), ids=KEPT)
def test_a_run_can_be_repeated_from_its_result_alone(data, tmp_path):
    run_config(parse_config(data), tmp_path / "run.nc", progress=False)
    run = mf.load(tmp_path / "run.nc")
    again = solved(run.provenance["config"])
    assert np.array_equal(run.t, again.t) and run.model == again.model
    assert [digest(state) for state in run.states] == [digest(state) for state in again.states]
    assert not (tmp_path / "run.nc.checkpoint").exists()


def test_the_result_records_which_data_it_was_made_from(tmp_path):
    np.save(tmp_path / "x.npy", mf.Tokens.uniform(8, 3, rng=0).x)
    np.save(tmp_path / "q.npy", np.eye(3))
    drift = {"kind": "Attention", "Q": {"kind": "FromFile", "file": "q.npy"}}
    data, source = (
        tokens({"drift": drift}, {"kind": "File", "file": "x.npy"}),
        tmp_path / "run.toml",
    )
    before = solved(data, source).provenance["data_files"]
    assert [Path(name).name for name in sorted(before)] == ["q.npy", "x.npy"]
    assert all(len(entry["sha256"]) == 64 for entry in before.values())
    np.save(tmp_path / "q.npy", 2 * np.eye(3))
    after = solved(data, source).provenance["data_files"]
    assert {name for name in after if after[name] != before[name]} == {str(tmp_path / "q.npy")}


# Documentation ---------------------------------------------------------------------------------

PAGE = ROOT / "docs" / "configuration.md"
MARK = re.compile(r"^<!-- kinds: (\w+) -->\n(?:\n(?:\|.*\n)+)?", re.M)


def table(family):
    """The table of the documentation for a family: names, keys and first lines of docstrings."""
    rows = ["| kind | keys | what it is |", "|---|---|---|"]
    for name in sorted(of_files(FAMILIES[family])):
        kind = FAMILIES[family].kinds[name]
        keys = [f"`{k}`" if p.required else f"(`{k}`)" for k, p in parameters_of(kind).items()]
        first = (kind.__doc__ or "").strip().split("\n")[0].replace("|", "\\|")
        rows.append(f"| `{name}` | {', '.join(keys) or 'none'} | {first} |")
    return f"<!-- kinds: {family} -->\n\n" + "\n".join(rows) + "\n"


def with_tables(page):
    """A page with the tables that the classes say."""
    return MARK.sub(lambda found: table(found[1]), page)


def test_the_documentation_has_every_kind():
    """If this fails: python tests/app/test_configuration.py writes the tables again."""
    page = PAGE.read_text(encoding="utf-8")
    shown = {found[1] for found in MARK.finditer(page)}
    assert shown == set(EVERY) - {"Transformer", "FeedForward", "Weighted"}
    assert with_tables(page).splitlines() == page.splitlines()


@pytest.mark.parametrize("work", TASKS)
def test_every_argument_is_in_the_documentation(work):
    for key in TASKS[work].required()[work].keys:
        assert re.search(rf"^\| `{key}` \|", PAGE.read_text(encoding="utf-8"), re.M), (
            f"{key} of [{work}]"
        )


def test_the_first_example_of_the_documentation_is_a_run():
    (example,) = re.findall(r"```toml\n(title.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert parse_config(tomllib.loads(example)).begin().geometry.degree == 128


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

"""Every kind that a file can describe: its plain data, its JSON schema, and what that refuses."""

import json
import re

import numpy as np
import pytest
from configurations import (
    BRANCHES,
    FAMILIES,
    GOE,
    LAW,
    ROOT,
    SA,
    STUDY,
    UNIFORM,
    density,
    equiangular,
    gaussian,
    of_files,
    tokens,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.app.configuration import parse_config, read_config, schema
from meanfield.app.tasks import TASKS
from meanfield.core.descriptions import KindOf, build, describe
from meanfield.core.descriptions import schema as schema_of_kinds
from meanfield.core.identity import digest

FILES = [*sorted((ROOT / "examples").glob("*.toml")), ROOT / "benchmarks" / "circle.toml"]


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
vectors = st.just([1.0, -0.5]) | st.just({"kind": "PerLayer", "values": [[1.0, 2.0], [0.5, 1.0]]})
norms = st.sampled_from(["RMSNorm", {"kind": "LayerNorm", "gain": [1.0, 2.0], "eps": 1e-5}])
weights = st.sampled_from(["Softmax", "L2", {"kind": "Sigmoid", "bias": -1.5}])
DRAWN = {"n": st.integers(2, 5), "d": st.integers(2, 5), "rng": seeds}
RANDOM = (
    {"rng": seeds},
    {"scale": numbers, "columns": natural, "heads": natural, "per_replica": st.booleans()},
)
NONE: tuple = ({}, {})
FACTORS = st.just([0.5, 2.0]) | st.just({"kind": "Logarithmic"})

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
            {
                **{"Q": matrices, "weights": weights, "causal": st.booleans(), "beta": numbers},
                "positions": st.just({"kind": "ALiBi", "slopes": 0.5}),
            },
        ),
        "HigherOrder": (
            {"modes": st.lists(st.sampled_from([1, -1, 2, 64]), min_size=1, max_size=5)},
            {},
        ),
        "Hardmax": ({}, {"V": matrices, "ties": st.floats(0, 1e-6)}),
        "FeedForward": (
            {"inner": st.just([[1.0, 2.0]]), "outer": st.just([[1.0], [0.0]])},
            {
                "bias": st.just([0.5]),
                "activation": st.sampled_from(["relu", "gelu_tanh", "silu", "tanh"]),
                "outer_bias": st.just([0.5, 1.0]),
                "gate": st.just([[0.0, -1.0]]),
            },
        ),
        "Sum": (
            {"drifts": st.just([SA, {"kind": "Sum", "drifts": ["Attention"]}])},
            {"factors": st.lists(numbers | FACTORS, min_size=2, max_size=2)},
        ),
    },
    "Weights": {
        "Softmax": NONE,
        "Unnormalised": NONE,
        "L2": NONE,
        "Linear": NONE,
        "Sigmoid": ({}, {"bias": numbers}),
        "Sinkhorn": ({}, {"tolerance": positive, "most_iterations": natural}),
    },
    "PositionalEncoding": {
        "Rotary": (
            {},
            {"base": positive, "size": st.sampled_from([2, 4]), "interleaved": st.booleans()},
        ),
        "ALiBi": ({"slopes": st.just([0.5, 0.25]) | st.just(0.5)}, {}),
        "RelativeBias": ({"values": st.just([0.0, 1.0, 0.5])}, {}),
    },
    "Norm": {
        "LayerNorm": (
            {},
            {"gain": vectors, "bias": vectors, "eps": st.floats(0, 1)},
        ),
        "RMSNorm": ({}, {"gain": vectors, "eps": st.floats(0, 1)}),
    },
    "Normalisation": {
        "PostLN": ({}, {"attention": norms, "feedforward": norms}),
        "PreLN": ({}, {"attention": norms, "feedforward": norms}),
        "PeriLN": NONE,
        "SqrtScaling": NONE,
        "MixLN": ({"tau": positive}, {}),
        "NGPT": ({}, {"alpha": positive}),
    },
    "Noise": {
        "Isotropic": NONE,
        "Anisotropic": ({"sigma": st.just([[2.0, 0.5], [0.5, 1.0]])}, {}),
    },
    "Causal": {
        "Causal": ({}, {"divide": st.sampled_from(["mean", "sum"]), "window": positive}),
    },
    "Frequency": {
        "OfIndex": ({}, {"factor": numbers}),
        "Lorentzian": ({"width": positive}, {"centre": numbers}),
    },
    "CommonNoise": {
        "CommonRotations": ({"kappa": positive_ensembles}, {}),
        "CommonTranslations": ({"kappa": positive_ensembles}, {}),
        "CommonMatrix": ({"kappa": positive_ensembles}, {}),
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
    "Space": {
        "Circle": ({"degree": natural}, {}),
        "Sphere": ({"degree": natural}, {}),
        "Torus": ({"degree": natural}, {"dimension": st.integers(1, 3)}),
        "Zonal": ({"dimension": st.integers(2, 9), "degree": natural}, {}),
    },
    "Index": {
        "Positions": (
            {},
            {"breaks": st.just([0.0, 0.3, 1.0]), "order": natural, "sink": st.floats(0, 0.9)},
        ),
        "Classes": ({"values": st.just([0.0, 2.0])}, {"shares": st.just([0.25, 0.75])}),
        "NormalIndex": ({"width": positive}, {"count": natural, "centre": numbers}),
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
        "LastState": ({"file": st.just("run.nc")}, {}),
        "Mixture": (
            {
                "components": st.lists(
                    st.fixed_dictionaries({"weight": positive, "law": laws}), min_size=1
                )
            },
            {},
        ),
        "Ensemble": ({"members": st.lists(laws, min_size=1)}, {}),
        "AlongIndex": (
            {"laws": st.lists(laws, min_size=2, max_size=2)},
            {"at": st.just([0.0, 0.5]), "index": st.just({"kind": "Positions", "order": 3})},
        ),
        "AlongCharacteristics": ({"law": laws}, {"nodes": natural, "limit": st.just([1.0, 0.0])}),
        "SampledTokens": ({"law": laws, "n": natural, "rng": seeds}, {"replicas": natural}),
        "Tokens": (
            {"x": st.sampled_from([[[0.6, 0.8], [1.0, 0.0]], {**UNIFORM, "n": 2}])},
            {"masses": st.just([0.25, 0.75]), "radii": st.just([1.0, 2.0])},
        ),
        "TorusTokens": (
            {"angles": st.just([[0.5, 1.0], [2.0, 3.0]])},
            {"masses": st.just([0.25, 0.75])},
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
                "frequency": st.sampled_from(["OfIndex", {"kind": "Lorentzian", "width": 2.0}]),
                "causal": st.sampled_from(["mean", {"kind": "Causal", "divide": "sum"}]),
            },
        )
    },
}


def test_every_kind_is_tried_below():
    tried = {name: set(kinds) for name, kinds in EVERY.items()}
    assert tried == {name: of_files(family) for name, family in FAMILIES.items()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with a file of numbers, and one named like a result."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.nc").touch()
    np.savez(tmp_path / "numbers.npz", a=np.eye(2), b=np.ones(3))
    return tmp_path


@pytest.mark.repeats
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
    assert refused >= 4


def test_the_schema_of_a_family_has_all_of_its_kinds():
    root = schema_of_kinds(FAMILIES["Weights"])
    names = {node["properties"]["kind"]["const"] for node in root["$defs"].values()}
    assert names >= set(EVERY["Weights"])

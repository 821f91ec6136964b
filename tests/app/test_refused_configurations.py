"""What is wrong in a configuration is refused by its key, in words that help."""

import re

import numpy as np
import pytest
from configurations import (
    FOURIER,
    GOE,
    NOISY,
    SA,
    UNIFORM,
    attention,
    changed,
    density,
    refusal,
    tokens,
)

import meanfield as mf
from meanfield.app.configuration import parse_config

MEMBERS = {"kind": "Ensemble", "members": ["Uniform"]}
SKEW = {"kind": "Anisotropic", "sigma": [[1, 2], [0, 1]]}


REFUSED = {  # of which configuration, what is changed, the key that is named, and what is said
    "density": [
        ({"model.drift": "Usa"}, "model.drift.kind", 'got "Usa"; did you mean USA'),
        ({"model.drift": 3}, "model.drift", "table.*got 3"),
        ({"model.drift": {"beta": 1.0}}, "model.drift.kind", "Kuramoto.*missing"),
        ({"space": {"kind": "Cube", "degree": 8}}, "space.kind", "Circle, Sphere, Torus, Zonal"),
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
        ({"model.kappa": {"a": 1}}, "model.kappa.kind", "PerLayer"),
        (
            {"model.drift": {"kind": "SA", "beta": [1, 2]}, "model.kappa": [1, 2, 3]},
            "model",
            r"kappa of shape \(3,\)",
        ),
        ({"space.degree": 0}, "space.degree", ">= 1; got 0"),
        ({"space.degree": 8.5}, "space.degree", "whole.*8.5"),
        ({"initial.cos": [0, "a"]}, "initial.cos", 'got "a"'),
        ({"initial.sin": 1}, "initial.sin", r"array\(1\.\)"),
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
        ({"solve.t_span": 1}, "solve.t_span", r"\(start, end\); got 1"),
        ({"solve.t_span": None}, "solve.t_span", "required"),
        ({"solve.rtol": 0}, "solve.rtol", "> 0"),
        ({"solve.rtol": 1e-20}, "solve.rtol", "1e-13"),
        ({"solve.dt": -1}, "solve.dt", "> 0.*got -1"),
        ({"solve.t_eval": [0, 2]}, "solve.t_eval", "within"),
        ({"solve.t_eval": [0.5, 0.5]}, "solve.t_eval", "increase"),
        ({"solve.t_eval": []}, "solve.t_eval", "times"),
        ({"solve.breaks": [0.5, 0.2]}, "solve.breaks", "increase"),
        ({"solve.breaks": [99.0]}, "solve.breaks", "within"),
        ({"solve.breaks": 0.5}, "solve.breaks", "array"),
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
        (
            {"initial.x": {"kind": "Orthonormal", "n": 3, "d": 2}},
            "initial.x.n",
            "from 2 to d = 2; got 3",
        ),
        ({"initial.x": {"kind": "Normal", "n": 6, "d": 3, "rng": 1}}, "initial", "on_sphere"),
        ({"initial.on_sphere": False}, "solve", "Attention"),
        ({"initial.masses": [1.0]}, "initial", "6 masses"),
        ({"initial.radii": [2.0] * 6}, "solve", "PreLN"),
        ({"initial.x.n": 10**15}, "initial", "GB.*reduce n"),
        ({"initial.x": {"kind": "Orthonormal", "n": 10**15}}, "initial", "GB.*reduce n"),
        ({"solve.max_degree": 64}, "solve.max_degree", "Density"),
        ({"solve.merge": 0.2}, "solve.merge", "0.1.*got 0.2"),
        ({"initial.x.replicas": 2, "solve.merge": 1e-08}, "solve", "replicas"),
        ({"solve.scheme": "Strang"}, "solve", "DormandPrince"),
        ({"solve.scheme": "Layers"}, "solve", "needs dt"),
        ({"model.kappa": 3.0}, "solve.rng", "required.*repeated"),
        ({"solve.rng": 1}, "initial.x.rng", "and solve.rng are both 1"),
        ({"model.kappa": 3.0, "solve.rng": 2, "solve.merge": 1e-08}, "solve", "without noise"),
        (
            {"model.kappa": 3.0, "solve.rng": 2, "solve.scheme": "Layers", "solve.dt": 1},
            "solve",
            "Strang",
        ),
        ({"model.noise": {"kind": "Anisotropic", "sigma": [[1.0]]}}, "model.noise", "sigma"),
        ({"model.common": "CommonRotations"}, "model.common.kappa", "required"),
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
            r"one k; got Q \(1, 2\), K \(1, 3\)|one d; got Q \(1, 2\), K \(1, 3\)",
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
        (
            {"solve.engine": "Modes", "model.drift.weights": {"kind": "Sinkhorn"}},
            "solve",
            "engine",
        ),
        ({"model.reaction": 1.0}, "solve", "reaction"),
        (
            {"model.drift.V": {"kind": "GOE", "rng": 1}},
            "model.drift.V.rng",
            "and initial.x.rng are both 1",
        ),
    ],
    "gaussian": [
        ({"initial.men": [0]}, "initial.men", "did you mean mean"),
        ({"initial.cov": [[1, 0.3], [0.2, 1]]}, "initial.cov", "symmetric"),
        ({"initial.cov": [[1, 0.3]]}, "initial", r"\(1, 2\)"),
        ({"model.drift.weights": "Sigmoid"}, "solve", "affine"),
        ({"model.drift.weights": {"kind": "Sinkhorn", "tolerance": 0.5}}, "solve", "tolerance"),
        ({"model.drift.causal": True}, "solve", "causal"),
        ({"model.drift.beta": [1, 2]}, "solve", "single model"),
        ({"model.drift.beta": "Logarithmic"}, "model", "number of tokens"),
        ({"solve.rng": 1}, "solve.rng", "Tokens"),
        ({"model.kappa": 2.0, "solve.dense": 1}, "solve.dense", "True or False"),
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
        ({"chaos.replicas": 1}, "chaos.replicas", ">= 2; got 1"),
        ({"chaos.rng": None}, "chaos.rng", "required"),
        ({"chaos.rngs": 3}, "chaos.rngs", "did you mean rng"),
        ({"chaos.rng": 10**20}, "chaos.rng", r"2\^63"),
        ({"chaos.distances": ["W3"]}, "chaos.distances", "W1, W2"),
        ({"chaos.distances": "W1"}, "chaos.distances", "array"),
        ({"chaos.floor": 1}, "chaos.floor", "got 1"),
        ({"chaos.dt": 0.0}, "chaos.dt", "> 0"),
        ({"model.kappa": [1.0, 2.0]}, "chaos", "single model"),
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
        ({"bifurcation.max_points": 0}, "bifurcation.max_points", ">= 1"),
        ({"bifurcation.stability": 1}, "bifurcation.stability", "got 1"),
        ({"bifurcation.symmetry": "octahedral"}, "bifurcation.symmetry", "octahedral"),
        ({"drift": {"kind": "Attention", "causal": True}}, "bifurcation", "Attention"),
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


@pytest.mark.repeats
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


def test_memory_that_is_not_there_is_told_by_key():
    config = parse_config(tokens(), source="run.toml")
    with (
        pytest.raises(mf.ConfigError, match=r"run.toml: solve: .*more memory .*allocate 9 PiB"),
        config.locating_errors("solve"),
    ):
        raise MemoryError("Unable to allocate 9 PiB")


def test_seeds_may_be_equal_where_equal_numbers_are_wanted():
    """Of the matrices of a model, and of the members of an ensemble; else not."""
    parse_config(attention(Q=GOE, V={"kind": "PerLayer", "values": [GOE, GOE]}))
    noise = {"kind": "Perturbed", "amplitude": 0.01, "rng": 1}
    parse_config(density(initial={"kind": "Ensemble", "members": [noise, noise]}))
    drawn = {"kind": "SampledTokens", "law": noise, "n": 5, "rng": 1}
    assert "initial.law.rng and initial.rng are both 1" in refusal(density(initial=drawn))

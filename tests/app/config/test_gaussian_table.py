"""Configuration files with [gaussian]: what they build, and what is refused."""

import numpy as np
import pytest
from meanfield.app.config import parse_config, plain
from meanfield.app.config.build import build_state

import meanfield as mf

LAW = {"mean": [0.5, -0.2], "cov": [[1.0, 0.3], [0.3, 0.5]]}


def valid(model=None, gaussian=None, solve=None, **tables):
    """A small valid configuration as plain data."""
    return {
        "model": {"drift": "Attention", **(model or {})},
        "gaussian": {**LAW, **(gaussian or {})},
        "solve": {"t_end": 0.1, "outputs": 3, **(solve or {})},
        **tables,
    }


def test_random_matrices_have_the_dimension_of_the_gaussian():
    config = parse_config(valid({"Q": {"ensemble": "goe", "seed": 3}, "weights": {"kind": "l2"}}))
    run = mf.run_config(config, progress=False)
    np.testing.assert_array_equal(run.model.drift.Q, mf.ensembles.goe(2, 3))


def test_all_that_does_not_fit_is_said_at_once():
    given = valid({"causal": True, "beta": {"scaling": "logarithmic"}}, solve={"max_degree": 8})
    with pytest.raises(mf.ConfigError) as refused:
        parse_config(given)
    lines = str(refused.value).splitlines()
    assert [line.split()[0] for line in lines] == [
        "solve.max_degree",
        "model.causal:",
        "model.beta:",
    ]
    assert "has no effect on a Gaussian" in lines[0] and "a Gaussian has none" in lines[2]


@pytest.mark.parametrize("kind", ["softmax", "l2", "sinkhorn", "linear"])
def test_a_gaussian_is_solved_as_in_python(kind, tmp_path):
    config = parse_config(valid({"V": [[1, 2], [0, 1]], "weights": {"kind": kind}}))
    assert parse_config(plain(config)) == config
    run = mf.run_config(config, tmp_path / "run.nc")
    weights = {"softmax": mf.Softmax, "l2": mf.L2, "sinkhorn": mf.Sinkhorn, "linear": mf.Linear}
    model = mf.Transformer(mf.Attention(V=[[1, 2], [0, 1]], weights=weights[kind]()))
    same = mf.solve(model, mf.Gaussian(**LAW), (0, 0.1), t_eval=[0, 0.05, 0.1])
    np.testing.assert_array_equal(run.final.cov, same.final.cov)
    np.testing.assert_array_equal(mf.load(tmp_path / "run.nc").final.mean, same.final.mean)


REFUSED = [
    (valid(gaussian={"men": [0]}), r"gaussian.men: unknown key; did you mean mean\?"),
    (valid(gaussian={"mean": []}), "gaussian.mean: expected an array with at least 1"),
    (valid(gaussian={"cov": [[1, 0.3], [0.2, 1]]}), "gaussian: A covariance is symmetric"),
    (valid(gaussian={"cov": [[1, 0.3]]}), "gaussian: Gaussian expects a mean"),
    (valid({"weights": {"kind": "sigmoid"}}), 'model.weights: "sigmoid" does not keep a Gaussian'),
    (
        valid({"weights": {"kind": "sinkhorn", "tolerance": 0.5}}),
        "model.weights.tolerance has no effect on a Gaussian",
    ),
    (
        valid({"weights": {"kind": "sinkhorn", "most_iterations": 1}}),
        "model.weights.most_iterations has no effect on a Gaussian",
    ),
    (valid(gaussian={"cov": [[1.0, 2.0], [2.0]]}), "gaussian.cov: expected rows of equal length"),
    (valid(gaussian={"cov": []}), "gaussian.cov: expected an array with at least one entry"),
    (valid(gaussian={"cov": [[1.0, "a"]]}), "gaussian.cov: expected a finite number"),
    (valid({"causal": True}), "model.causal: causal attention does not keep"),
    (valid({"beta": [1.0, 2.0]}), "model.beta: a Gaussian is solved for a single model"),
    (valid({"kappa": 2.0}), "model.kappa: a Gaussian is followed without noise"),
    (valid({"normalisation": {"kind": "pre_ln"}}), "model.normalisation: a Gaussian is followed"),
    ({**valid(), "model": {"drift": "SA", "beta": 1.0}}, 'model.drift: a Gaussian moves under "A'),
    (valid(solve={"seed": 1}), "solve.seed has no effect on a Gaussian"),
    (valid(solve={"max_degree": 64}), "solve.max_degree has no effect on a Gaussian"),
    (valid(tokens={"angles": [0.0, 1.0]}), r"\[gaussian\] and \[tokens\] exclude each other"),
    (
        valid(equiangular={"n": 3, "rho": 0.0}),
        r"\[gaussian\] and \[equiangular\] exclude each other",
    ),
    (valid(geometry={"degree": 8}), r"\[gaussian\] and \[geometry\] exclude each other"),
    (
        {"model": {"drift": "Attention"}, "solve": {"t_end": 1}},
        r"or give \[tokens\] or \[equiangular\] or \[gaussian\]",
    ),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_what_does_not_fit_is_refused_with_its_key(data, message):
    with pytest.raises(mf.ConfigError, match=message):
        build_state(parse_config(data))

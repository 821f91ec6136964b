"""Kinds that a user adds from outside go everywhere that those of the package go."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kinds_of_a_user import (
    ETD2,
    AngleTokens,
    Kicks,
    LinearAttention,
    Rectified,
    SinkAttention,
    Warmup,
)

import meanfield as mf

HERE = Path(__file__).resolve().parent
CIRCLE = mf.Circle(16)
START = CIRCLE.von_mises(0.0, 1.0)
X = mf.Tokens.uniform(12, 3, rng=0)
ANGLES = [0.0, 0.7, 1.9, 2.4, 4.0]


@pytest.mark.repeats
@pytest.mark.parametrize(
    "kind",
    [
        LinearAttention(2.0),
        LinearAttention([0.5, 2.0]),
        SinkAttention(2.0, sink=0.5),
        SinkAttention([1.0, 3.0]),
        Rectified(0.3),
        Warmup(0.5),
        Kicks(),
        AngleTokens(ANGLES),
        mf.USA(2.0),
        mf.SA(2.0),
        mf.Sigmoid(-1.0),
        mf.PreLN(),
        mf.Anisotropic(np.diag([1.0, 2.0, 0.5])),
        mf.Gram(X.x @ X.x.T),
    ],
    ids=repr,
)
def test_the_laws_of_their_families_hold(kind):
    """Multipliers, ensembles, round trips, resume: what `testing.check` asks of anybody."""
    assert len(mf.testing.check(kind)) >= 2


class OtherMultipliers(LinearAttention):
    """Its multipliers are not those of its slope."""

    def attraction(self, degree, dimension):
        return 1.01 * super().attraction(degree, dimension)


class OtherPotential(LinearAttention):
    """Its slope is not the derivative of its potential."""

    def potential(self, t):
        return t + self.b * t**2


class WithoutMass(LinearAttention):
    """Its Z is negative between opposite points."""

    def weight(self, t):
        return np.asarray(t)


class OfItsBlock(mf.Weights):
    """Its weights depend on the other pairs of the block."""

    def of_logits(self, logits, squares):
        return np.exp(logits - logits.max(axis=2, keepdims=True))


class NotConstant(Warmup):
    """It says that it does not depend on the time, which it does."""

    constant = True


class NotTheIdentity(Warmup):
    """It says that it changes nothing, which it does."""

    is_identity = True


class Ballistic(Kicks):
    """Angles grow like s instead of its square root."""

    def move(self, x, s, increments):
        return super().move(x, 2 * s**2, increments)


class MixedReplicas(Kicks):
    """The strengths of replicas meet another axis."""

    def move(self, x, s, increments):
        moved = x + 0.1 * np.sqrt(s) * np.broadcast_to(increments, x.shape)
        return moved / np.linalg.norm(moved, axis=2, keepdims=True)


class InPlace(Kicks):
    """It moves the tokens that it is given."""

    def move(self, x, s, increments):
        x[:] = super().move(x, s, increments)
        return x


@pytest.mark.parametrize(
    ("wrong", "law"),
    [
        (OtherMultipliers(2.0), "attraction"),
        (OtherPotential(2.0), "potential"),
        (WithoutMass(2.0), "weight"),
        (OfItsBlock(), "block"),
        (NotConstant(0.5), "constant"),
        (NotTheIdentity(0.5), "identity"),
        (Ballistic(), "distance"),
        (MixedReplicas(), "Replica"),
        (InPlace(), "writes into"),
    ],
    ids=lambda wrong: type(wrong).__name__,
)
def test_a_wrong_kind_fails_the_check(wrong, law):
    with pytest.raises(AssertionError, match=law):
        mf.testing.check(wrong)


def test_the_check_is_of_objects():
    with pytest.raises(TypeError, match="kind"):
        mf.testing.check(3)


# A drift, everywhere -------------------------------------------------------------------------


def test_at_the_right_parameter_a_drift_is_a_known_one():
    """b = 0 is Kuramoto, and a sink of weight 0 is softmax: densities to rounding."""
    for mine, known in [
        (LinearAttention(0.0), mf.Kuramoto()),
        (SinkAttention(2.0, 0.0), mf.SA(2.0)),
    ]:
        runs = [mf.solve(mf.Transformer(drift, 5.0), START, (0, 1)) for drift in (mine, known)]
        one, two = (run.final.coefficients[:10] for run in runs)
        np.testing.assert_allclose(one, two, atol=1e-9)


@pytest.mark.repeats
@pytest.mark.parametrize(
    "state",
    [
        START,
        mf.Characteristics(START),
        X,
        X.gram(),
        mf.Equiangular(32, 0.1),
        mf.Zonal(4, 12).von_mises_fisher(1.0),
        mf.Sphere(16).von_mises_fisher(concentration=1.0),
    ],
    ids=lambda state: type(state).__name__,
)
def test_a_drift_moves_every_state_of_the_sphere(state, tmp_path):
    run = mf.solve(mf.Transformer(LinearAttention(1.5)), state, (0, 0.5), t_eval=[0, 0.2, 0.5])
    assert run.success and "b" in run.parameters
    again = mf.load(run.save(tmp_path / "run.nc"))
    assert again.model == run.model and repr(again) == repr(run)
    for one, two in zip(run, again, strict=True):
        for name, (_, values) in one.arrays().items():
            np.testing.assert_array_equal(values, two.arrays()[name][1])


def test_tokens_characteristics_and_densities_agree():
    model = mf.Transformer(SinkAttention(3.0, 0.5))
    density = mf.solve(model, START, (0, 1), t_eval=[1.0], rtol=1e-10).final
    nodes = mf.solve(model, mf.Characteristics(START), (0, 1), t_eval=[1.0], rtol=1e-10).final
    assert abs(density.moment(1) - nodes.moment(1)) < 1e-8


def test_equiangular_tokens_are_tokens():
    tokens = mf.solve(mf.Transformer(LinearAttention(2.0)), mf.Tokens.orthonormal(6), (0, 1)).final
    rho = mf.solve(mf.Transformer(LinearAttention(2.0)), mf.Equiangular(6, 0.0), (0, 1)).final.rho
    np.testing.assert_allclose((tokens.x @ tokens.x.T)[0, 1], rho, atol=1e-7)


@pytest.mark.long
def test_stationary_states_and_branches_in_kappa_and_in_its_own_parameter():
    """kappa_1 = 2 whatever b is, and on the circle kappa_2 = 8/b."""
    found = mf.branches(LinearAttention(b=1.0), CIRCLE, kappa=(1, 4))
    onset = found.special("bifurcation", 0)[0]
    assert onset.kappa == pytest.approx(2.0, rel=1e-12)
    own = mf.branches(LinearAttention(b=1.0), CIRCLE, kappa=4.0, vary={"b": (1, 3)})
    assert own.special("bifurcation", 0)[0].value == pytest.approx(2.0, abs=1e-10)
    state = mf.stationary(mf.Transformer(LinearAttention(1.0), 4.0), START)
    moved = mf.solve(mf.Transformer(LinearAttention(1.0), 4.0), state.density, (0, 0.1)).final
    fine = state.density.resample(moved.space.degree)
    np.testing.assert_allclose(moved.coefficients, fine.coefficients, atol=1e-7)


def test_wrong_values_are_refused_by_name():
    for wrong, error in [("x", TypeError), (np.nan, ValueError), ([], ValueError)]:
        with pytest.raises(error, match="b must be"):
            LinearAttention(wrong)
    with pytest.raises(ValueError, match="do not broadcast"):
        SinkAttention([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(mf.ConfigError, match="did you mean b"):
        mf.build(mf.Drift, {"kind": "LinearAttention", "B": 1.0})


def test_the_schema_and_the_repr_have_its_parameters():
    words = mf.schema(mf.Drift)["$defs"]["Drift.LinearAttention"]["properties"]["b"]
    assert words["description"] == "Slope of the weight."
    assert repr(LinearAttention(2.0)) == "LinearAttention(b=2.0)"
    assert repr(SinkAttention(2.0)) == "SinkAttention(beta=2.0)"


# A scheme, an observable, a state, a figure ---------------------------------------------------


@pytest.mark.long
def test_a_scheme_has_its_order():
    model = mf.Transformer(mf.USA(1.0), 5.0)
    exact = mf.solve(model, START, (0, 1), t_eval=[1.0], rtol=1e-12).final.moment(1)
    errors = []
    for dt in (0.05, 0.025, 0.0125):
        run = mf.solve(model, START, (0, 1), t_eval=[1.0], dt=dt, scheme=ETD2)
        errors.append(abs(run.final.moment(1) - exact))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2, atol=0.15)


def test_observables_are_kept_with_the_result(tmp_path):
    observe = {"highest": lambda state: state.x[:, -1].max(), "mean": lambda s: s.x.mean(axis=0)}
    run = mf.solve(mf.Transformer(mf.SA(1.0)), X, (0, 1), t_eval=[0, 0.5, 1], observe=observe)
    assert run.observables["highest"].dims == ("t",)
    again = mf.load(run.save(tmp_path / "run.nc"))
    np.testing.assert_array_equal(again.observables["mean"], run.observables["mean"])
    assert run.observables["highest"].values[-1] == run.final.x[:, -1].max()
    for wrong, error in [({"mass": len}, ValueError), ({"a": 3}, TypeError), ([len], TypeError)]:
        with pytest.raises(error, match="observe"):
            mf.solve(mf.Transformer(mf.SA(1.0)), X, (0, 1), observe=wrong)


def test_angles_move_as_tokens_do_and_are_drawn():
    model = mf.Transformer(LinearAttention(2.0))
    run = mf.solve(model, AngleTokens(ANGLES), (0, 2), rtol=1e-10)
    tokens = mf.solve(model, mf.Tokens.on_circle(ANGLES), (0, 2), rtol=1e-10)
    for one, other in zip(run, tokens, strict=True):
        found = np.stack([np.cos(one.theta), np.sin(one.theta)], axis=1)
        np.testing.assert_allclose(found, other.x, atol=1e-9)
    np.testing.assert_allclose(
        run.observables["order_parameter"], tokens.observables["order_parameter"], atol=1e-9
    )
    assert run.plot("rose", petals=5).axes and run.plot().axes and run.plot("observables").axes


# From files, and the command line --------------------------------------------------------------

CONFIG = """
[model]
kappa = 5.0
drift = { kind = "LinearAttention", b = [0.5, 2.0] }

[space]
kind = "Circle"
degree = 12

[initial]
kind = "VonMises"
concentration = 1.0

[solve]
t_span = [0.0, 0.2]
t_eval = [0.0, 0.2]
"""


def run_command(folder, *arguments):
    """`meanfield ...` in a fresh interpreter, which knows nothing of this module."""
    command = [sys.executable, "-m", "meanfield", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_a_file_of_kinds_is_imported_by_the_command_line(tmp_path):
    (tmp_path / "run.toml").write_text(CONFIG)
    refused = run_command(tmp_path, "solve", "run.toml")
    assert refused.returncode == 2 and "LinearAttention" in refused.stderr
    kinds = HERE / "kinds_of_a_user.py"
    done = run_command(tmp_path, "--import", kinds, "solve", "run.toml", "--quiet")
    assert done.returncode == 0, done.stderr
    run = mf.load(tmp_path / "run.nc")
    assert run.model == mf.Transformer(LinearAttention([0.5, 2.0]), 5.0)
    assert run.provenance["imports"]
    drawn = run_command(tmp_path, "plot", "run.nc", "-o", "fig.png")  # kinds are not known here
    assert drawn.returncode == 0 and (tmp_path / "fig.png").exists(), drawn.stderr


@pytest.mark.long
def test_a_result_of_a_kind_that_is_not_known_has_its_numbers(tmp_path):
    run = mf.solve(mf.Transformer(LinearAttention(1.0), 5.0), START, (0, 0.1), t_eval=[0, 0.1])
    run.save(tmp_path / "run.nc")
    code = (
        "import meanfield as mf, json; run = mf.load('run.nc'); "
        "print(json.dumps([repr(run.model), float(abs(run.final.moment(1))), "
        "float(run.observables['order_parameter'][-1])]))\n"
        "try: mf.solve(run.model, run.final, (0, 1))\n"
        "except mf.MeanfieldError as error: print(error)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[:2]
    name, moment, order = json.loads(first)
    assert "LinearAttention" in name and "not known here" in second
    assert moment == abs(run.final.moment(1)) and order == pytest.approx(moment)


def test_kinds_of_an_installed_package_are_found(tmp_path):
    """The entry-point group "meanfield.kinds", read at the first name that is not known."""
    package = tmp_path / "toy"
    (package / "toy-1.0.dist-info").mkdir(parents=True)
    (package / "toy-1.0.dist-info" / "METADATA").write_text("Name: toy\nVersion: 1.0\n")
    (package / "toy-1.0.dist-info" / "entry_points.txt").write_text(
        "[meanfield.kinds]\ntoy = toy_kinds\n"
    )
    text = (HERE / "kinds_of_a_user.py").read_text()
    (package / "toy_kinds.py").write_text(text.split("class SinkAttention")[0])
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r})\n"
        "import meanfield as mf\n"
        "print(mf.build(mf.Drift, {'kind': 'LinearAttention', 'b': 3.0}))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "LinearAttention(b=3.0)", done.stderr

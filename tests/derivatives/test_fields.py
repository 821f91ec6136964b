"""N under drifts that are not zonal, differentiated and transposed: compiled, and in Python."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.derivatives.fields import DifferentiableFields, FieldAdjoint, FieldTangents
from meanfield.dynamics.field_transport import EnsembleFields, FieldTransport
from meanfield.engines.density_heads import GridDensity
from meanfield.engines.fields import fields_of
from meanfield.engines.kernels import SphereKernels
from meanfield.spaces.velocity_tables import TableAdjoint, TableTransport

FOURTH = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
STEP = 1e-2
SPACES = [mf.Circle(12), mf.Sphere(8)]


class Powers(mf.Weights):
    """(4 + beta <Qx, Ky> + beta |Qx|^2 / 5 - beta |Ky|^2 / 4)^power: of differences."""

    power: float = 3.0

    def of_logits(self, logits, squares):
        return (4 + logits + squares[0] / 5 - squares[1] / 4) ** self.power


class Waves(mf.Pointwise):
    """sin(a x) in another order."""

    a: float

    def __call__(self, x):
        return np.sin(self.a * x[..., ::-1])


def pushing(x):
    return np.stack([x[..., 1] ** 2, *[x[..., 0]] * (x.shape[-1] - 1)], axis=-1)


def drifts(d):
    Q, V = (np.eye(d) + np.eye(d, k=k) / 3 for k in (1, -1))
    all_ = mf.Softmax(), mf.Unnormalised(), mf.L2(), mf.Sigmoid(-0.5), mf.Linear(), Powers()
    found = {type(w).__name__: mf.Attention(Q, Q, V, 1.2, weights=w) for w in all_}
    found["heads"] = mf.Attention(np.stack([Q, -V]), V=np.stack([V, Q]), beta=-1.2)
    found["L2, Q = 1"] = mf.Attention(V=Q, beta=0.8, weights=mf.L2())
    found["beta = 0"] = mf.Attention(Q, V=V, beta=0.0)
    found["sum"] = mf.SA(beta=1.5) + 0.5 * Waves(a=1.3) - 0.2 * mf.USA(beta=2.0)
    return found


OF_SPHERE = ["Softmax", "L2", "Sigmoid", "Linear", "L2, Q = 1", "sum"]  # whose kernels take long
CASES = [(SPACES[0], name) for name in drifts(2)] + [(SPACES[1], name) for name in OF_SPHERE]


def setting(space, name):
    """A model, its derivatives by all parameters, N in Python, and two coefficients."""
    d = space.dimension
    model = mf.Transformer(drifts(d)[name], feedforward=pushing)
    own = EnsembleFields(model.drift, space, ())
    fields = DifferentiableFields(model, model.drift, own.of(0), space)

    def N(drift, c):
        there = own if drift is model.drift else EnsembleFields(drift, space, ())
        return FieldTransport(model.replace(drift=drift), there, 1)(c[None])[0]

    waves = [space.points @ np.arange(1.0, d + 1) / d, np.cos(2 * space.points[:, 0])]
    c, h = (space.to_coefficients(f) for f in (1 + 0.4 * waves[0], waves[1] - waves[0]))
    h[0] = 0.0
    return model.drift, fields, N, c, h


def called(transport, size, *rows):
    """What it makes of rows of coefficients, as floats."""
    source, target = np.concatenate(rows), np.empty(size)
    compiled = transport.compiled if hasattr(transport, "compiled") else transport._function
    compiled(transport.context, 0, source.ctypes.data, target.ctypes.data)
    return target


@pytest.mark.repeats
@pytest.mark.parametrize(("space", "name"), CASES, ids=str)
def test_tangents_are_differences_and_the_adjoint_is_their_transpose(space, name):
    drift, fields, N, c, h = setting(space, name)
    names = list(drift.parameters)
    transport, floats = fields.tangents([None, *names, None]), 2 * c.size
    rows = called(transport, (3 + len(names)) * floats, c, h, *[h] * len(names), 2 * h)
    here, along, *by, twice = rows.view(complex).reshape(-1, c.size)
    np.testing.assert_allclose(here, N(drift, c), atol=1e-14)
    np.testing.assert_allclose(twice, 2 * along, atol=1e-14)
    moved = sum(w * N(drift, c + n * STEP * h) for n, w in FOURTH.items()) / STEP
    np.testing.assert_allclose(along, moved, atol=1e-7)
    for parameter, found in zip(names, by, strict=True):
        value = drift.parameters[parameter]
        near = {n: drift.replace(**{parameter: value + n * STEP}) for n in FOURTH}
        changed = sum(w * N(near[n], c) for n, w in FOURTH.items()) / STEP
        np.testing.assert_allclose(found - along, changed, atol=1e-7, err_msg=parameter)
    backwards, l = fields.adjoint([*names, None]), c * (1 + space.degrees)
    found = called(backwards, floats + len(names) + 1, c, l)
    pairing = space.parseval * np.conj(h)
    back = (pairing * found[:floats].view(complex)).real.sum()
    forth = (space.parseval * np.conj(along) * l).real.sum()
    assert abs(forth) > 1e-2 and back == pytest.approx(forth, abs=1e-13)
    changes = [(space.parseval * np.conj(one - along) * l).real.sum() for one in by]
    np.testing.assert_allclose(found[floats:], [*changes, 0.0], atol=1e-12)


@pytest.mark.parametrize("name", ["L2", "heads", "sum"])
def test_compiled_and_in_python_they_are_the_same(name):
    drift, fields, _, c, h = setting(mf.Circle(12), name)
    names, floats = [*drift.parameters, None], 2 * c.size
    compiled, python = fields.tangents(names), FieldTangents(fields, names)
    assert isinstance(compiled, TableTransport)
    size, rows = (1 + len(names)) * floats, [c, *[h] * len(names)]
    pair = [called(one, size, *rows) for one in (compiled, python)]
    np.testing.assert_allclose(*pair, atol=1e-12)
    compiled, python = fields.adjoint(names), FieldAdjoint(fields, names)
    assert isinstance(compiled, TableAdjoint)
    pair = [called(one, floats + len(names), c, h) for one in (compiled, python)]
    np.testing.assert_allclose(*pair, atol=1e-12)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_where_a_bound_takes_the_place_of_a_denominator_it_stays(space):
    """Normalised weights that see no mass at some points, where v = A mu / least."""

    class Bump(mf.SA):
        """SA whose sums are far below the bound."""

        def normaliser(self, degree, dimension):
            return super().normaliser(degree, dimension) * 1e-14

    drift = Bump(beta=1.0) + 0.5 * mf.Field(pushing)
    model = mf.Transformer(drift)
    fields = DifferentiableFields(model, drift, fields_of(drift, space), space)
    c, h = (space.to_coefficients(1 + a * space.points[:, 0]) for a in (0.3, 0.1))
    h[0] = 0.0
    N = FieldTransport(model, EnsembleFields(drift, space, ()), 1)
    found = called(fields.tangents([None]), 4 * c.size, c, h).view(complex)[c.size :]
    moved = sum(w * N((c + n * h)[None])[0] for n, w in FOURTH.items())
    np.testing.assert_allclose(found, moved, atol=1e-12 * np.abs(moved).max())


def test_forms_that_are_left_to_the_density_have_their_part_in_beta(monkeypatch):
    """Where no kernel has the form of L2, e^<y, form y> is a factor of mu, which beta changes."""
    space = SPACES[1]
    c = setting(space, "L2")[4][None] * 0.1 + space.uniform().coefficients
    functions = GridDensity(space, c, space.to_values(c))
    found = []
    for _ in range(2):
        ((_, field),) = fields_of(drifts(3)["L2"], space)
        found.append(field.quotients(functions, ["beta"])[0].change_by("beta"))
        monkeypatch.setattr(SphereKernels, "gaussian", lambda self, A, form: None)
    np.testing.assert_allclose(*found, atol=1e-12 * np.abs(found[0]).max())

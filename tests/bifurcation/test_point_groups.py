"""States on S^2 with a finite group or none: harmonics, Newton's method, branches, refusals."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.bifurcation import point_groups
from meanfield.bifurcation.bases import basis_on
from meanfield.bifurcation.families import equation_of
from meanfield.bifurcation.newton import newton
from meanfield.bifurcation.point_groups import Invariants, point_group
from meanfield.bifurcation.reflections import all_harmonics

SPHERE = mf.Sphere(12)
ORDERS = {"none": 1, "Ci": 2, "Cs": 2, "C3": 3, "C2v": 4, "C3h": 6, "S4": 4, "D3": 6, "D2h": 8,
          "D3d": 12, "D2d": 8, "T": 12, "Td": 24, "Th": 24, "O": 24, "Oh": 48, "I": 60,
          "Ih": 120}  # fmt: skip
SERIES = np.polynomial.legendre.Legendre([0, -1, 0, 3])
REPELLED = mf.Interaction(SERIES, name="-P_1 + 3 P_3", derivative=SERIES.deriv())
MODEL = mf.Transformer(REPELLED, kappa=2.336)


def triangle(x, y, z):
    return 1 + 0.2 * (x**3 - 3 * x * y**2)


def skew(x, y, z):
    return triangle(x, y, z) + 0.1 * x * z + 0.05 * y


@pytest.mark.parametrize("name", ORDERS)
def test_invariants_are_as_many_as_characters_say(name):
    group = point_group(name)
    assert len(group.elements) == ORDERS[name]
    counts = np.zeros(7)
    for g in group.elements:
        proper = round(np.linalg.det(g))
        angle = np.arccos(np.clip((proper * np.trace(g) - 1) / 2, -1, 1))
        for l in range(7):
            character = 1 + 2 * np.cos(np.arange(1, l + 1) * angle).sum()
            counts[l] += proper**l * character / len(group.elements)
    basis = Invariants(name, 6)
    np.testing.assert_allclose(np.bincount(basis.degrees, minlength=7)[1:], counts[1:], atol=1e-8)
    sums = np.cumsum([0, *np.rint(counts[1:])])
    np.testing.assert_array_equal(basis.group.numbers_up_to[:7], sums)
    gram = (basis.values * basis.weights) @ basis.values.T
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-13)
    parts = [basis.of_order(order) for order in range(basis.orders)]
    equal = [1] * len(parts)
    if group.polyhedral:  # of three equivalent parts one is kept
        equal = [1, 1, 3] if len(parts) == 3 else [1, 1, 3, 3, 1]
    everything = sum(n * part.degrees.size for n, part in zip(equal, parts, strict=True))
    assert everything == 6 * 8
    moved = basis.density(np.full(len(gram), 0.01))
    for g in group.generators:
        np.testing.assert_allclose(moved.rotate(g).coefficients, moved.coefficients, atol=1e-12)


@pytest.mark.parametrize("name", ["none", "C3", "Ci", "D2h"])
def test_the_jacobian_is_that_of_differences_and_knows_the_rotations(name):
    basis = Invariants(name, 8)
    equation = equation_of(mf.USA(2.0), basis)
    rng = np.random.default_rng(0)
    m = 0.1 * rng.standard_normal(len(basis.degrees)) * (basis.degrees <= 4)
    turned = basis.tangents(equation.mean(m, 2.0).moments)
    assert len(turned) == {"none": 3, "C3": 1, "Ci": 3, "D2h": 0}[name]
    residual = m - equation.mean(m, 2.0).moments
    for way in turned:
        own = basis.tangents(m)
        assert len(own) == len(turned) and abs(np.linalg.norm(way) - 1) < 1e-12
    for way in basis.tangents(m):
        assert abs((equation.strengths * way) @ residual) < 1e-8  # the error of the quadrature
    jacobian = equation.jacobian(equation.mean(m, 2.0))
    scale = np.abs(equation.strengths).max()
    jacobian = jacobian - (equation.strengths / scale * turned).T @ turned
    v, h = rng.standard_normal(len(m)), 1e-6
    ahead, behind = (equation.mean(m + s * h * v, 2.0).moments for s in (1, -1))
    np.testing.assert_allclose(jacobian @ v, v - (ahead - behind) / (2 * h), atol=1e-8)


def test_a_triangle_with_its_group_and_without():
    known = mf.stationary(MODEL, SPHERE.density(triangle), symmetry="D3h")
    free = mf.stationary(MODEL, known.density, symmetry="none")
    assert known.converged and free.converged and known.order_parameter == 0
    assert free.free_energy == pytest.approx(known.free_energy, abs=1e-13)
    found = known.stability(6)
    assert found.neutral.sum() == 3 and found.stable
    np.testing.assert_allclose(found.eigenvalues[found.neutral], 0, atol=1e-7)
    near = mf.stationary(MODEL, mf.solve(MODEL, known.density, (0, 0.1)).final, symmetry="none")
    assert near.converged and near.free_energy == pytest.approx(known.free_energy, abs=1e-12)


def test_gmres_solves_what_matrices_solve(monkeypatch):
    basis = Invariants("Cs", 12)
    equation = equation_of(REPELLED, basis)
    m = basis.moments(SPHERE.density(triangle))[0]

    def system(m):
        mean = equation.mean(m, 2.336)
        return m - mean.moments, lambda: equation.jacobian(mean)

    dense = newton(system, m, 1e-12)
    monkeypatch.setattr(basis, "dense", False)
    sparse = newton(system, m, 1e-12)
    assert dense.converged and sparse.converged and np.abs(dense.x).max() > 0.03
    np.testing.assert_allclose(sparse.x, dense.x, atol=1e-11)


@pytest.mark.parametrize("name", ["C3v", "C3"])
def test_the_highest_degree_has_dense_jacobians(name):
    basis = Invariants(name, Invariants(name, 12).most)
    assert basis.dense
    assert not Invariants(name, basis.degree + 1).dense


@pytest.mark.parametrize("drift", [mf.USA(3.0), mf.SA(3.0)])
@pytest.mark.parametrize(("name", "degree"), [("none", 12), ("C3v", 20), ("D3", 20), ("S4", 20)])
def test_sums_by_longitude_are_those_of_tables(monkeypatch, drift, name, degree):
    """Moments, Jacobians, whole and by columns, and linearised operators of every order."""
    degrees = Invariants(name, degree).degrees
    m = 0.1 * np.random.default_rng(0).standard_normal(degrees.size) * (degrees <= 3)

    def computed(largest):
        monkeypatch.setattr(point_groups, "TABULATED_ENTRIES", largest)
        basis = Invariants(name, degree)
        equation, parts = equation_of(drift, basis), map(basis.of_order, range(basis.orders))
        mean = equation.mean(m, 6.0)
        columns = basis.pairings(mean.weights, np.array([0, 3, 7]))
        every = [equation.linearised(m, 6.0, part) for part in parts if part.degrees.size]
        assert (basis.by_longitude is None) == (largest > 0)
        return [mean.potential, mean.moments, equation.jacobian(mean), columns, *every]

    for one, other in zip(computed(np.inf), computed(0.0), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * max(1, np.abs(other).max()))


def test_guesses_without_the_symmetry_are_refused():
    guess = SPHERE.density(skew)
    for symmetry in ("axisymmetric", "D3h", "octahedral", np.array([np.diag([1.0, 1, -1])])):
        with pytest.raises(ValueError, match=r"guess lacks .*symmetry"):
            mf.stationary(MODEL, guess, symmetry=symmetry)
    kept = mf.symmetrised(guess, "D3h")
    assert kept.space == SPHERE
    np.testing.assert_allclose(kept.coefficients, SPHERE.density(triangle).coefficients, atol=1e-12)
    skew_circle = mf.Circle(16).density(lambda t: 1 + 0.3 * np.cos(t) + 0.2 * np.sin(2 * t))
    with pytest.raises(ValueError, match=r"guess lacks .*symmetry"):
        mf.stationary(mf.Transformer(mf.USA(2.0), 3.0), skew_circle)


@pytest.mark.parametrize(
    ("symmetry", "message"),
    [
        ("D3x", "Cnv"),
        ("S3", "Cnv"),
        (np.ones((1, 3, 3)), "orthogonal"),
        (np.eye(3), r"shape \(k, 3, 3\)|\(k, 3, 3\)"),
        (np.array([[[np.cos(1), -np.sin(1), 0], [np.sin(1), np.cos(1), 0], [0, 0, 1]]]), "finite"),
    ],
    ids=["name", "odd S", "not orthogonal", "shape", "infinite"],
)
def test_what_is_no_group(symmetry, message):
    with pytest.raises(ValueError, match=message):
        basis_on(SPHERE, symmetry)


def test_a_branch_of_triangles_and_its_file(tmp_path):
    group = point_group("D3h").generators
    found = mf.branches(REPELLED, SPHERE, (2.3, 2.34), symmetry=group, degrees=[3], max_points=3,
                        checkpoint=tmp_path / "checkpoint")  # fmt: skip
    (onset,) = found.special("bifurcation", 0)
    assert onset.value == pytest.approx(7 / 3, abs=1e-13) and onset.character == "supercritical"
    assert found.data.growth.values[-1] < 0
    again = mf.load(found.save(tmp_path / "diagram.nc"))
    assert again.data.identical(found.data)
    np.testing.assert_array_equal(again.symmetry, group)


@pytest.mark.parametrize("space", [mf.Circle(7), mf.Sphere(1), mf.Sphere(6)], ids=repr)
def test_parities_of_harmonics_are_their_signs_at_mirror_images(space):
    harmonics, points = all_harmonics(space), np.array([[0.3, -0.5, 0.8], [-0.7, 0.2, 0.6]])
    points = points[:, : space.dimension]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    unit = harmonics.series(np.eye(harmonics.degrees.size), 0.0)
    for odd, mirror in zip(harmonics.parities.T, np.eye(space.dimension), strict=True):
        image = np.where(odd, -1.0, 1.0)[:, None] * space.at(unit, points)
        np.testing.assert_allclose(space.at(unit, points * (1 - 2 * mirror)), image, atol=1e-12)

"""Common noise: what its maps keep, one step against its generator, and how accurate paths are."""

import numpy as np
import pytest
from diffusions import (
    along,
    constant,
    constants,
    expectation,
    local_errors,
    orders,
    plus,
    tangential,
    times,
    unit,
    value,
    variable,
)
from scipy.linalg import expm

from meanfield.core.errors import MeanfieldError
from meanfield.models.common_noise import (
    CommonMatrix,
    CommonRotations,
    CommonTranslations,
    exponentials,
)

STEPS = 1e-3 / 2.0 ** np.arange(4)


def moved(common, x, s, rng):
    """Points after one step, with increments from a generator."""
    increments = common.increments(len(x), x.shape[-1], rng)
    return common.moved(x, s, increments, x[..., ::-1])


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("kind", [CommonRotations, CommonTranslations, CommonMatrix])
def test_a_step_keeps_to_the_contract(kind, d):
    common, x = kind(1.0), unit(np.random.default_rng(d).standard_normal((3, 4, d)))
    s, rng = np.array([0.3, 0.01, 1e-9]), np.random.default_rng(0)
    increments = common.increments(3, d, rng)
    assert increments.shape == (3, common.increments_size(d))
    for array in (x, s, increments):
        array.setflags(write=False)
    once = common.moved(x, s, increments, x[..., ::-1])
    np.testing.assert_array_equal(once, common.moved(x, s, increments, x[..., ::-1]))
    for r in range(3):
        one = slice(r, r + 1)
        alone = common.moved(x[one], s[one], increments[one], x[one][..., ::-1])
        np.testing.assert_allclose(alone[0], once[r], rtol=0, atol=1e-15)
    y = x
    for _ in range(50):
        y = moved(common, y, s, rng)
    assert np.abs(np.linalg.norm(y, axis=2) - 1).max() < 1e-15


def test_a_strength_is_positive_and_finite():
    for kappa in (np.inf, [1.0, np.inf]):
        with pytest.raises(ValueError, match=r"finite kappa.*common=None"):
            CommonTranslations(kappa)
    with pytest.raises(ValueError, match="kappa"):
        CommonRotations(0.0)
    with pytest.raises(MeanfieldError, match="Shorten dt"):
        moved(CommonTranslations(1.0), np.eye(2)[None], np.array([1e9]), np.random.default_rng(0))


# Rotations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 4, 7])
def test_common_rotations_keep_inner_products(d):
    rng, common = np.random.default_rng(d), CommonRotations(1.0)
    x = start = unit(rng.standard_normal((2, 6, d)))
    for _ in range(100):
        x = moved(common, x, np.array([0.2, 0.01]), rng)
    assert np.abs(x - start).max() > 0.1
    gram, before = x @ x.transpose(0, 2, 1), start @ start.transpose(0, 2, 1)
    np.testing.assert_allclose(gram, before, rtol=0, atol=1e-13)


def test_common_rotations_of_the_circle_turn_all_tokens_by_one_normal_angle():
    x = unit(np.random.default_rng(0).standard_normal((3, 5, 2)))
    angle = CommonRotations(1.0).increments(3, 2, np.random.default_rng(1))
    end = CommonRotations(1.0).moved(x, np.full(3, 0.3), angle)
    before, after = x[..., 0] + 1j * x[..., 1], end[..., 0] + 1j * end[..., 1]
    expected = np.exp(-1j * np.sqrt(0.6) * angle)  # L_12 turns e_2 to e_1
    np.testing.assert_allclose(after / before, np.broadcast_to(expected, (3, 5)), atol=1e-15)


def test_exponentials_are_those_of_scipy_for_small_and_large_matrices():
    rng = np.random.default_rng(0)
    for size in (2, 3, 5):
        skew = rng.standard_normal((6, size, size))
        skew = (skew - skew.transpose(0, 2, 1)) * np.geomspace(1e-8, 30, 6)[:, None, None]
        np.testing.assert_allclose(exponentials(skew), expm(skew), rtol=0, atol=1e-12)
    assert (exponentials(np.zeros((1, 3, 3))) == np.eye(3)).all()


# Translations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3])
def test_common_translations_are_moebius_maps(d):
    """They keep cross ratios |x - y| |z - w| / (|x - z| |y - w|) of points of the sphere."""
    rng = np.random.default_rng(d)
    x = unit(rng.standard_normal((2, 4, d)))

    def ratio(x):
        gap = np.linalg.norm(x[:, :, None] - x[:, None], axis=-1)
        return gap[:, 0, 1] * gap[:, 2, 3] / (gap[:, 0, 2] * gap[:, 1, 3])

    end = x
    for _ in range(10):
        end = moved(CommonTranslations(1.0), end, np.array([0.1, 0.01]), rng)
    assert np.abs(end - x).max() > 0.1
    np.testing.assert_allclose(ratio(end), ratio(x), rtol=1e-12)


def refined(increments, d):
    """Increments of one step as (xi, A) of unit time."""
    xi, eta, zeta = np.split(increments, [d, 2 * d], axis=1)
    j, k = np.triu_indices(d, 1)
    return xi, (eta[:, j] * xi[:, k] - xi[:, j] * eta[:, k] + zeta) / np.sqrt(12)


def together(first, second, d):
    """Increments of a step of two halves, by Chen's relation, and as `moved` takes them."""
    j, k = np.triu_indices(d, 1)
    (xi, areas), (then, others) = first, second
    cross = (xi[:, j] * then[:, k] - then[:, j] * xi[:, k]) / 2
    return (xi + then) / np.sqrt(2), (areas + others + cross) / 2


def path(x, increments, t, d, areas=True):
    """The end of paths of the time t, in steps given by (xi, A)."""
    for xi, A in increments:
        zeta = np.sqrt(12) * A if areas else 0 * A
        step = np.concatenate([xi, np.zeros_like(xi), zeta], axis=1)
        x = CommonTranslations(1.0).moved(x, np.full(len(x), t / len(increments)), step)
    return x


@pytest.mark.repeats
@pytest.mark.parametrize(("areas", "order"), [(True, 1.0), (False, 0.5)])
@pytest.mark.parametrize("d", [2, 3])
def test_paths_are_of_strong_order_one_with_levy_areas_and_one_half_without(d, areas, order):
    rng, paths, t = np.random.default_rng(1), 400, 0.2
    x = unit(rng.standard_normal((paths, 1, d)))
    size = CommonTranslations(1.0).increments_size(d)
    fine = [refined(rng.standard_normal((paths, size)), d) for _ in range(512)]
    exact, errors = path(x, fine, t, d), []
    while len(fine) > 4:
        fine = [together(*pair, d) for pair in zip(fine[::2], fine[1::2], strict=True)]
        if len(fine) <= 32:
            end = path(x, fine, t, d, areas)
            errors.append(np.sqrt(((end - exact) ** 2).sum(axis=2).mean()))
    slope = np.polyfit(np.log([1 / 32, 1 / 16, 1 / 8, 1 / 4]), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.12)


# One step against its generator ------------------------------------------------------------------


class OfTokens:
    """Common noise as `diffusions` takes noise."""

    def __init__(self, common, attention=None):
        self.common, self.attention = common, attention

    def increments_shape(self, replicas, n, d):
        return (replicas, self.common.increments_size(d))

    def moved(self, x, s, increments):
        A = None if self.attention is None else self.attention(x)
        return self.common.moved(x, s, increments, A)


def starts(d, n=1):
    return unit(np.random.default_rng(d).standard_normal((2, n, d)))


def one_token(d):
    x, y = variable(0, d), variable(1, d)
    return plus(x, times(x, times(y, y)), times(x, y))


def two_tokens(d):
    first, second = variable(0, 2 * d), variable(d + 1, 2 * d)
    return plus(times(first, second), times(first, times(first, second)), first)


def of_all(n, d, fields):
    """Fields of n tokens, the same for each: polynomials of n d variables."""

    def shifted(p, i):
        return {(0,) * (i * d) + powers + (0,) * ((n - 1 - i) * d): c for powers, c in p.items()}

    return [[shifted(p, i) for i in range(n) for p in field] for field in fields]


def rotations(d):
    fields = []
    for j in range(d):
        for k in range(j + 1, d):
            field = [{} for _ in range(d)]
            field[j], field[k] = variable(k, d), times(constant(-1, d), variable(j, d))
            fields.append(field)
    return fields


def translations(d):
    return [tangential(constants(e)) for e in np.eye(d)]


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("common", "fields", "n", "d", "nodes"),
    [
        (CommonRotations(1.0), rotations, 1, 3, 8),
        (CommonRotations(1.0), rotations, 2, 3, 8),
        (CommonRotations(1.0), rotations, 2, 4, 4),
        (CommonTranslations(1.0), translations, 2, 2, 6),
        (CommonTranslations(1.0), translations, 2, 3, 3),
    ],
)
def test_one_step_differs_from_the_semigroup_by_the_third_order(common, fields, n, d, nodes):
    p = one_token(d) if n == 1 else two_tokens(d)
    generator = of_all(n, d, fields(d))
    steps = STEPS[:3]
    errors = local_errors(OfTokens(common), p, starts(d, n)[:1], steps, generator, nodes=nodes)
    np.testing.assert_allclose(orders(errors, steps), 3, atol=0.1)


def test_one_step_of_a_common_matrix_is_of_the_second_order():
    """Ito: the generator of one token is |A|^2 Lap, here for A(x) = (1, x_1)."""
    d, steps = 2, np.geomspace(1e-3, 1e-4, 4)
    square = plus(constant(1, d), times(variable(0, d), variable(0, d)))  # |A|^2
    p = one_token(d)
    first = plus(*(times(square, along(V, along(V, p))) for V in translations(d)))
    noise = OfTokens(
        CommonMatrix(1.0), lambda x: np.stack([np.ones_like(x[..., 0]), x[..., 0]], -1)
    )

    def error(x, s):
        found = expectation(noise, lambda y: value(p, y[..., 0, :]), x, s)
        return found - value(p, x[0]) - s * value(first, x[0])

    errors = [np.linalg.norm([error(x, s) for x in starts(d)]) for s in steps]
    np.testing.assert_allclose(orders(np.array(errors), steps), 2, atol=0.1)

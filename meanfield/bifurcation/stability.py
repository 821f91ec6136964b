"""Linear stability of stationary states: spectra of the linearised Fokker-Planck operator.

    L h = (1/kappa) Laplacian h - div(h grad g[mu]) - div(mu grad(gain W * h))

maps functions of one order to functions of the same order. With test functions p_i it is

    L_ij = -l_i (l_i + d - 2)/kappa delta_ij + int p_j <grad p_i, grad g>
           + w_j int mu <grad p_i, grad(gain p_j)>.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..core.checks import whole_number
from ..lowlevel.blas import one_blas_thread
from .bases import Basis

COUNTED_ATTRACTION = 1e-18  # smaller kappa W_l are negligible, as moments are at most 1
GROWING_RATE = 1e-9  # smaller growth rates are rounding
ITERATED_FROM = 256  # functions, from which only the largest growth rates are computed
ITERATED_PART = 24  # functions for each rate, from which iteration takes less time
LEADING_RATES, LEADING_BLOCK = 6, 8  # rates, and solutions of systems in one block
FEWEST_BLOCKS, MOST_BLOCKS = 7, 32
DECAYING_RATE = 1e-6  # largest of the least rate that is kept, so that neutral ones are before it
LEADING_ERROR = 1e-11  # of Ritz values, relative
FELT_ATTRACTION = 1e-14  # kappa W_l that truncations keep if leading eigenvalues are to agree
AGREED = 1e-9  # difference of leading eigenvalues of two truncations, of which the finer is kept
REAL_SPECTRUM = 1e-9  # smaller imaginary parts, relative to the fastest diffusion, are rounding


class Stability(NamedTuple):
    """The leading eigenvalues of the linearised Fokker-Planck equation.

    Attributes
    ----------
    eigenvalues : ndarray, (count,)
        Eigenvalues in decreasing order of their real parts; real for gradient flows.
    orders : ndarray of int, (count,)
        Order of each perturbation; 0 has the symmetry of the state. About an axis, the order m
        about it; on the circle, 0 is even and 1 odd. For groups on S^2, those of polyhedra
        included, 1 is even under the changes of sign in the group, see `point_groups`; for
        polyhedra 2 and 3 stand for three equal eigenvalues. Under non-isotropic noise, one bit for
        each generator of the reflections of the state: see `reflections`.
    neutral : ndarray of bool, (count,)
        Whether each eigenvalue is the 0 of a rotation of the state. Other continuous families are
        not marked: on the ring of ordered states under `MultiplicativeIto` noise of an even scale
        on the circle, one eigenvalue is 0 to rounding, 1e-13.
    modes : list of ndarray
        Coefficients of each eigenfunction in the basis of its order; on the torus, by as many
        functions as its eigenvalue needs.
    gap : float
        Minus the largest real part, rotations excluded: the rate at which perturbations decay.
    """

    eigenvalues: np.ndarray
    orders: np.ndarray
    neutral: np.ndarray
    modes: list[np.ndarray]
    gap: float

    @property
    def stable(self) -> bool:
        """Whether every perturbation decays, rotations excepted.

        Not meaningful if the gap is 0 to rounding: see `neutral`.
        """
        return self.gap > 0

    def __repr__(self) -> str:
        word = "stable" if self.stable else "unstable"
        return f"Stability({word}, gap {self.gap:.8g}, eigenvalues {self.eigenvalues})"


def stability_of(equation: Any, m: np.ndarray, kappa: float, count: int) -> Stability:
    """The `count` eigenvalues of largest real part over all orders, at the moments m."""
    count = whole_number("count", count)
    leading: list[tuple[complex, int, bool, np.ndarray]] = []
    kept = count + 3  # up to three may be rotations, which the gap excludes
    for order in range(equation.basis.orders):
        with one_blas_thread():
            here = _of_order(equation, m, kappa, order, kept)
        leading = sorted([*leading, *here], key=lambda entry: -entry[0].real)[:kept]
        silent = here and all(entry[1] != order for entry in leading)
        if silent and order >= max(2, equation.basis.damped_from(equation.most_attracted)):
            break  # diffusion damps higher orders even more
    gap = -max(value.real for value, _, neutral, _ in leading if not neutral)
    values, orders, neutral, modes = (list(column) for column in zip(*leading[:count], strict=True))
    eigenvalues = np.array(values)
    if np.all(np.abs(eigenvalues.imag) <= REAL_SPECTRUM * equation.basis.eigenvalues[-1] / kappa):
        eigenvalues = eigenvalues.real
    return Stability(eigenvalues, np.array(orders), np.array(neutral), modes, float(gap))


def is_stable(equation: Any, m: np.ndarray, kappa: float) -> bool:
    """Whether every perturbation decays, rotations of the state excepted.

    If there is a free energy: whether its second variation (1/kappa) 1/mu - W is positive for
    perturbations of mass 0, that is, whether

        sign(w_i) delta_ij - kappa |w_i w_j|^(1/2) Cov(p_i, p_j),    w_i not 0,

    has as many negative eigenvalues as there are negative w_i (inertia of Schur complements), the 0
    of each rotation excluded. Only functions with nonzero w_i are needed, and no spectrum of the
    linearised equation. Without a free energy, by `stability_of`.
    """
    if not equation.gradient_flow or not equation.basis.dense:
        return stability_of(equation, m, kappa, 1).stable
    for basis, w, covariance in covariances(equation, m, kappa):
        roots = np.sqrt(kappa * np.abs(w))
        values = np.linalg.eigvalsh(np.diag(np.sign(w)) - roots[:, None] * covariance * roots)
        turned = neutral_among(values, basis, m)
        if np.count_nonzero(np.delete(values, turned) < 0) > np.count_nonzero(w < 0):
            return False
    return True


def covariances(
    equation: Any, m: np.ndarray, kappa: float
) -> Iterator[tuple[Basis, np.ndarray, np.ndarray]]:
    """For each order with attraction: its basis, the nonzero w_i, and Cov(p_i, p_j) of those."""
    mean = equation.mean(m, kappa)
    for order in range(equation.basis.orders):
        basis = equation.basis.of_order(order)
        w = equation.multipliers(basis)
        felt = np.flatnonzero(kappa * np.abs(w) > COUNTED_ATTRACTION)
        if not felt.size:
            return  # no w_i in this order, nor in higher ones
        w, sizes = w[felt], basis.sizes[felt]
        covariance = basis.pairings(mean.weights, felt)[felt]
        if order == 0:
            means = basis.analysed(mean.weights)[felt]
            covariance -= np.outer(means, means)
        covariance *= np.outer(sizes, sizes)
        yield basis, w, covariance


def _of_order(equation: Any, m: np.ndarray, kappa: float, order: int, count: int) -> Any:
    """Leading eigenvalues of one order, as (value, order, whether a rotation, eigenvector)."""
    basis = equation.basis.of_order(order)
    values, vectors = _spectrum(equation, m, kappa, basis, count)
    turning = neutral_among(values, basis, m)
    chosen = np.argsort(-values.real)[:count]
    return [(complex(values[i]), order, bool(i in turning), vectors[:, i]) for i in chosen]


def neutral_among(values: np.ndarray, basis: Any, m: np.ndarray) -> np.ndarray:
    """Indices of the eigenvalues that belong to rotations of the state: the least in size."""
    return np.argsort(np.abs(values))[: basis.rotation_count(m)]


def leading_of(
    matrix: np.ndarray, above: float, damping: np.ndarray, count: int = LEADING_RATES
) -> tuple[np.ndarray, np.ndarray] | None:
    """The `count` largest eigenvalues of a matrix with real ones, decreasing, and eigenvectors.

    Block Krylov spaces of (matrix - above)^-1 that begin with functions as smooth as the inverse
    square of `damping` (N,), at least 1. None if they do not converge, if an eigenvalue is larger
    than `above`, seen as a positive one of the inverse, or if all eigenvalues found grow.
    """
    from scipy.linalg import lu_factor, lu_solve

    factors = lu_factor(matrix - above * np.eye(len(matrix)), check_finite=False)
    newest = np.random.default_rng(0).standard_normal((len(matrix), LEADING_BLOCK))
    newest /= damping[:, None] ** 2
    space, images = np.zeros((len(matrix), 0)), np.zeros((len(matrix), 0))
    for block in range(MOST_BLOCKS):
        for _ in range(2):  # orthogonal to rounding
            newest = newest - space @ (space.T @ newest)
        newest = np.linalg.qr(newest)[0]
        space = np.hstack([space, newest])
        newest = lu_solve(factors, newest, check_finite=False)
        images = np.hstack([images, newest])
        if block % 2 == 0 or block < FEWEST_BLOCKS:
            continue
        inverses, vectors = np.linalg.eig(space.T @ images)
        if inverses.real.max() > 0:
            return None
        chosen = np.argsort(inverses.real)[:count]  # those of the largest values: all are < 0
        inverses, vectors = inverses[chosen], vectors[:, chosen]
        ends = space @ vectors
        errors = np.linalg.norm(images @ vectors - ends * inverses, axis=0)
        if np.all(errors <= LEADING_ERROR * np.abs(inverses)):
            values = above + 1 / inverses.real
            return (values, ends) if values[-1] < -DECAYING_RATE else None
    return None


def growth_rates(equation: Any, m: np.ndarray, kappa: float, basis: Basis) -> np.ndarray:
    """Real parts of the eigenvalues of one order, decreasing, without those of rotations.

    Of many real ones only the largest, more than those that grow, if iteration finds them.
    """
    values, _ = _spectrum(equation, m, kappa, basis, LEADING_RATES)
    kept = np.delete(values, neutral_among(values, basis, m))
    return np.sort(kept.real)[::-1]


def _spectrum(
    equation: Any, m: np.ndarray, kappa: float, basis: Basis, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of one order, the `count` leading ones at least, and eigenvectors.

    They are those of functions of lower degrees, once two truncations agree, see `Basis.coarser`:
    the error is the product of what the right and the left eigenvectors lack, and left ones are
    smooth.
    """
    before = np.zeros(0)
    felt = kappa * np.abs(equation.multipliers(basis)) > FELT_ATTRACTION
    for part in equation.basis.coarser(basis, m, felt):
        matrix = equation.linearised(m, kappa, part)
        values, vectors = _iterated(equation, matrix, kappa, part, count) or np.linalg.eig(matrix)
        leading = np.sort_complex(values)[: -count - 1 : -1]
        if leading.shape == before.shape and np.allclose(leading, before, AGREED, AGREED):
            break
        before = leading
    return values, vectors


def _iterated(
    equation: Any, matrix: np.ndarray, kappa: float, basis: Basis, count: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """The result of `leading_of` for many functions; None for few, or if it finds none."""
    if not equation.real_spectrum or len(matrix) < max(ITERATED_FROM, ITERATED_PART * count):
        return None
    least = basis.eigenvalues.min() / kappa
    most = least + (equation.multipliers(basis) * basis.eigenvalues).max().clip(0)
    bounds = most * np.array([1.0, 2.0, 4.0])  # the first is that of the uniform state
    attempts = (leading_of(matrix, above, 1 + basis.eigenvalues, count) for above in bounds)
    return next((found for found in attempts if found is not None), None)

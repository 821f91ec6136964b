"""Generators of noise on densities: their matrices in harmonics, and their eigenvectors.

Noise moves a density by d mu/dt = L* mu = div(pi A grad(mu/pi)) with the stationary density pi; L*
is symmetric in L2(1/pi). On finitely many harmonics L* is M = -S W^-1 with symmetric matrices
S >= 0 and W > 0, so that its eigenvalues are real and <= 0, and its eigenvectors are as
well-conditioned as the root of W. The mass is constant, as S has no row of the constant.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from ..core.annotations import OfLibrary
from ..core.cached import cached_property
from ..core.checks import check_memory
from ..lowlevel.blas import one_blas_thread
from ..spaces import Space
from ..steppers.eigenbasis import Eigenbasis

FUNCTIONS_AT_A_TIME = 64  # number of functions transformed in one batch
ENTRY_ROUNDING = 4e-15  # entries below it, relative to the largest, are 0


class Generator:
    """L* on the harmonics of a space, as a matrix and in its eigenbasis.

    Parameters
    ----------
    space : Space
    stiffness, weight : sparse arrays, (n - 1, n - 1)
        S and W in the real orthonormal harmonics without the constant: M = -strength S W^-1 there.
    stationary : ndarray, (n - 1,)
        The stationary density of mass 1, in the same harmonics.
    strength : float
        A factor of M, so that S is of the size of the Laplacian.
    """

    def __init__(
        self,
        space: Space,
        stiffness: OfLibrary,
        weight: OfLibrary,
        stationary: np.ndarray,
        strength: float,
    ) -> None:
        self._space, self._stiffness, self._weight = space, stiffness, weight
        self._stationary, self._strength = stationary, strength
        self._live, scales = orthonormal(space)
        self._scales = scales[self._live]

    @cached_property
    def matrix(self) -> np.ndarray:
        """M on alternating real and imaginary parts of coefficients, (2 modes, 2 modes)."""
        size, live = 2 * self._space.degrees.size, self._live
        check_memory(f"the matrix of a noise on {self._space!r}", (3, size, size), "degree")
        inner = np.zeros((live.size, live.size))
        inner[1:, 1:] = -np.linalg.solve(self._weight.toarray(), self._stiffness.toarray()).T
        inner[1:, 0] = -inner[1:, 1:] @ self._stationary
        matrix = np.zeros((size, size))
        inner *= self._strength
        matrix[np.ix_(live, live)] = inner * self._scales / self._scales[:, None]
        return matrix

    @cached_property
    def eigenbasis(self) -> tuple[np.ndarray, Eigenbasis]:
        """The eigenvalues of M, (2 modes,), and its eigenvectors.

        Eigenvalues have the indices of coefficients, in the order of their degrees.
        """
        rates, blocks = np.zeros(2 * self._space.degrees.size), []
        with one_blas_thread():  # the same bits on any number of cores
            for group in self._components():
                coordinates, rates_of_block, forth, back = self._block(group)
                with np.errstate(over="ignore"):  # no step is finite then
                    rates[coordinates] = self._strength * rates_of_block
                blocks.append((coordinates, forth, back))
        inactive = np.setdiff1d(np.arange(rates.size), self._live)  # imaginary parts that are 0
        blocks += [(inactive[k : k + 1], np.eye(1), np.eye(1)) for k in range(inactive.size)]
        return rates, Eigenbasis.of(blocks)

    def _components(self) -> Iterator[np.ndarray]:
        """Yield the connected components of M: indices of harmonics by degree, 0 the constant."""
        column = sparse.csr_array(self._stationary[:, None])
        coupled = sparse.block_array(
            [[sparse.csr_array((1, 1)), None], [column, abs(self._stiffness) + abs(self._weight)]]
        )
        count, labels = connected_components(coupled, directed=False)
        degrees = np.repeat(self._space.degrees, 2)[self._live]
        order = np.argsort(degrees, kind="stable")
        sizes = np.bincount(labels)
        subject = f"eigenvectors of a noise on {self._space!r}, in blocks of {sizes.max()} modes"
        check_memory(subject, (2 * int((sizes**2).sum()) + 5 * int(sizes.max()) ** 2,), "degree")
        for label in range(count):
            yield order[labels[order] == label]

    def _block(self, group: np.ndarray) -> tuple[OfLibrary, ...]:
        """The coordinates, rates, E^-1 and E of the component with these harmonics."""
        coordinates = self._live[group]
        first, inner = int(group[0] == 0), group[group > 0] - 1  # the constant comes first
        rates, forth, back = np.zeros(group.size), np.eye(group.size), np.eye(group.size)
        if inner.size:
            rates[first:], forth[first:, first:], back[first:, first:] = _eigenvectors(
                self._stiffness[inner][:, inner].toarray(), self._weight[inner][:, inner].toarray()
            )
        if first:
            back[1:, 0] = self._stationary[inner]
            forth[1:, 0] = -forth[1:, 1:] @ back[1:, 0]
        scales = self._scales[group]
        return coordinates, rates, forth * scales, back / scales[:, None]


def _eigenvectors(stiffness: np.ndarray, weight: np.ndarray) -> tuple[OfLibrary, ...]:
    """The rates, E^-1 and E with -S W^-1 = E diag(rates) E^-1, the slowest rate first."""
    root = cholesky(weight, lower=True)
    half = solve_triangular(root, stiffness, lower=True)
    symmetric = solve_triangular(root, half.T, lower=True)
    rates, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
    forth = solve_triangular(root, vectors, lower=True, trans="T").T
    return -rates, forth, root @ vectors


# The kinds of noise ------------------------------------------------------------------------------


def anisotropic(space: Space, sigma: np.ndarray) -> Generator:
    """L* mu = div(P Sigma P grad mu) - (d - 1) div(mu P Sigma x), exact on the harmonics kept.

    With the fields P_x e_k, L* = sum_jk Sigma_jk (P_x e_j . grad)* (P_x e_k . grad)*. They are
    conformal: in the harmonics divided by the roots of a_l = Gamma(l + d - 1)/Gamma(l), which is l
    on the circle and l (l + 1) on S^2, each (P_x e_k . grad)* is antisymmetric. So M is -S W^-1
    with W the diagonal of the a_l.
    """
    d, derivatives, coordinates = space.dimension, *_fields(space)
    adjoints = [(d - 1) * x - v for x, v in zip(coordinates, derivatives, strict=True)]
    largest = np.abs(sigma).max()
    sigma = sigma / largest
    fluxes = [
        sum(entry * adjoint for entry, adjoint in zip(row, adjoints, strict=True)) for row in sigma
    ]
    matrix = sum(v.T @ flux for v, flux in zip(derivatives, fluxes, strict=True)).tocsc()
    l = _degrees(space)[1:].astype(float)
    weight = sparse.diags_array(np.prod([l + k for k in range(d - 1)], axis=0))
    stiffness = -matrix[1:, 1:] @ weight
    stiffness = _cleaned((stiffness + stiffness.T) / 2)
    uniform = matrix[1:, [0]].toarray()[:, 0]  # what L* makes of the uniform density
    stationary = weight @ spsolve(stiffness.tocsc(), uniform)
    return Generator(space, stiffness, weight.tocsr(), stationary, largest)


def multiplicative(space: Space, scale: np.ndarray, power: int) -> Generator:
    """L* mu = div(s^(2 - p) grad(s^p mu)), p = `power`, from the values of s at `space.points`.

    The harmonics h = W^-1 mu approximate mu/pi = s^p mu: with the integrals W_jk of s^-p Y_j Y_k
    and S_jk of s^(2 - p) <grad Y_j, grad Y_k>, the weak form is d mu/dt = -S h. The stationary
    density of M is that part of s^-p that is kept.
    """
    largest = scale.max()
    scale = scale / largest
    weight = _products(space, scale**-power)
    if power == 2:
        stiffness = sparse.diags_array(-_laplacian(space)).tocsr()
    elif not space.spherical:
        stiffness = _stiffness(space, scale ** (2 - power))
    else:
        finer = space.with_degree(space.degree + 1)
        series = space.resample(space.to_coefficients(scale ** (2 - power)), finer.degree)
        middle = _products(finer, finer.to_values(series))
        stiffness = sum(v.T @ middle @ v for v in _fields(space)[0])
    column, mass = weight[1:, [0]], weight[0, 0]
    inverse_part = weight[1:, 1:] - column @ column.T / mass  # the inverse of that part of W^-1
    stationary = column.toarray()[:, 0] / mass
    return Generator(
        space, _cleaned(stiffness[1:, 1:]), _cleaned(inverse_part), stationary, np.square(largest)
    )


# Matrices in the real orthonormal harmonics ------------------------------------------------------


def orthonormal(space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Indices of real and imaginary parts that are not always 0, and scale factors of all."""
    factors = np.repeat(np.sqrt(space.parseval), 2)
    live = np.ones(factors.size, dtype=bool)
    live[1::2] = space.parseval != 1  # a coefficient without its conjugate is real
    return np.flatnonzero(live), factors


def _degrees(space: Space) -> np.ndarray:
    return np.repeat(space.degrees, 2)[orthonormal(space)[0]]


def _laplacian(space: Space) -> np.ndarray:
    return np.repeat(space.laplacian, 2)[orthonormal(space)[0]]


def _products(space: Space, values: np.ndarray) -> OfLibrary:
    """The matrix of the integrals of f Y_j Y_k, from the values of f at `space.points`."""
    live, factors = orthonormal(space)
    check_memory(
        f"integrals of products of three harmonics on {space!r}",
        (2, FUNCTIONS_AT_A_TIME + live.size // 4, values.size),
        "degree",
    )
    rows, rounding = [], ENTRY_ROUNDING * np.abs(values).max()
    for begin in range(0, live.size, FUNCTIONS_AT_A_TIME):
        indices = live[begin : begin + FUNCTIONS_AT_A_TIME]
        unit = np.zeros((indices.size, factors.size))
        unit[np.arange(indices.size), indices] = 1 / factors[indices]
        image = space.to_coefficients(values * space.to_values(unit.view(complex)))
        row = (image.view(float) * factors)[:, live]
        rows.append(sparse.csr_array(np.where(np.abs(row) > rounding, row, 0)))
    return sparse.vstack(rows, format="csr")


def _stiffness(space: Space, values: np.ndarray) -> OfLibrary:
    """The matrix of the integrals of f <grad Y_j, grad Y_k>, from the values of f."""
    live, factors = orthonormal(space)
    rows, unit = [], np.zeros(factors.size)
    for index in live:
        unit[index] = 1 / factors[index]
        flux = values * space.gradient(unit.view(complex))
        rows.append((space.minus_divergence(flux).view(float) * factors)[live])
        unit[index] = 0.0
    matrix = np.stack(rows)
    return _cleaned((matrix + matrix.T) / 2)


def _fields(space: Space) -> tuple[list[OfLibrary], list[OfLibrary]]:
    """The matrices of <e_k, grad f> and <e_k, x> f, k = 1, ..., d, to one degree more.

    2 <e_k, grad f> = Lap(x_k f) - x_k Lap f + (d - 1) x_k f
    """
    finer, d = space.with_degree(space.degree + 1), space.dimension
    resolved = np.flatnonzero(_degrees(finer) <= space.degree)
    outer, inner = sparse.diags_array(_laplacian(finer)), sparse.diags_array(_laplacian(space))
    coordinates = [x[:, resolved] for x in _coordinates(finer)]
    derivatives = [(outer @ x - x @ inner + (d - 1) * x) / 2 for x in coordinates]
    return derivatives, coordinates


def _coordinates(space: Space) -> list[OfLibrary]:
    """The matrices of f -> x_k f, k = 1, ..., d, cut off at the degree of the space.

    They couple a harmonic with those whose degree differs by one and whose order by one at most.
    So sums of harmonics three degrees or orders apart, 18 at most, are transformed together.
    """
    live, factors = orthonormal(space)
    orders = np.repeat(space.mode_axes.get("m", space.degrees), 2)[live]
    degrees, parts = _degrees(space), live % 2
    size = space.degree + 3  # with a border, where there is nothing
    number_of = np.full((size, size, 2), -1)
    number_of[degrees + 1, orders + 1, parts] = np.arange(live.size)
    colours = (degrees % 3 * 3 + orders % 3) * 2 + parts
    sums = np.zeros((18, factors.size))
    sums[colours, live] = 1 / factors[live]
    values = space.to_values(sums.view(complex))
    rows, columns = [], []
    for degree_step, order_step, part in product((-1, 1), (-1, 0, 1), (0, 1)):
        neighbour = number_of[degrees + 1 + degree_step, orders + 1 + order_step, part]
        rows.append(np.flatnonzero(neighbour >= 0))
        columns.append(neighbour[rows[-1]])
    row, column = np.concatenate(rows), np.concatenate(columns)
    matrices = []
    for x in space.points.T:
        image = (space.to_coefficients(x * values).view(float) * factors)[:, live]
        entries = image[colours[column], row]
        matrix = sparse.csr_array((entries, (row, column)), shape=(live.size, live.size))
        matrices.append(_cleaned(matrix))
    return matrices


def _cleaned(matrix: OfLibrary) -> OfLibrary:
    """The matrix without entries that are rounding errors."""
    matrix = sparse.csr_array(matrix)
    matrix.data[np.abs(matrix.data) <= ENTRY_ROUNDING * np.abs(matrix.data).max(initial=0.0)] = 0
    matrix.eliminate_zeros()
    return matrix

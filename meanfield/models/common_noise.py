"""Common noise: one random map of the sphere that moves all tokens of a replica together.

The law of the tokens given the common path is a random density, which the same maps carry.
"""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ..core.dual import Array
from ..core.errors import MeanfieldError
from ..core.forms import PositiveNumbers
from ..core.kinds import Kind
from ..spaces.contract import Space
from ..states.points import unit

LONGEST_NOISE_STEP = 100.0  # angle or boost beyond any accuracy; e^710 overflows


class CommonNoise(Kind, family=True):
    """A noise of strength 1/kappa that is the same for all tokens of a replica, on the sphere.

    On the torus each circle has a noise of its own, independent of the others.

    A step of length dt depends on s = dt/kappa. It is drawn in two parts, as that of independent
    noise: `increments` are standard normal numbers that depend on the dimension alone, and `moved`
    is a map of the sphere that they determine. A density is carried by the same map. So tokens and
    a density that are moved by the same increments have the same common path.

    Attributes
    ----------
    kappa : ndarray
        The strength, > 0 and finite; an array makes an ensemble.
    needs_attention : bool
        Whether the map depends on the output of attention. Such a noise is not known on the torus.
    known_rate : bool
        Whether inner products change at most at the rate (d - 1)/kappa: steps are chosen by it.
    """

    needs_attention: ClassVar[bool] = False
    known_rate: ClassVar[bool] = True

    kappa: PositiveNumbers

    def validate(self) -> None:
        if not np.isfinite(self.kappa).all():
            raise ValueError(
                f"{type(self).__name__} expects a finite kappa; got {self.kappa.tolist()}. A model "
                "without common noise has common=None."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape of kappa."""
        return self.kappa.shape

    @abstractmethod
    def increments_size(self, d: int) -> int:
        """The number of normal numbers that a step takes."""

    def increments(self, replicas: int, d: int, rng: Generator, circles: int = 0) -> np.ndarray:
        """The random numbers of one step, (replicas, size), standard normal.

        For points of a torus, `circles` > 0, they are those of each circle, one after the other.
        """
        size = circles * self.increments_size(2) if circles else self.increments_size(d)
        return rng.standard_normal((replicas, size))

    @abstractmethod
    def moved(self, x: Array, s: Array, increments: Array, attention: Array | None = None) -> Array:
        """Points after a step of strength s = dt/kappa.

        Parameters
        ----------
        x : array, shape (R, n, d)
            Unit vectors; they are not changed.
        s : array, shape (R,)
        increments : array, shape (R, size)
        attention : array, shape (R, n, d), optional
            The output of attention at x, where `needs_attention`.

        Returns
        -------
        array, shape (R, n, d)
            New; unit vectors to rounding.
        """

    def moved_on_torus(self, x: np.ndarray, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        """Points (R, n, 2m) of a torus after a step: each pair moves as a point of its circle."""
        replicas, n, d = x.shape
        pairs = x.reshape(replicas, n, d // 2, 2).swapaxes(1, 2).reshape(-1, n, 2)
        numbers = increments.reshape(len(pairs), -1)
        moved = self.moved(pairs, np.repeat(s, d // 2), numbers)
        return moved.reshape(replicas, d // 2, n, 2).swapaxes(1, 2).reshape(x.shape)

    def carried(
        self,
        space: Space,
        coefficients: Array,
        s: Array,
        increments: Array,
        attention: Array | None = None,
    ) -> Array:
        """Coefficients (members, modes) of densities after a step.

        `attention` is its output at the grid. The nodes of the quadrature move with their masses,
        so that the mass is constant to rounding.
        """
        masses = space.weights * space.to_values(coefficients)
        points = np.broadcast_to(space.points, (*masses.shape, space.dimension))
        if space.spherical:
            return space.empirical(self.moved(points, s, increments, attention), masses)
        return space.empirical(self.moved_on_torus(points, s, increments), masses)


class CommonRotations(CommonNoise):
    """dX_i = sqrt(2/kappa) sum_(j<k) L_jk X_i o dB_jk, the same B for all tokens of a replica.

    L_jk = e_j e_k^T - e_k e_j^T, Stratonovich. A single token is a Brownian motion, as under
    isotropic noise. All tokens rotate as a rigid body, and inner products are preserved to
    rounding. Zonal drifts commute with rotations: the law is that without common noise, rotated.

    Parameters
    ----------
    kappa : float or array
        Strength, > 0 and finite.

    Notes
    -----
    One step, for s = dt/kappa:

        X_i' = exp(Omega) X_i,   Omega = sum_(j<k) w_jk L_jk,
        w_jk independent normal of variance v = 2 s/(1 + (d - 2) s/6)

    In any representation of SO(d), with C = sum_(j<k) L_jk^2 there (Casimir),

        E exp(Omega) = 1 + (v/2) C + (v^2/24) (3 C^2 + (d - 2) C) + O(v^3) = e^(s C) + O(s^3)

    so that the local error is O(s^3) for functions of any number of tokens: weak order 2. On the
    circle it is 0: the angle is normal of variance 2 s. Increments: d (d - 1)/2 normals. Cost
    O(R (d^3 + n d^2)).
    """

    def increments_size(self, d: int) -> int:
        return d * (d - 1) // 2

    def moved(self, x: Array, s: Array, increments: Array, attention: Array | None = None) -> Array:
        turned = x @ self._rotations(x.shape[2], s, increments).transpose(0, 2, 1)
        return unit(turned)  # up to the rounding of many steps

    def carried(
        self,
        space: Space,
        coefficients: Array,
        s: Array,
        increments: Array,
        attention: Array | None = None,
    ) -> Array:
        if space.spherical:
            rotations = self._rotations(space.dimension, s, increments)
        else:  # angles of each circle; exp(Omega) turns clockwise
            rotations = -np.sqrt(2 * s)[:, None] * increments
        pairs = zip(coefficients, rotations, strict=True)
        return np.array([space.rotate(series, rotation) for series, rotation in pairs])

    @staticmethod
    def _rotations(d: int, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        variance = 2 * s / (1 + (d - 2) * s / 6)
        return exponentials(_antisymmetric(d, np.sqrt(variance)[:, None] * increments))


class CommonTranslations(CommonNoise):
    """dX_i = sqrt(2/kappa) P_X_i o dB, the same Brownian motion B of R^d for all tokens.

    Stratonovich. A single token is a Brownian motion, as under isotropic noise. Conformal maps move
    all tokens together, which approach each other at the mean rate (d - 1)/kappa.

    Parameters
    ----------
    kappa : float or array
        Strength, > 0 and finite.

    Raises
    ------
    MeanfieldError
        On a step that moves tokens by more than 100 radians.

    Notes
    -----
    The flow of P_x u is a Lorentz boost of the light-like vector (x, 1) along u. The boosts K_k
    generate a group, in which the tokens move as one point; [K_j, K_k] = L_jk, a rotation. One
    step, for s = dt/kappa, applies to all tokens

        exp(sqrt(2 s (1 + (d - 1) s/3)) sum_k xi_k K_k - 2 s sum_(j<k) A_jk L_jk)

    with xi the increment of a Brownian motion of R^d in the time 1 and A its Levy areas,

        A_jk = eta_j xi_k - xi_j eta_k + zeta_jk,   eta, zeta normal of variance 1/12

    of which the means and covariances given xi are exact. With S = sum_k K_k^2 the terms of order
    s^2 of the expectation are S^2/2 - (d - 1) S/3 without the factor of the variance, so that it is
    e^(s S) + O(s^3): weak order 2, for functions of any number of tokens. The areas make the paths
    accurate too: their strong order is 1, where a product of boosts, one along every axis, which
    has no areas, has 1/2. Increments: d (d + 3)/2 normals. Cost O(R (d^3 + n d^2)).

    References
    ----------
    Foster and Habermann, Combin. Probab. Comput. 32 (2023), 370-397: Levy areas by polynomials.
    """

    def increments_size(self, d: int) -> int:
        return d * (d + 3) // 2

    def moved(self, x: Array, s: Array, increments: Array, attention: Array | None = None) -> Array:
        d = x.shape[2]
        boosts = self._boosts(d, s, increments)
        result = x @ boosts[:, :d, :d].transpose(0, 2, 1)
        result += boosts[:, None, :d, d]
        return unit(result)  # divided by its time, up to rounding

    @staticmethod
    def _boosts(d: int, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        """Lorentz matrices (R, d + 1, d + 1)."""
        xi, eta, zeta = np.split(increments, [d, 2 * d], axis=1)
        move = np.sqrt(2 * s * (1 + (d - 1) * s / 3))[:, None] * xi
        bounded(move)
        j, k = np.triu_indices(d, 1)
        areas = (eta[:, j] * xi[:, k] - xi[:, j] * eta[:, k] + zeta) / np.sqrt(12)
        generator = np.zeros((len(s), d + 1, d + 1))
        generator[:, :d, :d] = _antisymmetric(d, -2 * s[:, None] * areas)
        generator[:, :d, d] = generator[:, d, :d] = move
        return exponentials(generator)


class CommonMatrix(CommonNoise):
    """dX_i = sqrt(2/kappa) P_X_i dB A_mu(X_i), B a Brownian motion of d x d matrices, Ito.

    A[mu](x) is the output of attention, and B the same for all tokens: the value matrix has a
    random part, new in every layer (stochastic Transformers). The equation is the limit of layers
    x <- N(x + sqrt(2 step/kappa) W A[mu](x)), W a matrix of independent N(0, 1) entries and
    N(h) = h/|h|. In R^d it reads dX = sqrt(2/kappa) P_X dB A - ((d - 1)/kappa) |A|^2 X dt, and its
    generator for one token in a frozen mu is |A|^2 Lap/kappa.

    Parameters
    ----------
    kappa : float or array
        Strength, > 0 and finite.

    Notes
    -----
    One step is one layer, with A of the beginning of the step: weak order 1. Increments: d^2
    normals. Cost: one evaluation of attention, and O(R n d^2).

    References
    ----------
    arXiv:2601.21942.
    """

    needs_attention = True
    known_rate = False

    def increments_size(self, d: int) -> int:
        return d * d

    def moved(self, x: Array, s: Array, increments: Array, attention: Array | None = None) -> Array:
        d = x.shape[2]
        matrices = np.sqrt(2 * s)[:, None, None] * increments.reshape(-1, d, d)
        return unit(np.asarray(attention) @ matrices.transpose(0, 2, 1) + x)


def check_length(subject: str, length: float) -> None:
    """Raise MeanfieldError if a step of this length is too long."""
    if not length <= LONGEST_NOISE_STEP:
        raise MeanfieldError(
            f"A step of noise {subject} {length:.3g} is too long to mean anything; expected at "
            f"most {LONGEST_NOISE_STEP:g}, and much less than 1 to be accurate. Shorten dt."
        )


def bounded(moves: np.ndarray) -> np.ndarray:
    """The moves of tokens, unchanged; MeanfieldError if one is too long."""
    check_length("that moves tokens, in radians, by", np.abs(moves).max(initial=0.0))
    return moves


# Matrix groups --------------------------------------------------------------------------------


def _antisymmetric(d: int, upper_entries: np.ndarray) -> np.ndarray:
    """Matrices (R, d, d) with these entries (R, d (d - 1)/2) above the diagonal."""
    result = np.zeros((len(upper_entries), d, d))
    result[:, *np.triu_indices(d, 1)] = upper_entries
    return result - result.transpose(0, 2, 1)


def exponentials(generators: np.ndarray) -> np.ndarray:
    """The exponential of each matrix (R, k, k), by scaling, Taylor's series and squaring."""
    size = np.abs(generators).sum(axis=2).max(axis=1, initial=0.0)
    halvings = np.ceil(np.log2(np.maximum(2 * size, 1.0))).astype(int)  # each by its own size
    part = generators / 2.0 ** halvings[:, None, None]
    identity = np.eye(generators.shape[1])
    result = np.broadcast_to(identity, generators.shape)
    for degree in range(16, 0, -1):
        result = identity + part @ result / degree
    for squaring in range(halvings.max(initial=0)):
        pending = halvings > squaring
        result[pending] = result[pending] @ result[pending]
    return result

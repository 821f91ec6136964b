"""Drifts of any kernel of two points: v(x) = P_x int k(x, y) dmu(y), over int z(x, y) dmu(y)."""

from contextlib import suppress
from dataclasses import KW_ONLY
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..core.annotations import Function
from ..core.cached import cached_property
from ..core.checks import answer, first_not_finite, plain_array, require, returned, takes
from ..core.errors import MeanfieldError
from ..core.forms import Positive
from ..spaces.validity import SampledHarmonics
from .drift import Drift
from .pointwise import PROBED_POINTS, read_only, tangential

if TYPE_CHECKING:
    from ..spaces import Space


class PairKernel(Drift):
    """A velocity field given by a kernel of two points.

        v(x) = P_x int k(x, y) dmu(y) / int z(x, y) dmu(y)

    on the sphere, without P_x in R^d. Zonal kernels, with a cost of O(n), and `Attention` have
    separate classes, which are faster.

    Parameters
    ----------
    kernel : callable
        k of points x (..., d) and y (..., d), whose leading axes broadcast; it returns vectors
        (..., d), to which their shapes broadcast.
    weight : callable, optional
        z > 0 of points as those of k; it returns numbers (...). 1 by default.
    tolerance : float
        For densities, relative to the largest value of k: bound of the neglected harmonics of
        y ↦ k(x, y), and of the error of low-rank approximations of large matrices.

    Raises
    ------
    TypeError, ValueError
        If they are no functions; where they are evaluated, if they return no finite real numbers,
        or another shape.
    MeanfieldError
        On densities, if harmonics do not resolve k or z as functions of y, or a large matrix has
        no low rank; with the accuracy, or the rank and the error, that were reached.

    Notes
    -----
    Tokens cost O(n^2) values of k. For densities on N grid points the matrix of k is dense if it
    has at most 2^23 entries. Otherwise adaptive cross approximation gives a rank r, at a cost of
    O(r N) per step. See `engines.pair_kernels`.

    Examples
    --------
    Attraction to points rotated by a matrix R, with weights that decrease with the distance:

    >>> def k(x, y):
    ...     return np.exp(-((x - y) ** 2).sum(axis=-1, keepdims=True)) * (y @ R.T)
    >>> drift = PairKernel(k)
    """

    _internal: ClassVar[str] = "harmonics on_grid second_harmonics"

    kernel: Function
    _: KW_ONLY
    weight: Function | None = None
    tolerance: Positive = 1e-11

    def validate(self) -> None:
        super().validate()
        for name, function in (("kernel", self.kernel), ("weight", self.weight)):
            fits = function is None or takes(function, 2)
            require(name, function, "a function of points x and y, (..., d)", fits, TypeError)

    @property
    def normalised(self) -> bool:  # type: ignore[override]
        return self.weight is not None

    def rate(self, t: float = 0.0) -> np.ndarray:
        """1, as the size of k is not known in advance."""
        return np.ones(())

    def known_rate(self, on_sphere: bool) -> bool:
        return False

    def values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Checked values k(x, y), (..., d), at points whose leading axes broadcast."""
        shape = np.broadcast_shapes(x.shape, y.shape)
        return _checked("PairKernel.kernel", self.kernel, x, y, shape)

    def weights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Checked values z(x, y), (...)."""
        assert self.weight is not None
        shape = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        return _checked("PairKernel.weight", self.weight, x, y, shape)

    def on_grid(self, space: "Space", second: bool = False) -> np.ndarray:
        """Components of P_x k(x, y), and z(x, y), for x on the grid of a space and a few points y.

        If `second`, for y on the grid and a few points x. Both are divided by their largest values,
        since their quotient is the velocity.
        """
        points = space.points
        some = np.random.default_rng(0).choice(len(points), PROBED_POINTS, replace=False)
        pairs = [(points[i], points) if second else (points, points[i]) for i in some]
        k = [self._finite(self.values, *pair) for pair in pairs]
        if second:
            k = [np.einsum("fd,nd->fn", space.frame[:, i], v) for i, v in zip(some, k, strict=True)]
        else:
            k = [tangential(space, v) for v in k]
        groups = [np.concatenate(k)]
        if self.weight is not None:
            groups.append(np.stack([self._finite(self.weights, *pair) for pair in pairs]))
        return np.concatenate([group / (np.abs(group).max() or 1.0) for group in groups])

    def _finite(self, function: Function, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Values of k or z at pairs of points; MeanfieldError unless they are finite."""
        values = function(x, y)
        if where := first_not_finite(values, x=x, y=y):
            raise MeanfieldError(f"{self!r} returned values that are not finite: {where}.")
        return values

    @cached_property
    def harmonics(self) -> SampledHarmonics:
        """Harmonics of k and z as functions of x, whatever the degree of a density is."""
        return SampledHarmonics(self.on_grid)

    @cached_property
    def second_harmonics(self) -> SampledHarmonics:
        """Harmonics of k and z as functions of y."""
        return SampledHarmonics(partial(self.on_grid, second=True))

    def why_not_finite(self, x: np.ndarray) -> str:
        for tokens in x.reshape(-1, *x.shape[-2:]):
            for token in tokens:
                try:
                    for function in (self.values, self.weights)[: 1 + self.normalised]:
                        self._finite(function, token, tokens)
                except MeanfieldError as error:
                    return str(error)
        return f"the weights of {self!r} add up to 0, or sums over tokens are not finite."


def _checked(
    name: str, function: Function, x: np.ndarray, y: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """Real values at pairs of points, broadcast to a shape; TypeError or ValueError for others."""
    values = answer(name, function, f"return numbers of shape {shape}", read_only(x), read_only(y))
    name += ", of pairs of points,"
    array = plain_array(f"What {name} returns", values)
    with suppress(ValueError):  # `returned` refuses the shape, and numbers in place of vectors
        if array.shape[-1:] != (1,) or shape[-1:] == (1,):
            array = np.broadcast_to(array, shape)
    return np.asarray(returned(name, array, shape), dtype=float)

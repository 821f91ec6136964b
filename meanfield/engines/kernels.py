"""Kernels k(x, y) that are no functions of <x, y>, applied to functions on the grid of a space.

Sums over the grid would take the square of the number of its points. The kernels of attention are
smooth: they have few harmonics in y, and on S^2 in x too.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Self

import numpy as np

from ..core.cached import cached_property
from ..core.checks import check_memory
from ..core.errors import MeanfieldError
from ..core.kinds import ancestor
from ..lowlevel.fourier import good_length
from ..spaces import sphere_points
from ..spaces.circle import Circle
from ..spaces.kernels import exponential_multipliers
from ..spaces.sphere import Sphere

NEGLIGIBLE_MODE = 1e-17  # of the largest coefficient of a kernel
FFT_ROUNDING = 3e-16  # of coefficients by FFT, relative to the largest
RESOLVED_KERNEL = 1e-14
RESOLVED_SLOPE = 10 * RESOLVED_KERNEL  # that of kernels by beta
LARGEST_TABLE = 1 << 23  # entries of a table
FIRST_DEGREE = 4  # degree with which the expansion of a kernel on S^2 begins, at least
FINEST_DEGREE = 64  # degree to which kernels on S^2 are expanded
MOST_KERNEL_VALUES = 1 << 25  # of a kernel that is expanded: 256 MiB
KEPT_KERNELS = 8  # of one name: those of the stages of a step where matrices change with time
FITTED_POINTS = 800  # points, about, at which the size of a kernel is looked at
EQUAL_SINGULAR_VALUES = 1e-15  # singular values, relative
FORM_SHARES = 0.2, 0.4, 0.6, 0.8, 1.0  # of a quadratic form that kernels on S^2 may contain
FEW_LOST_DIGITS = 3.0  # as MOST_UNEVEN, of kernels with the fewest harmonics
MOST_UNEVEN = 8.0  # logarithm of how much smaller than its largest a kernel may be: digits are lost
COORDINATE_SIGNS = np.array([[1 - 2 * (s >> a & 1) for a in range(3)] for s in range(8)])


class Kernel(ABC):
    """f -> int k(x, y) f(y) dsigma(y) e^-top(x) at the points x of a grid.

    Attributes
    ----------
    top : ndarray, (N,) or ()
        Logarithm of the scale of k at each point: sums do not overflow.
    """

    top: np.ndarray = np.zeros(())

    @abstractmethod
    def __call__(self, functions: np.ndarray) -> np.ndarray:
        """Sums (r, N) for functions with values (r, N)."""

    def parts(self, functions: np.ndarray) -> np.ndarray:
        """Functions with values (r, N) as `of_parts` takes them, (r, ...)."""
        return functions

    def of_parts(self, parts: np.ndarray) -> np.ndarray:
        """Sums (r, N) of functions in the form of `parts`."""
        return self(parts)

    def slope(self, A: np.ndarray, dA: np.ndarray) -> "Kernel | None":
        """<dA x, y> k(x, y) of a kernel k = e^<A x, y>, of the same `parts` and with this `top`.

        None where it is no faster than k on products with coordinates of y.
        """
        return None

    @abstractmethod
    def transposed(self, functions: np.ndarray) -> np.ndarray:
        """int k(x, y) f(x) e^-top(x) dsigma(x) at the points y, (r, N), as the grid sums it."""


class Expansion(ABC):
    """k(x, y) e^-<x, scale x> by harmonics of both points, from moments to series.

    Attributes
    ----------
    degrees : (int, int)
        Of the harmonics in x and in y.
    scale : ndarray, (d, d)
        A quadratic form for which k e^-<x, scale x> is at most about 1, or 0.
    rest : ndarray, (d, d), or None
        A quadratic form that is left to a factor e^<y, rest y> of mu, at most 1.
    largest : float
        Of |k| e^-<x, scale x>, about; rounding is relative to it.
    """

    degrees: tuple[int, int]
    scale: np.ndarray
    rest: np.ndarray | None = None
    largest: float = 1.0

    @abstractmethod
    def series(self, moments: np.ndarray) -> np.ndarray:
        """Coefficients (r, modes) of int k(x, y) e^-<x, scale x> dmu(y), from those of mu."""


class CircleKernel(Kernel):
    """A table of conjugate Fourier coefficients of k(x_j, .), (N, modes)."""

    def __init__(self, coefficients: np.ndarray, top: np.ndarray | None = None) -> None:
        weights = np.where(np.arange(coefficients.shape[1]) == 0, 1.0, 2.0)
        table = np.empty((coefficients.shape[1], 2, len(coefficients)))
        table[:, 0] = (weights * coefficients.real).T
        table[:, 1] = -(weights * coefficients.imag).T
        self.table = table.reshape(-1, len(coefficients))
        self.top = np.zeros(()) if top is None else top

    def __call__(self, functions: np.ndarray) -> np.ndarray:
        count = len(self.table) // 2
        moments = np.fft.rfft(functions, norm="forward")[:, :count]
        return np.ascontiguousarray(moments).view(float) @ self.table

    def transposed(self, functions: np.ndarray) -> np.ndarray:
        n = functions.shape[1]
        series = (functions @ self.table.T / n).view(complex)
        series[:, 1:] /= 2
        return np.fft.irfft(series, n=n, norm="forward")


class CircleExpansion(Expansion):
    """From the values of a kernel on a grid of both angles, (x, y)."""

    def __init__(self, values: np.ndarray, scale: np.ndarray) -> None:
        n = len(values)
        table = np.fft.fft2(values, norm="forward")
        sizes, half = np.abs(table), (n - 1) // 2
        self.scale, self.largest = scale, float(np.abs(values).max())
        kept = sizes > FFT_ROUNDING * sizes.max()
        degree = np.abs(np.fft.fftfreq(n, 1 / n))
        K, L = (int(degree[kept.any(axis=axis)].max(initial=0)) for axis in (1, 0))
        self.degrees = min(max(K, 1), half), min(max(L, 1), half)
        rows = table[: self.degrees[0] + 1]
        l = np.arange(self.degrees[1] + 1)
        self._tables = rows[:, l].T, np.where(l == 0, 0.0, rows[:, -l]).T  # times conj m, and m
        tails = [sizes[degree > half - n // 16].max(), sizes[:, degree > half - n // 16].max()]
        self.resolved = max(tails) <= RESOLVED_KERNEL * sizes.max()

    def series(self, moments: np.ndarray) -> np.ndarray:
        return moments.conj() @ self._tables[0] + moments @ self._tables[1]


class SphereKernel(Kernel, Expansion):
    """k(x, y) = h(R x, S y) e^<y, rest y>, by matrices of h between real harmonics.

    Parameters
    ----------
    space : Sphere
    frames : two ndarrays, (3, 3)
        R and S, orthogonal.
    degrees : (int, int)
        Of the harmonics in x and in y.
    blocks : list[Any] of (rows, columns, matrix)
        Indices into the real and imaginary parts of coefficients in y and in x, and int int h Y Y.
    scale, rest : ndarray, (3, 3)
        See `Expansion`.
    largest : float
    """

    def __init__(
        self, space: Sphere, frames: Any, degrees: Any, blocks: list[Any], scale: np.ndarray,
        largest: float, rest: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self._rings, self.degrees, self._blocks = space.rings, degrees, blocks
        self._space, self._frames = space, frames
        self.scale, self.largest, self.rest = scale, largest, rest
        self._factor = 1.0 if rest is None else np.exp(quadratic(rest, space.points))
        self._back = sphere_points.rotation(degrees[0], frames[0].T)
        self._into = sphere_points.rotation(degrees[1], frames[1])
        self._size = 2 * sphere_points.orders_of(degrees[0]).size
        self.top = quadratic(scale, space.points) if scale.any() else np.zeros(())

    @classmethod
    def resolved(
        cls,
        space: Sphere,
        function: Callable[..., Any],
        frames: Any,
        degrees: tuple[int, int],
        scale: np.ndarray,
        rest: np.ndarray | None,
        tolerance: float,
    ) -> tuple[Self | None, float]:
        """The kernel of a function (x, y) -> h (n, m), and the size of its last harmonics.

        None where these are above a share `tolerance` of the largest.
        """
        R, S = frames
        degree, inner = degrees
        grid = _octant(degree)

        def framed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return function(x @ R, y @ S)

        blocks = grid.blocks(framed)
        if blocks is None:
            return None, np.inf
        sizes = np.zeros(degree + 1)
        for where, matrix in blocks:
            for table in (matrix, matrix.T):
                np.maximum.at(sizes, grid.degrees[where], np.abs(table).max(axis=0))
        tail = sizes[-2:].max() / (sizes.max() or 1.0)
        if not tail <= tolerance:
            return None, tail
        keep = grid.degrees <= inner
        index = np.cumsum(keep) - 1
        parts = [(index[w[keep[w]]], w, matrix[keep[w]]) for w, matrix in blocks]
        largest = float(np.abs(function(grid.points, grid.points)).max())
        return cls(space, frames, degrees, parts, scale, largest, rest), tail

    def __call__(self, functions: np.ndarray) -> np.ndarray:
        return self.of_parts(self.parts(functions))

    def parts(self, functions: np.ndarray) -> np.ndarray:
        """Real and imaginary parts of the coefficients in the frame of y."""
        return self._framed(self._rings.analysis(self._factor * functions, self.degrees[1]))

    def of_parts(self, parts: np.ndarray) -> np.ndarray:
        return self._rings.synthesis(self._series(parts), self.degrees[0])

    def slope(self, A: np.ndarray, dA: np.ndarray) -> "SphereKernel | None":
        if self.rest is not None:
            return None

        def weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return (x @ dA.T @ y.T) * exponential_weights(A, self.scale)(x, y)

        about = self._space, weights, self._frames, self.degrees, self.scale, None
        return self.resolved(*about, RESOLVED_SLOPE)[0]

    def series(self, moments: np.ndarray) -> np.ndarray:
        return self._series(self._framed(moments))

    def _framed(self, moments: np.ndarray) -> np.ndarray:
        return np.array([self._into(one) for one in moments]).view(float)

    def _series(self, parts: np.ndarray) -> np.ndarray:
        series = np.zeros((len(parts), self._size))
        for rows, columns, matrix in self._blocks:
            series[:, columns] = parts[:, rows] @ matrix
        return np.array([self._back(one) for one in series.view(complex)])

    def transposed(self, functions: np.ndarray) -> np.ndarray:
        K, L = self.degrees
        above, below = (np.repeat(_parseval(n), 2) for n in (K, L))
        turned = sphere_points.rotation(K, self._frames[0])
        sums = self._rings.analysis(functions, K)
        parts = np.array([turned(one) for one in sums]).view(float) * above
        moments = np.zeros((len(parts), below.size))
        for rows, columns, matrix in self._blocks:
            moments[:, rows] += parts[:, columns] @ matrix.T
        moments /= below
        into = sphere_points.rotation(L, self._frames[1].T)
        series = np.array([into(one) for one in moments.view(complex)])
        return self._factor * self._rings.synthesis(series, L)


def _parseval(degree: int) -> np.ndarray:
    """1 for coefficients of order 0, 2 for others, which stand for two."""
    return 1.0 + np.minimum(sphere_points.orders_of(degree), 1)


class TurnedKernel(Kernel, Expansion):
    """k(x, y) = e^(c <R x, y>), R orthogonal: a convolution, and a turn of what it gives."""

    def __init__(self, space: Sphere, c: float, R: np.ndarray, degree: int) -> None:
        sizes = exponential_multipliers(c, degree, 3)
        degree = max(int(np.flatnonzero(sizes >= NEGLIGIBLE_MODE * sizes[0])[-1]), 1)
        self._rings, self.degrees = space.rings, (degree, degree)
        self._back = sphere_points.rotation(degree, R.T)
        self._forth = sphere_points.rotation(degree, R)
        self._multipliers = sizes[sphere_points.degrees_of(degree)]
        self.top, self.scale = np.array(c), c * np.eye(3)

    def __call__(self, functions: np.ndarray) -> np.ndarray:
        moments = self._rings.analysis(functions, self.degrees[1])
        return self._rings.synthesis(self.series(moments), self.degrees[0])

    def series(self, moments: np.ndarray) -> np.ndarray:
        return np.array([self._back(one) for one in self._multipliers * moments])

    def transposed(self, functions: np.ndarray) -> np.ndarray:
        moments = self._rings.analysis(functions, self.degrees[0])
        series = self._multipliers * [self._forth(one) for one in moments]
        return self._rings.synthesis(series, self.degrees[1])


class LinearKernel(Kernel):
    """k(x, y) = <A x, y>."""

    def __init__(self, space: Any, A: np.ndarray) -> None:
        self._points, self._weights, self._A = space.points, space.weights, A

    def __call__(self, functions: np.ndarray) -> np.ndarray:
        first = (functions * self._weights).reshape(-1, self._weights.size) @ self._points
        return (first @ self._A @ self._points.T).reshape(functions.shape)

    def transposed(self, functions: np.ndarray) -> np.ndarray:
        first = (functions * self._weights).reshape(-1, self._weights.size) @ self._points
        return (first @ self._A.T @ self._points.T).reshape(functions.shape)


# Makers of kernels -------------------------------------------------------------------------------


class Kernels(ABC):
    """The kernels of one head of attention on one space; the last ones are kept.

    Attributes
    ----------
    bounded : float
        See `DensityField.bounded`.
    """

    def __init__(self, space: Any) -> None:
        self.space, self.bounded = space, 0.0
        self._known: dict[str, dict[tuple[bytes, ...], Any]] = {}

    def remembered(self, key: Any, build: Callable[[], Any]) -> Any:
        """build(), kept while its key is one of the last KEPT_KERNELS with its first entry."""
        numbers = tuple(np.asarray(number).tobytes() for number in key[1:])
        kept = self._known.setdefault(key[0], {})
        kernel = kept.pop(numbers) if numbers in kept else build()
        kept[numbers] = kernel  # the last one used is the last one in the table
        if len(kept) > KEPT_KERNELS:
            del kept[next(iter(kept))]
        return kernel

    @abstractmethod
    def exponential(self, A: np.ndarray) -> Kernel | None:
        """e^<A x, y>; None where nothing is faster and as accurate as sums over pairs."""

    def gaussian(self, A: np.ndarray, form: np.ndarray) -> Kernel | None:
        """e^(<A x, y> + <y, form y>) over its largest in y; None where there is no fast way."""
        return None

    @abstractmethod
    def smooth(
        self, A: np.ndarray, function: Callable[..., Any], resolved: float = RESOLVED_KERNEL
    ) -> Kernel | None:
        """function(x, y) -> (n, m), of points (n, d) and (m, d); None as for `exponential`.

        Where it is a function of <A x, y>, this is used. Harmonics that are missing are below a
        share `resolved` of the largest.
        """

    @abstractmethod
    def expanded(self, A: np.ndarray, form: np.ndarray | None = None) -> Expansion | None:
        """e^(<A x, y> + <y, form y>) by harmonics; None where these are too many."""

    @abstractmethod
    def expanded_function(self, A: np.ndarray, function: Callable[..., Any]) -> Expansion | None:
        """function(x, y) by harmonics; None where these are too many."""


class CircleKernels(Kernels):
    """Kernels on the circle: e^<w, y> = sum_k I_k(|w|) e^(ik (theta - phi)), w = A x."""

    space: Circle

    def exponential(self, A: np.ndarray) -> Kernel:
        from scipy.special import ive

        w = self.space.points @ A.T
        radius, angle = np.hypot(w[:, 0], w[:, 1]), np.arctan2(w[:, 1], w[:, 0])
        largest = exponential_multipliers(radius.max(), self.most, 2)
        count = int(np.flatnonzero(largest >= NEGLIGIBLE_MODE * largest[0])[-1]) + 1
        check_memory(f"a kernel with {count} modes", (2, radius.size, count), "degree or beta")
        k = np.arange(count)
        return CircleKernel(ive(k, radius[:, None]) * np.exp(1j * k * angle[:, None]), radius)

    @property
    def most(self) -> int:
        """Degrees that functions on the grid have."""
        return (len(self.space.points) - 1) // 2

    def gaussian(self, A: np.ndarray, form: np.ndarray) -> Kernel | None:
        def weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            logits = x @ A.T @ y.T + np.einsum("na,ab,nb->n", y, form, y)
            return np.exp(logits - logits.max(axis=1, keepdims=True))

        return self.smooth(A, weights)

    def smooth(
        self, A: np.ndarray, function: Callable[..., Any], resolved: float = RESOLVED_KERNEL
    ) -> Kernel | None:
        x, n = self.space.points, len(self.space.points)
        size = n
        while True:
            angles = 2 * np.pi * np.arange(size) / size
            table = np.fft.rfft(function(x, Circle.embed(angles)), norm="forward").conj()
            sizes = np.abs(table).max(axis=0)
            if sizes[-(size // 16) - 1 :].max() <= resolved * sizes.max():
                break
            if 2 * size * n > LARGEST_TABLE:
                return None
            size = good_length(2 * size)
        kept = np.flatnonzero(sizes >= NEGLIGIBLE_MODE * sizes.max())
        count = min(int(kept[-1]) + 1 if kept.size else 1, self.most + 1)
        return CircleKernel(table[:, :count])

    def expanded(self, A: np.ndarray, form: np.ndarray | None = None) -> Expansion | None:
        quadratic_form = np.zeros((2, 2)) if form is None else form
        scale = fitted_scale(A, quadratic_form, Circle(FITTED_POINTS).points)
        if scale is None:
            return None

        def weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.exp(_logits(A, quadratic_form, x, y) - quadratic(scale, x)[:, None])

        return self._expanded(weights, scale)

    def expanded_function(self, A: np.ndarray, function: Callable[..., Any]) -> Expansion | None:
        return self._expanded(function, np.zeros((2, 2)))

    @staticmethod
    def _expanded(function: Callable[..., Any], scale: np.ndarray) -> Expansion | None:
        size = 64
        while size**2 <= LARGEST_TABLE:
            points = Circle.embed(2 * np.pi * np.arange(size) / size)
            expansion = CircleExpansion(function(points, points), scale)
            if expansion.resolved:
                return expansion
            size *= 2
        return None


class SphereKernels(Kernels):
    """Kernels on S^2, in the frames in which A is diagonal.

    In these frames functions of <A x, y> do not change where the same coordinate of x and of y
    changes its sign: there are eight blocks of harmonics, by their parities.
    """

    space: Sphere

    def exponential(self, A: np.ndarray) -> SphereKernel | TurnedKernel | None:
        """The kernel by the harmonics of e^(<A x, y> - <x, |A| x>), |A| = (A^T A)^(1/2).

        It varies less with x than e^<A x, y> does, since |A x| - <x, |A| x> lies between 0 and a
        fourth of the largest singular value. Where A is a multiple of an orthogonal matrix it is a
        convolution.
        """
        U, singular, Vt = np.linalg.svd(A)
        largest, least = singular[[0, -1]]
        if largest - least <= EQUAL_SINGULAR_VALUES * largest:
            R = np.eye(3) if _diagonal(A) and (np.diag(A) > 0).all() else U @ Vt
            return TurnedKernel(self.space, largest, R, self.most)
        size = (Vt.T * singular) @ Vt
        uneven = (largest - least) ** 2 / (4 * (largest + least) or 1.0)
        if uneven > MOST_UNEVEN:
            return None
        sizes = exponential_multipliers(largest, FINEST_DEGREE + 1, 3)
        first = max(int(np.flatnonzero(sizes >= NEGLIGIBLE_MODE * sizes[0])[-1]), FIRST_DEGREE)
        scale = size + uneven * np.eye(3)

        weights = exponential_weights(A, scale)
        return self._first(A, weights, range(first, FINEST_DEGREE + 1, 8), scale)

    def gaussian(self, A: np.ndarray, form: np.ndarray) -> SphereKernel | None:
        """The kernel by harmonics of e^(<A x, y> + <y, part y> - <x, scale x>), form = part + rest.

        `part` is a multiple of the component of the form that is diagonal in the frame of y in
        which A is, and `scale` is diagonal in that of x: all parities keep their blocks. The
        smaller the multiple, the fewer the harmonics, and the more digits a factor e^<y, rest y>
        may lose: it is the first one of FORM_SHARES that loses few. <x, scale x> is fitted to the
        largest logits of points x. Where all lose too many, the kernel has the whole form.
        """
        singular = np.linalg.svd(A, compute_uv=False)
        orthogonal = np.ptp(singular) <= EQUAL_SINGULAR_VALUES * singular[0]
        if orthogonal and np.ptp(np.linalg.eigvalsh(form)) <= MOST_UNEVEN:
            return None  # a convolution is faster

        R, S = _frames(A)
        diagonal = (S.T * np.diag(S @ form @ S.T)) @ S
        some = self.space.points[:: 1 + len(self.space.points) // FITTED_POINTS]
        largest = _logits(A, form, some, some).max(axis=1)
        tried = []
        for share in FORM_SHARES:
            rest = form - share * diagonal
            rest -= np.linalg.eigvalsh(rest)[-1] * np.eye(3)
            scale = fitted_scale(A, form - rest, some, R)
            if scale is not None:
                lost = (quadratic(scale, some) - largest).max()
                if lost <= FEW_LOST_DIGITS:
                    return self._gaussian(A, form - rest, scale, rest)
                tried.append((lost, scale, rest))
        if tried:
            lost, scale, rest = min(tried, key=lambda each: each[0])
            if lost <= MOST_UNEVEN:
                return self._gaussian(A, form - rest, scale, rest)
        scale = fitted_scale(A, form, some)
        return None if scale is None else self._gaussian(A, form, scale, None)

    def _gaussian(
        self, A: np.ndarray, form: np.ndarray, scale: np.ndarray, rest: np.ndarray | None
    ) -> SphereKernel | None:
        def weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.exp(_logits(A, form, x, y) - quadratic(scale, x)[:, None])

        return self._first(A, weights, (32, 40, 44, 48, 54, 60), scale, rest=rest, analytic=True)

    def smooth(
        self, A: np.ndarray, function: Callable[..., Any], resolved: float = RESOLVED_KERNEL
    ) -> SphereKernel | None:
        degrees, scale = (16, 32, 48, 60, FINEST_DEGREE), np.zeros((3, 3))
        return self._first(A, function, degrees, scale, resolved=resolved)

    def expanded(self, A: np.ndarray, form: np.ndarray | None = None) -> Expansion | None:
        return self.exponential(A) if form is None else self.gaussian(A, form)

    def expanded_function(self, A: np.ndarray, function: Callable[..., Any]) -> Expansion | None:
        return self.smooth(A, function)

    def _first(
        self, A: np.ndarray, function: Callable[..., Any], degrees: Iterable[int],
        scale: np.ndarray, *, rest: np.ndarray | None = None, analytic: bool = False,
        resolved: float = RESOLVED_KERNEL,
    ) -> SphereKernel | None:  # fmt: skip
        """The kernel to the first of these degrees that resolves the function; None if none does.

        A function that is not known to be `analytic` is given up where its harmonics decay slowly.
        """
        frames = _frames(A)
        for degree in degrees:
            pair = degree, min(degree, self.most)  # functions on the grid have no more
            about = self.space, function, frames, pair, scale, rest, resolved
            kernel, tail = SphereKernel.resolved(*about)
            if kernel is not None:
                return kernel
            if not (analytic or tail <= resolved ** (degree / FINEST_DEGREE)):
                break
        return None

    @property
    def most(self) -> int:
        """Degrees that functions on the grid have."""
        return (self.space.longitudes.size - 1) // 2


def of_points(
    kernel: Callable[..., Any], Q: np.ndarray, K: np.ndarray, beta: Any
) -> Callable[..., Any]:
    """(x, y) -> kernel(logits, (beta |Qx|^2, beta |Ky|^2)) of points (n, d) and (m, d), (n, m)."""

    def weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        squares = [beta * ((p @ M.T) ** 2).sum(1) for p, M in ((x, Q), (y, K))]
        logits = (x @ (beta * K.T @ Q).T @ y.T)[None]
        return kernel(logits, (squares[0][None, :, None], squares[1][None, None]))[0]

    return weights


def exponential_weights(A: np.ndarray, scale: np.ndarray) -> Callable[..., Any]:
    """(x, y) -> e^(<A x, y> - <x, scale x>) of points (n, d) and (m, d), (n, m)."""
    return lambda x, y: np.exp(x @ A.T @ y.T - quadratic(scale, x)[:, None])


def quadratic(form: np.ndarray, x: np.ndarray) -> np.ndarray:
    """<x, form x> of points (..., d)."""
    return np.einsum("...a,ab,...b->...", x, form, x)


def fitted_scale(
    A: np.ndarray, form: np.ndarray, points: np.ndarray, frame: np.ndarray | None = None
) -> np.ndarray | None:
    """The quadratic form that is nearest to the largest logits of points x, and not below them.

    In a frame it is the nearest one that is diagonal there. None if it is above some by more than
    MOST_UNEVEN: digits would be lost there.
    """
    largest = _logits(A, form, points, points).max(axis=1)
    d = points.shape[1]
    if frame is None:
        products = np.einsum("na,nb->nab", points, points).reshape(-1, d * d)
        scale = np.linalg.lstsq(products, largest, rcond=None)[0].reshape(d, d)
    else:
        fitted = np.linalg.lstsq((points @ frame.T) ** 2, largest, rcond=None)[0]
        scale = (frame.T * fitted) @ frame
    above = quadratic(scale, points) - largest
    if np.ptp(above) > MOST_UNEVEN:
        return None
    return scale - above.min() * np.eye(d)


def _logits(A: np.ndarray, form: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """<A x, y> + <y, form y> of points (n, d) and (m, d)."""
    return x @ A.T @ y.T + quadratic(form, y)


def _diagonal(A: np.ndarray) -> bool:
    return bool((A == np.diag(np.diag(A))).all())


def _frames(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal R and S: A is diagonal from coordinates R x to S y."""
    if _diagonal(A):
        return np.eye(3), np.eye(3)
    U, _, Vt = np.linalg.svd(A)
    return Vt, U.T


@lru_cache(maxsize=4)
def _octant(degree: int) -> "_Octant":
    """The quadrature for a degree, kept: its harmonics take longer than a kernel."""
    return _Octant(degree)


class _Octant:
    """A quadrature of S^2 that is symmetric under changes of sign, by its points x, y, z > 0.

    The real harmonics up to a degree are in the order of the real and imaginary parts of
    coefficients c_lm, m >= 0: f = sum_lm part * harmonic.
    """

    def __init__(self, degree: int) -> None:
        from ..lowlevel.legendre import gauss

        self.degree = degree
        half = degree // 2 + 1  # latitudes in the north, and longitudes in a quarter of the circle
        z, weights = (nodes[:half] for nodes in gauss(2 * half, 3))  # the northern ones
        phi = (np.arange(half) + 0.5) * np.pi / (2 * half)
        radius = np.sqrt((1 - z) * (1 + z))
        self.points = np.stack(
            [
                np.outer(radius, np.cos(phi)).ravel(),
                np.outer(radius, np.sin(phi)).ravel(),
                np.repeat(z, half),
            ],
            axis=1,
        )
        self.weights = np.repeat(weights, half) / (4 * half)
        orders = sphere_points.orders_of(degree)
        l = sphere_points.degrees_of(degree)
        self.degrees, self._orders = np.repeat(l, 2), np.repeat(orders, 2)

    @cached_property
    def harmonics(self) -> np.ndarray:
        """conj(Y) as real and imaginary parts, (points, 2 modes): moments of a Dirac."""
        values = [sphere_points.harmonics_at(x, self.degree) for x in self.points]
        return np.conj(values).view(float)

    def characters(self, signs: np.ndarray) -> np.ndarray:
        """Changes of the sign of each harmonic with the signs of coordinates, (signs, 2 modes)."""
        l, m = self.degrees, self._orders
        sine = np.tile([0, 1], l.size // 2)
        odd = np.stack([(m + sine) % 2, sine, (l - m) % 2])  # in x, y, z
        return np.where((signs < 0) @ odd % 2, -1.0, 1.0)

    def symmetries(self, function: Callable[..., Any]) -> np.ndarray:
        """The COORDINATE_SIGNS that, applied to x and y, change no value of a function."""
        some = self.points[:: max(1, len(self.points) // 7)]
        every = np.concatenate([some * sign for sign in COORDINATE_SIGNS])
        values = [function(every * sign, every[::-1] * sign) for sign in COORDINATE_SIGNS]
        largest = np.abs(values[0]).max()
        same = [np.abs(value - values[0]).max() <= 1e-13 * largest for value in values]
        return COORDINATE_SIGNS[same]

    def blocks(self, function: Callable[..., Any]) -> list[Any] | None:
        """(indices, matrix): sums of parts at these indices times the matrix are those of h.

        One block for each way in which harmonics follow the symmetries of the function; None where
        these are too few for matrices of this degree.
        """
        group = self.symmetries(function)
        apart: list[np.ndarray] = []  # one of each class of signs that the group makes equal
        for sign in COORDINATE_SIGNS:
            if not any((sign == other * g).all() for other in apart for g in group):
                apart.append(sign)
        size = len(self.points) * len(apart)
        if len(group) * size**2 > MOST_KERNEL_VALUES:
            return None
        x = np.concatenate([self.points * sign for sign in apart])
        weighted = (
            np.concatenate([self.harmonics * row for row in self.characters(np.array(apart))])
            * np.tile(self.weights, len(apart))[:, None]
        )
        values = np.array([function(x, x * sign) for sign in group])
        # f = sum part harmonic, the harmonics being those of conj(Y), twice for orders > 0
        twice = np.where(self._orders > 0, 2.0, 1.0)
        live = (self._orders > 0) | (np.arange(twice.size) % 2 == 0)  # of order 0 the real parts
        ways = self.characters(group)
        matrices = []
        for way in np.unique(ways, axis=1).T:
            where = np.flatnonzero(live & (ways == way[:, None]).all(axis=0))
            if where.size:
                factors = weighted[:, where]
                matrix = len(group) * (factors.T @ np.tensordot(way, values, axes=1) @ factors)
                matrices.append((where, (matrix * twice[where]).T))
        return matrices


KERNELS_BY_SPACE: dict[type, type[Kernels]] = {Circle: CircleKernels, Sphere: SphereKernels}


def kernels_of(space: Any) -> Kernels:
    """The kernels of one head of attention on a space; MeanfieldError for other kinds of spaces."""
    kind = ancestor(type(space), KERNELS_BY_SPACE)
    if kind is None:
        names = " and ".join(each.__name__ for each in KERNELS_BY_SPACE)
        raise MeanfieldError(
            f"Attention moves densities on {names}; got {space!r}. Use one of these spaces, or "
            "solve for Tokens."
        )
    return KERNELS_BY_SPACE[kind](space)

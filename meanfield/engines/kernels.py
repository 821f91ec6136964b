"""Kernels k(x, y) that do not depend on <x, y> alone, applied to functions on the grid of a space.

A direct sum over N grid points costs O(N^2). The kernels of attention are smooth: few harmonics in
y, and on S^2 also in x, represent them, so that sums are taken by harmonics.
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
from ..lowlevel.legendre import gauss
from ..spaces import sphere_points
from ..spaces.circle import Circle
from ..spaces.contract import Space
from ..spaces.kernels import exponential_multipliers
from ..spaces.sphere import Sphere

NEGLIGIBLE_MODE = 1e-17  # coefficients below this share of the largest are left out
FFT_ROUNDING = 3e-16  # rounding error of coefficients by FFT, relative to the largest
RESOLVED_KERNEL = 1e-14  # bound of the last harmonics of a kernel, relative to the largest
RESOLVED_SLOPE = 10 * RESOLVED_KERNEL  # the same bound for derivatives of kernels by beta
LARGEST_TABLE = 1 << 23  # most entries of a table
FIRST_DEGREE = 4  # lowest degree that is tried for the expansion of a kernel on S^2
FINEST_DEGREE = 64  # highest degree that is tried for the expansion of a kernel on S^2
MOST_KERNEL_VALUES = 1 << 25  # most kernel values that an expansion may evaluate: 256 MiB
KEPT_KERNELS = 8  # kernels cached for each name; time-dependent matrices need one for each stage
FITTED_POINTS = 800  # about how many grid points a scale is fitted at
EQUAL_SINGULAR_VALUES = 1e-15  # relative difference up to which singular values count as equal
FORM_SHARES = 0.2, 0.4, 0.6, 0.8, 1.0  # shares of a quadratic form that are tried in the kernel
FEW_LOST_DIGITS = 3.0  # loss, as a logarithm, at which the search for a share of the form stops
MOST_UNEVEN = 8.0  # largest logarithm of (scale / largest k) over points x: digits are lost by it
COORDINATE_SIGNS = np.array([[1 - 2 * (s >> a & 1) for a in range(3)] for s in range(8)])


class Kernel(ABC):
    """Integral operator f -> e^-top(x) int k(x, y) f(y) dsigma(y) at the N points x of a grid.

    Attributes
    ----------
    top : ndarray, (N,) or ()
        Logarithm of the scale of k at each point, which is divided out so that sums do not
        overflow.
    """

    top: np.ndarray = np.zeros(())

    @abstractmethod
    def __call__(self, functions: np.ndarray) -> np.ndarray:
        """Integrals (r, N) of r functions, from their values (r, N)."""

    def parts(self, functions: np.ndarray) -> np.ndarray:
        """Input of `of_parts`, (r, ...), from the values (r, N) of functions.

        Here the values themselves; kernels by harmonics return coefficients.
        """
        return functions

    def of_parts(self, parts: np.ndarray) -> np.ndarray:
        """Integrals (r, N) of functions in the representation that `parts` returns."""
        return self(parts)

    def slope(self, A: np.ndarray, dA: np.ndarray) -> "Kernel | None":
        """Derivative <dA x, y> k(x, y) of k = e^<A x, y> along dA, with the `parts` and `top` of k.

        None where applying k to products of functions and coordinates of y is as fast.
        """
        return None

    @abstractmethod
    def transposed(self, functions: np.ndarray) -> np.ndarray:
        """Transposed operator: int k(x, y) f(x) e^-top(x) dsigma(x) at the grid points y, (r, N).

        The integral over x is the quadrature of the grid.
        """


class Expansion(ABC):
    """Expansion of k(x, y) e^-<x, scale x> in harmonics of x and of y.

    Attributes
    ----------
    degrees : (int, int)
        Highest degrees of the harmonics in x and in y.
    scale : ndarray, (d, d)
        Quadratic form that makes k e^-<x, scale x> at most about 1; or 0.
    rest : ndarray, (d, d), or None
        Quadratic form that the expansion leaves out: mu has to be multiplied by e^<y, rest y>,
        which is at most 1.
    largest : float
        About the maximum of |k| e^-<x, scale x>; rounding errors are relative to it.
    """

    degrees: tuple[int, int]
    scale: np.ndarray
    rest: np.ndarray | None = None
    largest: float = 1.0

    @abstractmethod
    def series(self, moments: np.ndarray) -> np.ndarray:
        """Coefficients (r, modes) of int k(x, y) e^-<x, scale x> dmu(y) for r measures mu.

        `moments` (r, modes) are the coefficients of the measures.
        """


class CircleKernel(Kernel):
    """Kernel on the circle; `coefficients` (N, modes) are conjugate Fourier modes of k(x_j, .)."""

    def __init__(self, coefficients: np.ndarray, top: np.ndarray | None = None) -> None:
        """Table of real and imaginary parts, with weights of a real series."""
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
        """The transpose of the kernel times functions (k, n) on the grid."""
        n = functions.shape[1]
        series = (functions @ self.table.T / n).view(complex)
        series[:, 1:] /= 2
        return np.fft.irfft(series, n=n, norm="forward")


class CircleExpansion(Expansion):
    """Expansion on the circle, from the values (n, n) of a kernel on a grid of the angles (x, y).

    `resolved` is True if the last harmonics are below RESOLVED_KERNEL of the largest.
    """

    def __init__(self, values: np.ndarray, scale: np.ndarray) -> None:
        """Fourier coefficients c_kl of `values` (n, n), up to the last degrees above rounding."""
        n = len(values)
        table = np.fft.fft2(values, norm="forward")
        sizes, half = np.abs(table), (n - 1) // 2
        self.scale, self.largest = scale, float(np.abs(values).max())
        significant = sizes > FFT_ROUNDING * sizes.max()
        degree = np.abs(np.fft.fftfreq(n, 1 / n))
        K, L = (int(degree[significant.any(axis=axis)].max(initial=0)) for axis in (1, 0))
        self.degrees = min(max(K, 1), half), min(max(L, 1), half)
        rows = table[: self.degrees[0] + 1]
        l = np.arange(self.degrees[1] + 1)
        self._tables = rows[:, l].T, np.where(l == 0, 0.0, rows[:, -l]).T  # times conj m, and m
        tails = [sizes[degree > half - n // 16].max(), sizes[:, degree > half - n // 16].max()]
        self.resolved = max(tails) <= RESOLVED_KERNEL * sizes.max()

    def series(self, moments: np.ndarray) -> np.ndarray:
        return moments.conj() @ self._tables[0] + moments @ self._tables[1]


class SphereKernel(Kernel, Expansion):
    """Kernel k(x, y) = h(R x, S y) e^<y, rest y> on S^2, by matrices of h between real harmonics.

    Parameters
    ----------
    space : Sphere
    frames : two ndarrays, (3, 3)
        R and S, orthogonal.
    degrees : (int, int)
        Highest degrees of the harmonics in x and in y.
    blocks : list of (rows, columns, matrix)
        Indices into the real and imaginary parts of the coefficients in y (rows) and in x
        (columns), and the matrix int int h Y Y between them.
    scale, rest, largest
        See `Expansion`.
    """

    def __init__(
        self, space: Sphere, frames: Any, degrees: Any, blocks: list[Any], scale: np.ndarray,
        largest: float, rest: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Keep kernel blocks by order in rotated frames, and tables of both rotations."""
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
        """Kernel of a function, and the size of its last harmonics relative to the largest.

        function(x, y) of points (n, 3) and (m, 3) has the values (n, m). The kernel is None where
        the last harmonics exceed `tolerance`, or where the expansion takes too much memory; the
        size is then infinite.
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
        for modes, matrix in blocks:
            for table in (matrix, matrix.T):
                np.maximum.at(sizes, grid.degrees[modes], np.abs(table).max(axis=0))
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
        """Real and imaginary parts (r, 2 modes) of the coefficients in the rotated frame of y."""
        return self._framed(self._rings.analysis(self._factor * functions, self.degrees[1]))

    def of_parts(self, parts: np.ndarray) -> np.ndarray:
        return self._rings.synthesis(self._series(parts), self.degrees[0])

    def slope(self, A: np.ndarray, dA: np.ndarray) -> "SphereKernel | None":
        """Derivative of the kernel e^<x, A y> along dA; None if unresolved."""
        if self.rest is not None:
            return None

        def weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return (x @ dA.T @ y.T) * exponential_weights(A, self.scale)(x, y)

        arguments = self._space, weights, self._frames, self.degrees, self.scale, None
        return self.resolved(*arguments, RESOLVED_SLOPE)[0]

    def series(self, moments: np.ndarray) -> np.ndarray:
        return self._series(self._framed(moments))

    def _framed(self, moments: np.ndarray) -> np.ndarray:
        return np.array([self._into(row) for row in moments]).view(float)

    def _series(self, parts: np.ndarray) -> np.ndarray:
        """Coefficients (k, modes) by blocks of the kernel, rotated back from its frame."""
        series = np.zeros((len(parts), self._size))
        for rows, columns, matrix in self._blocks:
            series[:, columns] = parts[:, rows] @ matrix
        return np.array([self._back(row) for row in series.view(complex)])

    def transposed(self, functions: np.ndarray) -> np.ndarray:
        """Sums over x of functions (members, N) times K(x, y), by transposed blocks."""
        K, L = self.degrees
        # weights of Parseval's sum: an order m > 0 stands for -m too
        of_parts, of_rows = (1.0 + np.repeat(sphere_points.orders_of(n) > 0, 2) for n in (K, L))
        turned = sphere_points.rotation(K, self._frames[0])
        sums = self._rings.analysis(functions, K)
        parts = np.array([turned(row) for row in sums]).view(float) * of_parts
        moments = np.zeros((len(parts), of_rows.size))
        for rows, columns, matrix in self._blocks:
            moments[:, rows] += parts[:, columns] @ matrix.T
        moments /= of_rows
        into = sphere_points.rotation(L, self._frames[1].T)
        series = np.array([into(row) for row in moments.view(complex)])
        return self._factor * self._rings.synthesis(series, L)


class TurnedKernel(Kernel, Expansion):
    """Kernel k(x, y) = e^(c <R x, y>) on S^2, R orthogonal: a convolution and a rotation."""

    def __init__(self, space: Sphere, c: float, R: np.ndarray, degree: int) -> None:
        """Kernel e^(c <x, R y>) of a rotation R, by multipliers and two rotations."""
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
        return np.array([self._back(row) for row in self._multipliers * moments])

    def transposed(self, functions: np.ndarray) -> np.ndarray:
        moments = self._rings.analysis(functions, self.degrees[0])
        series = self._multipliers * [self._forth(row) for row in moments]
        return self._rings.synthesis(series, self.degrees[1])


class LinearKernel(Kernel):
    """Kernel k(x, y) = <A x, y>, by the quadrature of the grid."""

    def __init__(self, space: Space, A: np.ndarray) -> None:
        self._points, self._weights, self._A = space.points, space.weights, A

    def __call__(self, functions: np.ndarray) -> np.ndarray:
        return self._applied(self._A, functions)

    def transposed(self, functions: np.ndarray) -> np.ndarray:
        return self._applied(self._A.T, functions)

    def _applied(self, A: np.ndarray, functions: np.ndarray) -> np.ndarray:
        first = (functions * self._weights).reshape(-1, self._weights.size) @ self._points
        return (first @ A @ self._points.T).reshape(functions.shape)


# Makers of kernels -------------------------------------------------------------------------------


class Kernels(ABC):
    """Maker of the kernels of one head of attention on one space, with a cache.

    Attributes
    ----------
    bounded : float
        The largest mass met at points where a lower bound replaces the denominator.
    """

    def __init__(self, space: Space) -> None:
        self.space, self.bounded = space, 0.0
        self._cache: dict[str, dict[tuple[bytes, ...], Any]] = {}

    def remembered(self, key: Any, build: Callable[..., Any], *arguments: Any) -> Any:
        """Result of build(*arguments), from a cache of the last KEPT_KERNELS used for each name.

        The key is the name, followed by numbers and arrays on which the result depends.
        """
        numbers = tuple(np.asarray(number).tobytes() for number in key[1:])
        of_name = self._cache.setdefault(key[0], {})
        kernel = of_name.pop(numbers) if numbers in of_name else build(*arguments)
        of_name[numbers] = kernel  # the last one used is the last one in the table
        if len(of_name) > KEPT_KERNELS:
            del of_name[next(iter(of_name))]
        return kernel

    @abstractmethod
    def exponential(self, A: np.ndarray) -> Kernel | None:
        """Kernel e^<A x, y>; None where nothing is faster and as accurate as sums over pairs."""

    def gaussian(self, A: np.ndarray, form: np.ndarray) -> Kernel | None:
        """Kernel e^(<A x, y> + <y, form y>), times a factor of x; None where none is fast.

        With the factor the values are at most about 1.
        """
        return None

    @abstractmethod
    def smooth(
        self, A: np.ndarray, function: Callable[..., Any], resolved: float = RESOLVED_KERNEL
    ) -> Kernel | None:
        """Kernel of a smooth function(x, y) of points (n, d) and (m, d), with values (n, m).

        None as for `exponential`. The symmetries of functions of <A x, y> are used. The last
        harmonics that are kept are below a share `resolved` of the largest.
        """

    def expanded(self, A: np.ndarray, form: np.ndarray | None = None) -> Any:
        """`Expansion` of e^(<A x, y> + <y, form y>); None where it has too many harmonics."""
        return self.exponential(A) if form is None else self.gaussian(A, form)

    def expanded_function(self, A: np.ndarray, function: Callable[..., Any]) -> Any:
        """`Expansion` of function(x, y); None where it has too many harmonics."""
        return self.smooth(A, function)


class CircleKernels(Kernels):
    """Kernels on the circle: e^<w, y> = sum_k I_k(|w|) e^(ik (theta - phi)), w = A x.

    theta is the angle of y, phi that of w.
    """

    space: Circle

    def exponential(self, A: np.ndarray) -> Kernel:
        """Fourier series exp(-r) I_k(r) e^(ik phi), with polar coordinates (r, phi) of A x."""
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
        """The highest degree of functions on the grid."""
        return (len(self.space.points) - 1) // 2

    def gaussian(self, A: np.ndarray, form: np.ndarray) -> Kernel | None:
        """Kernel e^(<x, A y> + <y, form y>), with the largest logit of each x as 0."""

        def weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            logits = _logits(A, form, x, y)
            return np.exp(logits - logits.max(axis=1, keepdims=True))

        return self.smooth(A, weights)

    def smooth(
        self, A: np.ndarray, function: Callable[..., Any], resolved: float = RESOLVED_KERNEL
    ) -> Kernel | None:
        """Fourier series of function(x, y) in y, on grids doubled until it is resolved."""
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
        significant = np.flatnonzero(sizes >= NEGLIGIBLE_MODE * sizes.max())
        count = min(int(significant[-1]) + 1 if significant.size else 1, self.most + 1)
        return CircleKernel(table[:, :count])

    def expanded(self, A: np.ndarray, form: np.ndarray | None = None) -> Expansion | None:
        """Expansion of e^<x, A y>, with a factor e^<y, form y>; None if it loses digits."""
        scale = fitted_scale(A, form, Circle(FITTED_POINTS).points)
        if scale is None:
            return None
        return self.expanded_function(A, exponential_weights(A, scale, form), scale)

    def expanded_function(
        self, A: np.ndarray, function: Callable[..., Any], scale: np.ndarray | None = None
    ) -> Expansion | None:
        """Fourier expansion of a function of two points, on grids twice as fine until resolved."""
        size, scale = 64, np.zeros((2, 2)) if scale is None else scale
        while size**2 <= LARGEST_TABLE:
            points = Circle.embed(2 * np.pi * np.arange(size) / size)
            expansion = CircleExpansion(function(points, points), scale)
            if expansion.resolved:
                return expansion
            size *= 2
        return None


class SphereKernels(Kernels):
    """Kernels on S^2, in the frames of x and y in which A is diagonal.

    In these frames functions of <A x, y> are invariant under a change of sign of the same
    coordinate of x and of y. Harmonics of different parities are not coupled: there are eight
    blocks.
    """

    space: Sphere

    def exponential(self, A: np.ndarray) -> SphereKernel | TurnedKernel | None:
        """Kernel e^<A x, y>, by the harmonics of e^(<A x, y> - <x, |A| x>), |A| = (A^T A)^(1/2).

        The second function varies less with x than the first, since |A x| - <x, |A| x> lies
        between 0 and a fourth of the largest singular value. If A is a multiple of an orthogonal
        matrix, the kernel is a convolution followed by a rotation.
        """
        U, singular, Vt = np.linalg.svd(A)
        largest, smallest = singular[[0, -1]]
        if largest - smallest <= EQUAL_SINGULAR_VALUES * largest:
            R = np.eye(3) if _diagonal(A) and (np.diag(A) > 0).all() else U @ Vt
            return TurnedKernel(self.space, largest, R, self.most)
        size = (Vt.T * singular) @ Vt
        uneven = (largest - smallest) ** 2 / (4 * (largest + smallest) or 1.0)
        if uneven > MOST_UNEVEN:
            return None
        sizes = exponential_multipliers(largest, FINEST_DEGREE + 1, 3)
        first = max(int(np.flatnonzero(sizes >= NEGLIGIBLE_MODE * sizes[0])[-1]), FIRST_DEGREE)
        scale = size + uneven * np.eye(3)

        weights = exponential_weights(A, scale)
        return self._first(A, weights, range(first, FINEST_DEGREE + 1, 8), scale)

    def gaussian(self, A: np.ndarray, form: np.ndarray) -> SphereKernel | None:
        """Kernel by harmonics of e^(<A x, y> + <y, part y> - <x, scale x>), form = part + rest.

        In the frames in which A is diagonal, `part` is a multiple of the diagonal of the form, and
        `scale` is diagonal, so that harmonics of different parities are not coupled. <x, scale x>
        is fitted to the largest logits of points x. A smaller multiple needs fewer harmonics, but
        the factor e^<y, rest y> then loses more digits: the first of FORM_SHARES that loses at most
        FEW_LOST_DIGITS is taken, else the best one if it loses at most MOST_UNEVEN, else the
        harmonics are those of the whole form.
        """
        singular = np.linalg.svd(A, compute_uv=False)
        orthogonal = np.ptp(singular) <= EQUAL_SINGULAR_VALUES * singular[0]
        if orthogonal and np.ptp(np.linalg.eigvalsh(form)) <= MOST_UNEVEN:
            return None  # a convolution is faster

        R, S = _frames(A)
        diagonal = (S.T * np.diag(S @ form @ S.T)) @ S
        sampled = self.space.points[:: 1 + len(self.space.points) // FITTED_POINTS]
        largest = _logits(A, form, sampled, sampled).max(axis=1)
        trials = []
        for share in FORM_SHARES:
            rest = form - share * diagonal
            rest -= np.linalg.eigvalsh(rest)[-1] * np.eye(3)
            scale = fitted_scale(A, form - rest, sampled, R)
            if scale is not None:
                lost = (quadratic(scale, sampled) - largest).max()
                if lost <= FEW_LOST_DIGITS:
                    return self._gaussian(A, form - rest, scale, rest)
                trials.append((lost, scale, rest))
        if trials:
            lost, scale, rest = min(trials, key=lambda trial: trial[0])
            if lost <= MOST_UNEVEN:
                return self._gaussian(A, form - rest, scale, rest)
        scale = fitted_scale(A, form, sampled)
        return None if scale is None else self._gaussian(A, form, scale, None)

    def _gaussian(
        self, A: np.ndarray, form: np.ndarray, scale: np.ndarray, rest: np.ndarray | None
    ) -> SphereKernel | None:
        """Kernel with a scale and a rest, in the first degree that resolves it."""
        weights = exponential_weights(A, scale, form)
        return self._first(A, weights, (32, 40, 44, 48, 54, 60), scale, rest=rest, analytic=True)

    def smooth(
        self, A: np.ndarray, function: Callable[..., Any], resolved: float = RESOLVED_KERNEL
    ) -> SphereKernel | None:
        """Kernel of a function of two points, in the first degree that resolves it."""
        degrees, scale = (16, 32, 48, 60, FINEST_DEGREE), np.zeros((3, 3))
        return self._first(A, function, degrees, scale, resolved=resolved)

    def _first(
        self, A: np.ndarray, function: Callable[..., Any], degrees: Iterable[int],
        scale: np.ndarray, *, rest: np.ndarray | None = None, analytic: bool = False,
        resolved: float = RESOLVED_KERNEL,
    ) -> SphereKernel | None:  # fmt: skip
        """Kernel up to the first of the `degrees` that resolves the function; None if none does.

        Unless `analytic`, the search ends early where the harmonics decay too slowly.
        """
        frames = _frames(A)
        for degree in degrees:
            pair = degree, min(degree, self.most)  # functions on the grid have no higher degrees
            arguments = self.space, function, frames, pair, scale, rest, resolved
            kernel, tail = SphereKernel.resolved(*arguments)
            if kernel is not None:
                return kernel
            if not (analytic or tail <= resolved ** (degree / FINEST_DEGREE)):
                break
        return None

    @property
    def most(self) -> int:
        """The highest degree of functions on the grid."""
        return (self.space.longitudes.size - 1) // 2


def of_points(
    kernel: Callable[..., Any], Q: np.ndarray, K: np.ndarray, beta: Any
) -> Callable[..., Any]:
    """Function (x, y) -> kernel(logits, (beta |Qx|^2, beta |Ky|^2)), logits = beta <Qx, Ky>.

    Points have shapes (n, d) and (m, d), values (n, m).
    """

    def weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        squares = [beta * ((p @ M.T) ** 2).sum(1) for p, M in ((x, Q), (y, K))]
        logits = (x @ (beta * K.T @ Q).T @ y.T)[None]
        return kernel(logits, (squares[0][None, :, None], squares[1][None, None]))[0]

    return weights


def potential_of_points(weights: Any, A: np.ndarray, beta: Any) -> Callable[..., Any]:
    """Function (x, y) -> potential of weights at <A x, y>, (n, m), of points (n, d) and (m, d)."""
    return lambda x, y: weights.potential(x @ A.T @ y.T, beta)


def exponential_weights(
    A: np.ndarray, scale: np.ndarray, form: np.ndarray | None = None
) -> Callable[..., Any]:
    """Function (x, y) -> e^(<A x, y> + <y, form y> - <x, scale x>) of points (n, d) and (m, d)."""
    return lambda x, y: np.exp(_logits(A, form, x, y) - quadratic(scale, x)[:, None])


def quadratic(form: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Values <x, form x> at points x (..., d)."""
    return np.einsum("...a,ab,...b->...", x, form, x)


def fitted_scale(
    A: np.ndarray, form: np.ndarray | None, points: np.ndarray, frame: np.ndarray | None = None
) -> np.ndarray | None:
    """Quadratic form (d, d) fitted to the largest logits over y of points x (N, d), from above.

    A least-squares fit, shifted by a multiple of |x|^2 = 1 so that it bounds them from above. With
    a `frame` it is diagonal in that frame. None if it exceeds some largest logit by more than
    MOST_UNEVEN: digits would be lost there.
    """
    largest = _logits(A, form, points, points).max(axis=1)
    d = points.shape[1]
    if frame is None:
        products = np.einsum("na,nb->nab", points, points).reshape(-1, d * d)
        scale = np.linalg.lstsq(products, largest, rcond=None)[0].reshape(d, d)
    else:
        squares = np.linalg.lstsq((points @ frame.T) ** 2, largest, rcond=None)[0]
        scale = (frame.T * squares) @ frame
    excess = quadratic(scale, points) - largest
    if np.ptp(excess) > MOST_UNEVEN:
        return None
    return scale - excess.min() * np.eye(d)


def _logits(A: np.ndarray, form: np.ndarray | None, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logits <A x, y> + <y, form y>, (n, m), of points (n, d) and (m, d)."""
    return x @ A.T @ y.T + (0.0 if form is None else quadratic(form, y))


def _diagonal(A: np.ndarray) -> bool:
    return bool((A == np.diag(np.diag(A))).all())


def _frames(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal R and S with S A R^T diagonal: A is diagonal from coordinates R x to S y."""
    if _diagonal(A):
        return np.eye(3), np.eye(3)
    U, _, Vt = np.linalg.svd(A)
    return Vt, U.T


class _Octant:
    """Quadrature of S^2 symmetric under changes of sign of coordinates; stores points x, y, z > 0.

    The real harmonics up to a degree are in the order of the real and imaginary parts of the
    coefficients c_lm, m >= 0: f is the sum of these parts times the harmonics.
    """

    def __init__(self, degree: int) -> None:
        """Gauss nodes in the height and equal longitudes, in the octant x, y, z > 0."""
        self.degree = degree
        half = degree // 2 + 1  # latitudes in the north, and longitudes in a quarter of the circle
        z, weights = (nodes[:half] for nodes in gauss(2 * half, 3))  # latitudes in the north
        phi = (np.arange(half) + 0.5) * np.pi / (2 * half)
        self.points = sphere_points.on_rings(z, phi)
        self.weights = np.repeat(weights, half) / (4 * half)
        orders = sphere_points.orders_of(degree)
        l = sphere_points.degrees_of(degree)
        self.degrees, self._orders = np.repeat(l, 2), np.repeat(orders, 2)

    @cached_property
    def harmonics(self) -> np.ndarray:
        """Real and imaginary parts of conj(Y), (points, 2 modes): moments of Dirac measures."""
        values = [sphere_points.harmonics_at(x, self.degree) for x in self.points]
        return np.conj(values).view(float)

    def characters(self, signs: np.ndarray) -> np.ndarray:
        """Factors +-1 of each harmonic under changes of sign of coordinates, (signs, 2 modes).

        `signs` (signs, 3) has rows of +-1, by which x, y and z are multiplied.
        """
        l, m = self.degrees, self._orders
        sine = np.tile([0, 1], l.size // 2)
        odd = np.stack([(m + sine) % 2, sine, (l - m) % 2])  # in x, y, z
        return np.where((signs < 0) @ odd % 2, -1.0, 1.0)

    def symmetries(self, function: Callable[..., Any]) -> np.ndarray:
        """Rows of COORDINATE_SIGNS under which function(x, y) is invariant, applied to x and to y.

        Tested at about seven points and their images.
        """
        sampled = self.points[:: max(1, len(self.points) // 7)]
        reflected = np.concatenate([sampled * sign for sign in COORDINATE_SIGNS])
        values = [function(reflected * sign, reflected[::-1] * sign) for sign in COORDINATE_SIGNS]
        largest = np.abs(values[0]).max()
        is_symmetric = [np.abs(value - values[0]).max() <= 1e-13 * largest for value in values]
        return COORDINATE_SIGNS[is_symmetric]

    def blocks(self, function: Callable[..., Any]) -> list[Any] | None:
        """Blocks (indices, matrix) of the integral operator with kernel h between real harmonics.

        The parts of f at these indices, times the matrix, are the parts of int h f. There is one
        block for each character of the symmetry group of the function; None where the group is too
        small for matrices of this degree to fit into MOST_KERNEL_VALUES.
        """
        group = self.symmetries(function)
        cosets: list[np.ndarray] = []  # one representative of each coset of the group
        for sign in COORDINATE_SIGNS:
            if not any((sign == other * g).all() for other in cosets for g in group):
                cosets.append(sign)
        size = len(self.points) * len(cosets)
        if len(group) * size**2 > MOST_KERNEL_VALUES:
            return None
        x = np.concatenate([self.points * sign for sign in cosets])
        weighted = (
            np.concatenate([self.harmonics * row for row in self.characters(np.array(cosets))])
            * np.tile(self.weights, len(cosets))[:, None]
        )
        values = np.array([function(x, x * sign) for sign in group])
        # f = sum part harmonic, with the parts of conj(Y) as harmonics, doubled for orders > 0
        weights = np.where(self._orders > 0, 2.0, 1.0)
        is_part = (self._orders > 0) | (
            np.arange(weights.size) % 2 == 0
        )  # order 0: real parts only
        characters = self.characters(group)
        matrices = []
        for character in np.unique(characters, axis=1).T:
            nodes = np.flatnonzero(is_part & (characters == character[:, None]).all(axis=0))
            if nodes.size:
                factors = weighted[:, nodes]
                matrix = len(group) * (
                    factors.T @ np.tensordot(character, values, axes=1) @ factors
                )
                matrices.append((nodes, (matrix * weights[nodes]).T))
        return matrices


_octant = lru_cache(maxsize=4)(_Octant)  # a table of harmonics takes longer than a kernel

KERNELS_BY_SPACE: dict[type, type[Kernels]] = {Circle: CircleKernels, Sphere: SphereKernels}


def kernels_of(space: Space) -> Kernels:
    """Maker of the kernels of one head of attention on a space.

    Raises
    ------
    MeanfieldError
        For spaces other than the circle and S^2.
    """
    kind = ancestor(type(space), KERNELS_BY_SPACE)
    if kind is None:
        names = " and ".join(kernel_class.__name__ for kernel_class in KERNELS_BY_SPACE)
        raise MeanfieldError(
            f"Attention moves densities on {names}; got {space!r}. Use one of these spaces, or "
            "solve for Tokens."
        )
    return KERNELS_BY_SPACE[kind](space)

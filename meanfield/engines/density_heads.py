"""One head of attention for a density on a grid: its output, or its numerator and denominator."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.cached import cached_property
from ..core.dual import Dual
from ..core.errors import MeanfieldError
from ..spaces.contract import Space
from ..spaces.transport import NO_MASS
from ..spaces.validity import NEGATIVE_SHARE
from .attention import not_balanced, weights_along
from .kernels import Kernel, Kernels, LinearKernel, of_points, quadratic

LARGEST_LOGIT = 700.0  # largest logit whose exponential, times values, does not overflow
LARGEST_BIAS_RANGE = 14.0  # range of a bias beyond which sums would lose more than six digits
ANDERSON_MEMORY = 8  # previous iterates that Anderson's acceleration uses
RESOLVED_DIFFERENCE = 1e-12  # resolution of derivatives of weights: differences have rounding


@dataclass(frozen=True)
class GridDensity:
    """One density on the grid of its space, or many functions at once.

    Attributes
    ----------
    space : Space
    coefficients : ndarray, (modes,) or (r, modes)
    values : ndarray, (N,) or (r, N)
        Values at the points of the grid.
    is_kept : bool
        Whether it is a state of the run, unlike a stage of a step that may be rejected.
    """

    space: Space
    coefficients: np.ndarray
    values: np.ndarray
    is_kept: bool = False

    @cached_property
    def moments(self) -> np.ndarray:
        """Values of y mu(y), d components, and of mu(y) at the points y, (d + 1, ..., N)."""
        ones = np.ones((1, len(self.space.points)))
        lifted = np.concatenate([self.space.points.T, ones])
        return (lifted if self.values.ndim == 1 else lifted[:, None]) * self.values

    @property
    def masses(self) -> np.ndarray:
        """Masses of the points, (N,): quadrature weights times density."""
        return self.space.weights * self.values

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Integrals int f dmu, (...), of functions with values (..., N)."""
        return values @ self.masses

    def mass_below(self, denominator: np.ndarray, threshold: Any) -> float:
        """The mass at the points where the denominator (N,) is below `threshold`.

        0 for a density that is clearly negative, unless `is_kept`: a stage of a step that is too
        long, and that will be rejected.
        """
        is_below, lowest = denominator < threshold, -NEGATIVE_SHARE * self.values.max()
        if not is_below.any() or not (self.is_kept or self.values.min() >= lowest):
            return 0.0
        return float(np.abs(self.masses[is_below]).sum())


class NotSmooth(Exception):
    """Raised where a kernel needs sums over all pairs of points."""


@dataclass(frozen=True)
class DensityHead:
    """One head of attention for a density; `engines.attention.Head` is the same for tokens.

    At the N points x of the grid the output, (N, d), is

        int k(x, y) V y dmu(y),    divided by int k(x, y) dmu(y) where `normalised`

    The logits are <A x, y> + bias(y), A = beta K^T Q, or <A x, y> + <y, form y>.

    Attributes
    ----------
    density : GridDensity
    V, Q, K : ndarray
    beta : ndarray, ()
    kernels : Kernels
        Maker of the kernels of this head, with a cache.
    bias : ndarray, (N,), or None
    form : ndarray, (d, d), or None
    """

    density: GridDensity
    V: np.ndarray
    Q: np.ndarray
    K: np.ndarray
    beta: np.ndarray
    kernels: Kernels
    bias: np.ndarray | None = None
    form: np.ndarray | None = None

    @property
    def A(self) -> np.ndarray:
        return self.beta * self.K.T @ self.Q

    @property
    def _factor(self) -> np.ndarray | float:
        """Factor exp(bias - max bias), (N,), or 1; raises NotSmooth where digits would be lost."""
        bias = self.bias
        if self.form is not None:
            bias = quadratic(self.form, self.density.space.points)
        if bias is None:
            return 1.0
        if np.ptp(bias) > LARGEST_BIAS_RANGE:
            raise NotSmooth
        return np.exp(bias - bias.max())

    def _exponential(self, A: np.ndarray, name: str) -> Kernel:
        return _smooth(self.kernels.remembered((name, A), self.kernels.exponential, A))

    def exponential(self, *, normalised: bool) -> Any:
        """Output with k = e^logits; a head with a bias has to be normalised."""
        if self.form is not None and normalised:
            key = "gaussian", self.A, self.form
            gaussian = self.kernels.remembered(key, self.kernels.gaussian, *key[1:])
            if gaussian is not None:
                return self.summed(gaussian, normalised=True, floor=NO_MASS)
        kernel, factor = self._exponential(self.A, "exponential"), self._factor
        if normalised:
            x = self.density.space.points
            largest = np.linalg.norm(x @ self.A.T, axis=1) - kernel.top
            floor = NO_MASS * np.exp(largest)
            return self.summed(kernel, normalised=True, factor=factor, floor=floor)
        if kernel.top.max() > LARGEST_LOGIT:
            raise MeanfieldError(
                f"exp(beta <Qx, Ky>) has to stay below 1.8e308, beta <Qx, Ky> below "
                f"{LARGEST_LOGIT:g}; got logits up to about {kernel.top.max():.4g}. Use a smaller "
                "beta or smaller matrices, or weights that are normalised, as Softmax()."
            )
        return self.summed(kernel, normalised=False, factor=factor, scale=np.exp(kernel.top))

    def summed(
        self, kernel: Kernel, *, normalised: bool, factor: Any = 1.0, scale: Any = None,
        floor: Any = None,
    ) -> Any:  # fmt: skip
        """Output from the integrals int k (y, 1) factor mu dsigma of a kernel, see `_answered`."""
        sums = self._sums(kernel, factor * self.density.moments)
        return self._answered(sums, normalised, scale, floor)

    def _answered(self, sums: np.ndarray, normalised: bool, scale: Any, floor: Any) -> Any:
        """Output from integrals (d + 1, ..., N), the last of which is the denominator.

        Integrals that are not divided are multiplied by `scale`; `floor` is a lower bound of the
        denominator.
        """
        pulls = sums[:-1] if scale is None else scale * sums[:-1]
        return self.answer(pulls, sums[-1], floor) if normalised else self.answer(pulls)

    @staticmethod
    def _sums(kernel: Kernel, functions: np.ndarray) -> np.ndarray:
        return kernel(functions.reshape(-1, functions.shape[-1])).reshape(functions.shape)

    def answer(
        self, pulls: np.ndarray, denominator: np.ndarray | None = None, floor: Any = None,
    ) -> Any:  # fmt: skip
        """Output V pulls / max(denominator, floor), (N, d), of pulls (d, N) and denominators (N,).

        The mass of the points with a denominator below `floor` is recorded in `kernels.bounded`.
        """
        pulled = (self.V @ pulls).T
        if denominator is None:
            return pulled
        if floor is not None:
            mass = self.density.mass_below(denominator, floor)
            self.kernels.bounded = max(self.kernels.bounded, mass)
            denominator = np.maximum(denominator, floor)
        return pulled / denominator[:, None]

    def by_distance(self) -> "DensityHead":
        """The head with logits -beta |Qx - Ky|^2, up to a constant of each x."""
        return replace(self, beta=2 * self.beta, form=-self.beta * self.K.T @ self.K)

    def weighted(self, kernel: Callable[..., Any], *, normalised: bool) -> np.ndarray:
        """Output with k = kernel(logits, (beta |Qx|^2, beta |Ky|^2))."""
        weights = of_points(kernel, self.Q, self.K, self.beta)
        key = "weights", self.Q, self.K, self.beta
        smooth = self.kernels.remembered(key, self.kernels.smooth, self.A, weights)
        return self.summed(_smooth(smooth), normalised=normalised)

    def doubly_stochastic(self, tolerance: float, most_iterations: int) -> "DensityHead":
        """The head with the bias for which normalised weights have columns of sum one too.

        Parameters
        ----------
        tolerance : float
            Largest error of a marginal.
        most_iterations : int

        Raises
        ------
        MeanfieldError
            If the iteration does not converge, or the kernel has sums <= 0.
        """
        symmetric = np.array_equal(self.A, self.A.T)  # both factors of the scaling are then equal
        rows = self._exponential(self.A, "rows")
        columns = rows if symmetric else self._exponential(self.A.T, "columns")
        values = self.density.values

        def balancing(kernel: Kernel, potential: np.ndarray) -> np.ndarray:
            """Potential -log int k e^potential dmu of the other marginal, (N,)."""
            largest = potential.max()
            sums = kernel((np.exp(potential - largest) * values)[None])[0]
            if not (sums > 0).all():
                raise MeanfieldError(
                    "Sinkhorn weights of a density need a kernel with positive sums at all points; "
                    f"got {sums.min():.2g}, the largest being {sums.max():.2g}: rounding, or a "
                    "density that is not positive. Lower beta, or solve for Tokens."
                )
            return -(kernel.top + np.log(sums) + largest)

        def balanced(potential: np.ndarray) -> np.ndarray:
            other = balancing(rows, potential)
            return (potential + other) / 2 if symmetric else balancing(columns, other)

        amount = 4 if symmetric else 1  # error of a marginal, in units of the change per iteration
        start = np.zeros(values.size)
        bias = _fixed_point(balanced, start, tolerance, most_iterations, amount)
        return replace(self, bias=bias)

    def linear(self) -> Any:
        """Output with k = logits, not normalised."""
        space = self.density.space
        weighted = space.weights[:, None] * space.points
        second = np.tensordot(self.density.moments[:-1], weighted, axes=1)
        return self.answer(second @ (space.points @ self.A.T).T)


# Quotients -------------------------------------------------------------------------------------


class Slope(NamedTuple):
    """Derivatives by a parameter of numerators, (d - 1, n, N), and denominators, (n, N) or None."""

    numerator: np.ndarray
    denominator: np.ndarray | None


@dataclass(frozen=True)
class Quotient:
    """Velocities at the N grid points for r functions, as numerators and denominators.

    The first function is the density, the others are changes of it.

    Attributes
    ----------
    numerators : ndarray, (d - 1, r, N)
        Numerators.
    denominators : ndarray, (r, N), or None
        Denominators; None for 1.
    least : ndarray or float
        Lower bound that replaces smaller denominators; the derivative of the bound is 0.
    by : dict of str to Slope
        Derivatives by parameters, for the first functions.
    transposed : callable
        transposed(F, s), of F (d - 1, N) and s (N,) or None for 0, returns the coefficients
        (modes,) in L^2 of the linear form f -> sum_x w (<F, numerator> + s denominator), in which
        numerator and denominator are those of f.
    """

    numerators: np.ndarray
    denominators: np.ndarray | None = None
    least: Any = -np.inf
    by: dict[str, Slope] = field(default_factory=dict)
    transposed: Callable[[np.ndarray, np.ndarray | None], Any] = lambda F, s: 0.0

    @cached_property
    def denominator(self) -> np.ndarray | float:
        """The denominator of the first function, bounded from below, (N,); 1.0 if there is none."""
        return 1.0 if self.denominators is None else np.maximum(self.denominators[0], self.least)

    @cached_property
    def velocity(self) -> np.ndarray:
        """The velocity of the first function, (d - 1, N)."""
        return self.numerators[:, 0] / self.denominator

    @cached_property
    def moving(self) -> np.ndarray | None:
        """A mask of the points whose denominator is above its bound; None where it is 1."""
        return None if self.denominators is None else self.denominators[0] > self.least

    @property
    def changes(self) -> np.ndarray:
        """Changes of the velocity of the first function along the others, (d - 1, r - 1, N)."""
        return self._change(
            self.numerators[:, 1:], None if self.denominators is None else self.denominators[1:]
        )

    def change_by(self, name: str) -> np.ndarray:
        """The derivative of the velocity of the first function by a parameter, (d - 1, N)."""
        pulls, denominator = self.by[name]
        return self._change(pulls[:, :1], None if denominator is None else denominator[:1])[:, 0]

    def _change(self, pulls: np.ndarray, denominator: np.ndarray | None) -> np.ndarray:
        """Change of the quotient N/D by those of N and D: (dN - v dD)/D, (d - 1, N)."""
        if self.moving is None or denominator is None:
            return pulls / self.denominator
        moves = np.where(self.moving, denominator, 0.0)
        return (pulls - self.velocity[:, None] * moves) / self.denominator

    def pulled_back(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Pull a linear form on changes of the velocity back to numerator and denominator.

        F (d - 1, N) has the coefficients of the form. Returns those on changes of the numerator,
        (d - 1, N), and of the denominator, (N,) or None where it is 1.
        """
        F = F / self.denominator
        if self.moving is None:
            return F, None
        return F, -np.where(self.moving, (F * self.velocity).sum(axis=0), 0.0)


@dataclass(frozen=True)
class QuotientHead(DensityHead):
    """A head for many functions at once, whose output is a `Quotient`.

    Attributes
    ----------
    rows : int
        The derivative by the beta of the drift is computed for the first `rows` functions.
    dA, dform : ndarray, (d, d), or None
        Derivatives of A and of the form by beta; by default K^T Q and none.
    """

    rows: int = 0
    dA: np.ndarray | None = None
    dform: np.ndarray | None = None

    def answer(self, pulls: np.ndarray, denominator: Any = None, floor: Any = None) -> Quotient:
        return Quotient(self._along(pulls), denominator, -np.inf if floor is None else floor)

    def _along(self, pulls: np.ndarray) -> np.ndarray:
        """Tangential components (d - 1, r, N) of V pulls, for pulls (d, r, N)."""
        frame = self.density.space.frame
        return np.stack([np.einsum("na,arn->rn", e @ self.V, pulls) for e in frame])

    def by_distance(self) -> "QuotientHead":
        head: Any = super().by_distance()
        return replace(head, dA=2 * self.K.T @ self.Q, dform=-self.K.T @ self.K)

    def summed(
        self, kernel: Kernel, *, normalised: bool, factor: Any = 1.0, scale: Any = None,
        floor: Any = None,
    ) -> Any:  # fmt: skip
        """`Quotient` by an expanded kernel, and changes by beta of the first `rows`."""
        moments = factor * self.density.moments
        parts = kernel.parts(moments.reshape(-1, moments.shape[-1]))
        sums = kernel.of_parts(parts).reshape(moments.shape)
        quotient = self._answered(sums, normalised, scale, floor)
        changes = None
        if self.rows:
            parts = parts.reshape(*moments.shape[:2], -1)
            first = (array[:, : self.rows] for array in (moments, parts, sums))
            changes = self._by_beta(kernel, *first)
        return self._complete(quotient, kernel, changes, normalised, factor, scale)

    def weighted(self, kernel: Callable[..., Any], *, normalised: bool) -> Any:
        """`Quotient` with weights `kernel`, and changes by beta of the first `rows`."""
        without_rows = replace(self, rows=0)
        quotient: Any = DensityHead.weighted(without_rows, kernel, normalised=normalised)
        if not self.rows:
            return quotient
        key = "weights by beta", self.Q, self.K, self.beta
        arguments = self.A, self._by_beta_of(kernel), RESOLVED_DIFFERENCE
        change = self.kernels.remembered(key, self.kernels.smooth, *arguments)
        changes = self._sums(_smooth(change), self.density.moments[:, : self.rows])
        return replace(quotient, by={"beta": self._slope(changes, normalised)})

    def _by_beta_of(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Function dk/dbeta of points (n, d) and (m, d), by `weights_along`."""

        def change(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            """Derivative of the kernel by beta at points x (p, d) and y (q, d), (p, q)."""
            queries, keys = (((p @ M.T) ** 2).sum(axis=1) for p, M in ((x, self.Q), (y, self.K)))
            parts = (x @ self._slope_of_A.T @ y.T)[None], queries[None, :, None], keys[None, None]
            logits, *squares = (Dual(self.beta * component, component[None]) for component in parts)
            return weights_along(kernel, logits, tuple(squares)).changes[0, 0]

        return change

    def linear(self) -> Any:
        """Output of weights that are the logits, <x, A y>, as a quotient."""
        space = self.density.space
        quotient, changes = super().linear(), None
        if self.rows:
            first = self.density.moments[:-1, : self.rows]
            changes = self._sums(LinearKernel(space, self._slope_of_A), first)
            changes = np.concatenate([changes, changes[:1]])  # a denominator that is not used
        kernel = LinearKernel(space, self.A)
        return self._complete(quotient, kernel, changes, normalised=False)

    def doubly_stochastic(self, tolerance: float, most_iterations: int) -> DensityHead:
        raise NotSmooth  # u and w depend on the density

    @property
    def _slope_of_A(self) -> np.ndarray:
        return self.K.T @ self.Q if self.dA is None else self.dA

    def _by_beta(
        self, kernel: Kernel, moments: np.ndarray, parts: np.ndarray, sums: np.ndarray
    ) -> np.ndarray:
        """Derivatives by beta of the integrals `sums` (d + 1, rows, N), of the same shape.

        The kernel changes by k' = (<dA x, y> + <y, dform y>) k. `moments` are the functions,
        `parts` the input of `kernel.of_parts` for them. sum_a y_a^2 = 1 saves one product.
        """
        x, d = self.density.space.points, len(moments) - 1
        change, dA = None, self._slope_of_A
        slopes = (x @ dA.T).T
        if self.dform is None:
            key = "slope", self.A, dA
            change = self.kernels.remembered(key, kernel.slope, self.A, dA)
        if change is not None:
            pulls = change.of_parts(parts[:-1].reshape(-1, parts.shape[-1]))
            denominator = (slopes[:, None] * sums[:-1]).sum(axis=0)
            return np.concatenate([pulls.reshape(sums[:-1].shape), denominator[None]])
        pairs = [(a, b) for a in range(d) for b in range(a, d)][:-1]
        products = self._sums(kernel, np.stack([x[:, a] * moments[b] for a, b in pairs]))
        second = np.empty((d, *sums[:-1].shape))
        second[-1, -1] = sums[-1]
        for (a, b), changes in zip(pairs, products, strict=True):
            second[a, b] = second[b, a] = changes
            if a == b:
                second[-1, -1] -= changes
        changes = np.empty_like(sums)
        changes[:-1] = np.einsum("an,abrn->brn", slopes, second)
        changes[-1] = np.einsum("an,arn->rn", slopes, sums[:-1])
        if self.dform is not None:
            mean_part = np.trace(self.dform) / d  # <y, y> = 1
            traceless = self.dform - mean_part * np.eye(d)
            changes += mean_part * sums
            if traceless.any():
                changes[:-1] += self._sums(kernel, quadratic(traceless, x) * moments[:-1])
                changes[-1] += np.einsum("ab,abrn->rn", traceless, second)
        return changes

    def _slope(self, changes: np.ndarray, normalised: bool, scale: Any = None) -> Slope:
        pulls = changes[:-1] if scale is None else scale * changes[:-1]
        return Slope(self._along(pulls), changes[-1] if normalised else None)

    def _complete(
        self, quotient: Quotient, kernel: Kernel, changes: Any, normalised: bool,
        factor: Any = 1.0, scale: Any = None,
    ) -> Quotient:  # fmt: skip
        """The quotient with its transpose, and derivatives by beta if `changes` is not None."""
        transposed = partial(self._transposed, kernel, factor, 1.0 if scale is None else scale)
        by = {} if changes is None else {"beta": self._slope(changes, normalised, scale)}
        return replace(quotient, by=by, transposed=transposed)

    def _transposed(self, kernel: Kernel, factor: Any, scale: Any, F: np.ndarray, s: Any) -> Any:
        """Gradient (modes,) of <F, numerator> + <s, denominator> by the density."""
        space = self.density.space
        pulled = np.einsum("fn,fna->an", F, space.frame @ self.V) * scale
        values = (space.points.T * kernel.transposed(pulled)).sum(axis=0)
        if s is not None:
            values = values + kernel.transposed(s[None])[0]
        return space.to_coefficients(factor * values)


def _fixed_point(
    f: Callable[..., Any], x: np.ndarray, tolerance: float, iterations: int, amount: float = 1
) -> np.ndarray:
    """Solution of x = f(x) by Anderson's acceleration, in at most so many `iterations`.

    The error is the largest |expm1(amount (f(x) - x))|, at most `tolerance`.

    Raises
    ------
    MeanfieldError
        If it does not converge.
    """
    changes: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for _ in range(iterations):
        value = f(x)
        change = value - x
        error = np.abs(np.expm1(amount * change)).max()
        if error <= tolerance:
            return x
        changes, values = [*changes[-ANDERSON_MEMORY:], change], [*values[-ANDERSON_MEMORY:], value]
        x = value
        if len(changes) > 1 and error < 1:
            steps = np.diff(changes, axis=0).T
            parts = np.linalg.lstsq(steps, change, rcond=1e-10)[0]
            x = value - np.diff(values, axis=0).T @ parts
    raise not_balanced(iterations, error, tolerance, "the kernel")


def _smooth(kernel: Kernel | None) -> Kernel:
    if kernel is None:
        raise NotSmooth
    return kernel

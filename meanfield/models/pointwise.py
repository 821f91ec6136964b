"""Drifts that are functions of points: v(x) = P_x f(x) on the sphere, f(x) in R^d."""

from abc import abstractmethod
from copy import copy
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from ..core.annotations import Function, Parameters, UserValue, Values
from ..core.cached import cached_property
from ..core.checks import (
    answer,
    first_not_finite,
    plain_array,
    real_array,
    require,
    returned,
    takes,
)
from ..core.descriptions import KindOf
from ..core.differences import derivative_at_zero
from ..core.dual import Dual, applied, changes_of
from ..core.errors import MeanfieldError
from ..core.forms import ARRAY, Either, Leaf
from ..spaces.validity import HarmonicSizes, SampledHarmonics
from .activations import ACTIVATIONS, relu
from .drift import Drift
from .parameters import MatrixInTime, at, changing, sizes_of

if TYPE_CHECKING:
    from ..spaces import Space

PROBED_POINTS = 4  # points y at which harmonics of k(., y) are looked for
NORMAL = 1e-14  # tangential parts below this, relative to the largest vector, are rounding errors
NOT_SMOOTH = 1e-7  # error of the series of a V that is not smooth, relative to its largest harmonic
POTENTIAL_LEVEL_ROUNDING = 1e-14  # rounding errors of V, relative to 1 and to its mean
FEEDFORWARD_MATRICES = {"inner": "kd", "outer": "dk", "gate": "kd"}  # with their axes
FEEDFORWARD_AXES = FEEDFORWARD_MATRICES | {"bias": "k", "outer_bias": "d", "gate_bias": "k"}
ACTIVATION_NAMES = ", ".join(f'"{name}"' for name in ACTIVATIONS) + ", or in Python a function"
ON_THE_CIRCLE = (
    "x is no angle. On the circle theta = np.arctan2(x[..., 1], x[..., 0]), and the vector of a "
    "speed s along it is s[..., None] * np.stack([-x[..., 1], x[..., 0]], axis=-1)."
)
ACTIVATION_PROBE = np.array([-1.0, 0.5])  # numbers on which an activation is tried


def _activation(name: str, f: UserValue) -> UserValue:
    """The function f, if it returns as many real numbers as it gets; else TypeError, ValueError."""
    require(name, f, ACTIVATION_NAMES, callable(f), TypeError)
    try:
        values = f(ACTIVATION_PROBE.copy())
    except MeanfieldError:  # the placeholder of a function that a file does not store
        return f
    except (TypeError, AttributeError) as error:
        expected = "a function of arrays of numpy"
        require(name, f, expected, False, TypeError, f"It raised {type(error).__name__}: {error}")
    returned(name, values, ACTIVATION_PROBE.shape)
    return f


ACTIVATION_FORM = Leaf(ACTIVATION_NAMES, _activation, {}, ACTIVATIONS)
Weight = Annotated[UserValue, Either((ARRAY, KindOf(MatrixInTime)))]


def vectors_at(name: str, function: Function, x: np.ndarray) -> np.ndarray:
    """Values of a function of points (..., d) at x, a new array of as many vectors.

    Parameters
    ----------
    name : str
        Of the function, for messages.
    function : callable
        It gets x as an array that it cannot write into.
    x : ndarray, shape (..., d)

    Raises
    ------
    TypeError, ValueError
        Unless it returns real numbers, of the shape of x.
    """

    def checked(x: Values) -> Values:
        wanted = f"return vectors of shape {x.shape}"
        values = real_array(f"What {name} returns", answer(name, function, wanted, read_only(x)))
        if values.shape != x.shape:
            advice = f" {ON_THE_CIRCLE}" if x.shape[-1] == 2 else ""
            raise ValueError(
                f"{name} takes points x (..., d) and returns as many vectors; got shape "
                f"{values.shape} for {x.shape}.{advice}"
            )
        return values

    return applied(checked, x, name)


def read_only(x: Values) -> Values:
    """A view of points, which may be the state itself, that cannot be written into."""
    if isinstance(x, Dual):
        return Dual(read_only(x.value), read_only(x.changes))
    view = x.view()
    view.setflags(write=False)
    return view


def tangential(space: "Space", vectors: np.ndarray) -> np.ndarray:
    """Components (d, N) of the tangential part of vectors (N, d) on the grid of a space.

    Rounding errors, where vectors are normal to the space, are replaced by 0.
    """
    along = np.einsum("fnd,nd->fn", space.frame, vectors)
    parts = np.einsum("fnd,fn->dn", space.frame, along)
    return np.where(np.abs(parts) > NORMAL * np.abs(vectors).max(), parts, 0.0)


class Pointwise(Drift):
    """A drift that does not depend on the measure: v(x) = P_x f(x) on the sphere, f(x) in R^d.

    A class of one's own needs `__call__`, which is f.
    """

    _internal: ClassVar[str] = "function_name harmonics on_grid where_lost"

    function_name: ClassVar[str] = ""  # of f in messages; by default that of the class
    normalised, interacts = True, False

    @abstractmethod
    def __call__(self, x: np.ndarray) -> np.ndarray:
        """f at points x (..., d), of the same shape."""

    def at(self, t: float) -> "Pointwise":
        """f at the time t: itself, unless its parameters change with time."""
        return self

    def values(self, x: np.ndarray) -> np.ndarray:
        """The checked values f(x), (..., d); TypeError or ValueError if they are not valid."""
        return vectors_at(self.function_name or type(self).__name__, self, x)

    def on_grid(self, space: "Space") -> np.ndarray:
        """Functions on the grid of a space, (..., N), whose harmonics are those of the drift.

        Here the components of P_x f. MeanfieldError if a value is not finite.
        """
        values = self.values(space.points)
        if not np.isfinite(values).all():
            raise MeanfieldError(self.why_not_finite(space.points))
        return tangential(space, values)

    @cached_property
    def harmonics(self) -> SampledHarmonics:
        """Harmonics of the drift, whatever the degree of a density is."""
        return SampledHarmonics(self.on_grid)

    def rate(self, t: float = 0.0) -> np.ndarray:
        """0: the drift does not attract tokens to each other."""
        return np.zeros(())

    def known_rate(self, on_sphere: bool) -> bool:
        return False

    def where_lost(self, x: np.ndarray) -> str:
        """The first of the points (..., d) at which f is not finite, in words; "" if none."""
        return first_not_finite(self.values(x), x=x)

    def why_not_finite(self, x: np.ndarray) -> str:
        if where := self.where_lost(x):
            return f"{self!r} returned vectors that are not finite: {where}."
        return f"the vectors of {self!r} are so large that sums of them are not finite."


class Field(Pointwise):
    """A vector field that is a function of points: v(x) = P_x f(x) on the sphere, f(x) in R^d.

    Parameters
    ----------
    function : callable
        f of points (..., d), any number of them at once; it returns an array of the same shape. On
        the circle these are (cos theta, sin theta), not angles: see the second example.

    Raises
    ------
    TypeError, ValueError
        If it is not a function; where it is evaluated, if it returns no real numbers, or another
        shape.

    Examples
    --------
    Attraction to the first axis: ``Field(lambda x: x * np.array([1.0, 0.0, 0.0]))``.

    A speed s(theta) along the circle, here d theta/dt = sin 2 theta. The argument is not theta:
    ``Field(lambda x: np.sin(2 * x))`` would act on each coordinate of x.

    >>> def along(x):
    ...     theta = np.arctan2(x[..., 1], x[..., 0])
    ...     s = np.sin(2 * theta)
    ...     return s[..., None] * np.stack([-x[..., 1], x[..., 0]], axis=-1)
    >>> drift = Field(along)
    """

    function_name = "Field.function"

    function: Function

    def validate(self) -> None:
        super().validate()
        fits = takes(self.function, 1) and not hasattr(self.function, "state_dict")
        require("function", self.function, "a function of points (..., d)", fits, TypeError)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.function(x)


class Potential(Field):
    """The gradient of a function of points: v(x) = P_x grad V(x) on the sphere, grad V in R^d.

    Tokens move uphill: V is added to W * mu, and int V dmu to the energy E of a model. The free
    energy is F = entropy/kappa - E. Under isotropic noise and without other drifts the stationary
    density is proportional to exp(kappa V).

    Parameters
    ----------
    function : callable
        V of points (..., d), any number of them at once; it returns an array (...). It must be
        smooth near the sphere, not only on it. On the circle theta is
        ``np.arctan2(x[..., 1], x[..., 0])``.

    Raises
    ------
    TypeError, ValueError
        As of `Field`.
    MeanfieldError
        Where a density moves, if V is not smooth: if it jumps, as the angle does, has kinks, or
        harmonics above degree 4096 on the circle, 384 on other surfaces, 40 in three dimensions, or
        that of the space if it is higher.

    Notes
    -----
    The gradient is exact if V consists of NumPy functions with rules in `core.dual`, at the cost of
    d values of V. Otherwise it is a central difference of order 10 along each axis, accurate to
    about 1e-12, at the cost of 10 d values or more.

    Examples
    --------
    Attraction to two opposite points: ``Potential(lambda x: 0.5 * x[..., 0] ** 2)``.
    """

    gradient_flow = True
    function_name = "The gradient of Potential.function"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Gradients (..., d) by dual numbers, or by differences if V refuses them."""
        if isinstance(x, Dual):
            raise TypeError("The gradient of V has derivatives by differences alone.")
        d = x.shape[-1]
        axes = np.broadcast_to(np.eye(d).reshape(d, *(1,) * (x.ndim - 1), d), (d, *x.shape))
        try:
            values = self._answer(Dual(x, axes))
            if not isinstance(values, Dual):
                values = plain_array("What Potential.function returns", values)
            slopes = changes_of(values, d)
        except (TypeError, AttributeError, MeanfieldError):  # functions without rule, or |x| at 0

            def moved(h: float) -> np.ndarray:
                return np.stack([self.level(x + h * axis) for axis in axes])

            slopes = derivative_at_zero(moved, "Potential.function")
        return np.moveaxis(slopes, 0, -1)

    def on_grid(self, space: "Space") -> np.ndarray:
        """V on the grid of a space, (N,); MeanfieldError if a value is not finite."""
        values = self.level(space.points)
        if where := first_not_finite(values, x=space.points):
            raise MeanfieldError(f"{self!r} returned values that are not finite: {where}.")
        return values

    @cached_property
    def harmonics(self) -> SampledHarmonics:
        return SampledHarmonics(self.on_grid, self._why_not_smooth)

    def _why_not_smooth(self, sizes: HarmonicSizes, missed: float) -> str:
        """Why the series of V is not V; empty if it misses rounding errors only."""
        size = sizes.beyond(0)
        if missed <= NOT_SMOOTH * size + POTENTIAL_LEVEL_ROUNDING * (1 + float(sizes.sizes[0])):
            return ""
        degree = sizes.sizes.size - 1
        return (
            f"{self!r} is not smooth: its series up to degree {degree} misses {missed:.1e}, "
            f"expected <= {NOT_SMOOTH:.0e} of its largest coefficient {size:.1e}. V jumps, has "
            "kinks or varies over small angles. Take a periodic function, such as np.cos of a "
            "multiple of the angle, or a smooth one, such as np.tanh in place of np.sign. If it "
            f"is smooth, start on a space of a degree above {degree}."
        )

    def level(self, x: np.ndarray) -> np.ndarray:
        """The checked values V(x), (...), at points (..., d)."""
        values, name = self._answer(x), "Potential.function, of points,"
        return np.asarray(returned(name, values, x.shape[:-1]), dtype=float)

    def _answer(self, x: Values) -> UserValue:
        """Call the function of points (..., d)."""
        wanted = f"return numbers of shape {x.shape[:-1]}"
        return answer("Potential.function", self.function, wanted, read_only(x))

    def interaction_energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return (masses * self.level(x)).sum(axis=-1)

    def why_no_potential(self, d: int, t: float = 0.0) -> str:
        return ""


class FeedForward(Pointwise):
    """f(x) = outer activation(inner x + bias) + outer_bias, token by token.

    With a `gate`, as in SwiGLU, it is outer (activation(gate x + gate_bias) * (inner x + bias)) +
    outer_bias. As a drift, or a part of a sum of drifts, it acts beside attention; as
    ``Transformer(..., feedforward=FeedForward(...))`` it is a sublayer after it.

    Parameters
    ----------
    inner : array, (k, d), number, or PerLayer
        First matrix; a number is that multiple of the identity.
    outer : array, (d, k), number, or PerLayer
        Second matrix.
    bias : array, (k,), or PerLayer, optional
        0 by default.
    activation : callable
        Of arrays; `relu` by default. In files "relu", "gelu", "gelu_tanh", "silu", "quick_gelu",
        "softplus" or "tanh".
    outer_bias : array, (d,), or PerLayer, optional
        Added to the result; none by default.
    gate : array, (k, d), number, or PerLayer, optional
        If given, the activation is applied to gate x, and multiplies inner x + bias coordinate by
        coordinate.
    gate_bias : array, (k,), or PerLayer, optional
        Added to gate x; none by default.

    Raises
    ------
    TypeError, ValueError
        If the shapes do not fit together, or entries are not finite.

    Notes
    -----
    With a `PerLayer` the function changes from layer to layer, for tokens only; a direct call
    evaluates that of the first layer.
    """

    default_kind: ClassVar[str | None] = "FeedForward"

    inner: Weight
    outer: Weight
    bias: Weight | None = None
    activation: Annotated[Function, ACTIVATION_FORM] = relu
    _: KW_ONLY
    outer_bias: Weight | None = None
    gate: Weight | None = None
    gate_bias: Weight | None = None

    def validate(self) -> None:
        if any(value.shape is None for value in self._array_parameters.values()):  # not known yet
            return
        for name, value in changing(self._array_parameters).items():
            require(name, value, "finite numbers", np.isfinite(value.values).all())
        gated = self.gate is not None or self.gate_bias is None
        require("gate_bias", self.gate_bias, "left out without a gate", gated)
        axes, arrays = self._axes, self._array_parameters
        numbers = not any(v.shape for name, v in arrays.items() if name in FEEDFORWARD_MATRICES)
        for name, value in arrays.items():
            fits = len(value.shape) == len(axes[name])
            fits |= value.shape == () and (numbers or name in FEEDFORWARD_MATRICES)
            require(f"{name}.shape", value.shape, f"({', '.join(FEEDFORWARD_AXES[name])})", fits)
        sizes = self._sizes
        if self.bias is None:
            self._set(bias=np.zeros(() if numbers else sizes[axes["bias"]]))

    @property
    def _array_parameters(self) -> Parameters:
        """Matrices and biases that are given, by name."""
        values = {name: getattr(self, name) for name in FEEDFORWARD_AXES}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def _axes(self) -> dict[str, str]:
        """The axes k and d of matrices and biases; a number is a square matrix, so that k is d."""
        shapes = [
            v.shape for name, v in self._array_parameters.items() if name in FEEDFORWARD_MATRICES
        ]
        k = "d" if () in shapes else "k"
        return {name: letters.replace("k", k) for name, letters in FEEDFORWARD_AXES.items()}

    @property
    def _sizes(self) -> dict[str, int]:
        """The sizes of the axes; ValueError unless shapes fit together."""
        shapes = {name: value.shape for name, value in self._array_parameters.items()}
        return sizes_of(self._axes, shapes, "A number stands for a square matrix.")

    @property
    def dimension(self) -> int | None:  # type: ignore[override]
        """The dimension d; None if numbers fit any, or matrices are not known yet."""
        return self._sizes.get("d")

    @property
    def why_no_density(self) -> str:  # type: ignore[override]
        return "" if self.constant else "a FeedForward of layers is known for tokens only."

    def at(self, t: float) -> "FeedForward":
        """The map at the time t."""
        if self.constant:
            return self
        now = copy(self)  # its shapes were checked for all times
        now._set(**{name: at(value, t) for name, value in self._array_parameters.items()})
        return now

    def __call__(self, x: np.ndarray) -> np.ndarray:
        if not self.constant:
            return self.at(0.0)(x)
        hidden = _times(self.inner, x) + self.bias
        if self.gate is None:
            result = _times(self.outer, self.activation(hidden))
        else:
            result = _times(self.outer, self.activation(self._opened(x)) * hidden)
        return result if self.outer_bias is None else result + self.outer_bias

    def _opened(self, x: np.ndarray) -> np.ndarray:
        """The argument of the activation with a gate, gate x + gate_bias."""
        opened = _times(self.gate, x)
        return opened if self.gate_bias is None else opened + self.gate_bias


def _times(matrix: Values, x: np.ndarray) -> np.ndarray:
    """Each row of x times a matrix, or a number."""
    return x @ matrix.T if matrix.ndim else matrix * x

"""Layer normalisation: schemes that project hidden states onto the sphere.

A hidden state is h = r x, |x| = 1. The output of attention A depends on the directions x; each
scheme turns it into an update u of the hidden state, whose length is either variable or fixed:

    grows    x' = P u / r,    r' = <x, u>         a layer: h <- h + step u
    fixed    x' = P u,        r' = 0              a layer: x <- N(x + step u)

with P = I - x x^T and N(h) = h/|h|. A layer is Euler's step of length `step`.

Networks have norms with gains, biases and epsilon in place of N. With these, `PreLN(norm, norm)`
and `PostLN(norm, norm)` move hidden states h in R^d as they are, `Tokens(h, on_sphere=False)`.
"""

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np

from ..core.annotations import PassedOn, Values
from ..core.checks import positive, returned
from ..core.dual import applied, value_of
from ..core.errors import MeanfieldError
from ..core.forms import Positive
from ..core.kinds import Kind
from .norms import Norm

CANCELLED_ATTENTION = 1e-14
Sublayer = Literal["attention", "feedforward"]


class Normalisation(Kind, family=True):
    """Turns the output of attention into the update of the hidden state.

    Attributes
    ----------
    needs_direction : bool
        Whether u depends only on the direction of A, which must then not be 0.
    is_identity : bool
        Whether the update is A itself, and lengths are fixed.
    constant : bool
        Whether tokens that rest cannot begin to move again, because no rate depends on t. A class
        that overrides `update` or `grows` has to say so; otherwise it is False.
    has_radii : bool
        Whether lengths of hidden states matter at some time. A class with `grows` has to say so.
    why_no_flow : str
        The reason why the scheme has layers but no flow; empty if it has one.

    References
    ----------
    Karagodin, Ge, Polyanskiy and Rigollet, arXiv:2510.22026, the table of schemes.
    """

    needs_direction: ClassVar[bool] = False
    is_identity: ClassVar[bool] = False
    constant: ClassVar[bool] = True
    has_radii: ClassVar[bool] = False
    why_no_flow: ClassVar[str] = ""
    _internal: ClassVar[str] = "autonomous updated"

    def __init_subclass__(cls, **options: PassedOn) -> None:
        defined = vars(cls)
        if "constant" not in defined and ("update" in defined or "grows" in defined):
            cls.constant = False
        if "grows" in defined and not cls.has_radii:
            raise TypeError(
                f"{cls.__name__} says when lengths of hidden states grow, but not that tokens have "
                "lengths: add has_radii = True."
            )
        super().__init_subclass__(**options)

    @property
    def autonomous(self) -> bool:
        """Whether the scheme is independent of time between two breakpoints."""
        return self.constant

    def update(self, t: float, A: np.ndarray, size: Values = 0.0) -> np.ndarray:
        """u for the output A of attention, (..., n, d): A itself, unless a scheme changes it.

        `size`, a number or an array (..., 1, 1), is the approximate length of the summands of A: an
        A below 1e-14 of it consists of rounding errors and has no direction.
        """
        return A

    def updated(self, t: float, A: np.ndarray, size: Values = 0.0) -> np.ndarray:
        """`update`, checked: TypeError or ValueError unless it returns numbers shaped like A."""
        name = f"{type(self).__name__}.update"

        def update(A: Values) -> Values:
            return returned(name, self.update(t, A, size), A.shape)

        return applied(update, A, name, relative=True)

    def grows(self, t: float) -> bool:
        """Whether the lengths of hidden states change at the time t."""
        return self.has_radii

    def breakpoints(self) -> tuple[float, ...]:
        """Times at which the scheme changes."""
        return ()

    # Hidden states in R^d ------------------------------------------------------------------

    @property
    def norms(self) -> list[Norm]:
        """Norms of hidden states in R^d; none where tokens are unit vectors."""
        return []

    def before(self, t: float, x: np.ndarray, sublayer: Sublayer) -> np.ndarray:
        """The input of a sublayer for hidden states x (..., d): x, unless there is a norm."""
        return x

    def after(self, t: float, x: np.ndarray, sublayer: Sublayer) -> np.ndarray:
        """Hidden states after the output of a sublayer was added: x, unless there is a norm."""
        return x


class _Normed(Normalisation):
    """A placement of norms, which acts on unit vectors where none is given."""

    attention: Norm | None = None
    feedforward: Norm | None = None

    @property
    def norms(self) -> list[Norm]:
        return [norm for norm in (self.attention, self.feedforward) if norm is not None]

    @property
    def constant(self) -> bool:  # type: ignore[override]
        return all(norm.constant for norm in self.norms)

    @property
    def autonomous(self) -> bool:
        return all(norm.autonomous for norm in self.norms)

    def breakpoints(self) -> tuple[float, ...]:
        return tuple(sorted({t for norm in self.norms for t in norm.breakpoints()}))

    def _normed(self, t: float, x: np.ndarray, sublayer: Sublayer) -> np.ndarray:
        """States x (..., d) by the norm of a sublayer; x itself without one."""
        norm = getattr(self, sublayer)
        return x if norm is None else norm(x, t)


class PostLN(_Normed):
    """Post-LN: x' = P A; a layer is x <- N(x + step A(x)).

    With norms a layer of `steppers.Layers` is, for hidden states h in R^d,

        h <- N_1(h + step A(h)),    h <- N_2(h + step F(h))

    with attention A and the feed-forward map F, as in BERT. Gains and biases make N_1 no
    projection, so that there are layers and no flow.

    Parameters
    ----------
    attention, feedforward : Norm, optional
        N_1 and N_2, `LayerNorm(gain, bias, eps)` or `RMSNorm(gain, eps)`. With one of them alone
        the other sublayer has none.
    """

    @property
    def is_identity(self) -> bool:  # type: ignore[override]
        return not self.norms

    @property
    def why_no_flow(self) -> str:  # type: ignore[override]
        if not self.norms:
            return ""
        return "norms after sublayers do not leave hidden states alone as the step goes to 0"

    after = _Normed._normed


class PreLN(_Normed):
    """Pre-LN: x' = P A / r, r' = <x, A>; a layer is h <- h + step A(N(h)), h = r x.

    Tokens without radii begin with r = 1: `Tokens.from_hidden` keeps the lengths of hidden states.

    With norms h' = A(N_1(h)) + F(N_2(h)) for hidden states h in R^d, with attention A and the
    feed-forward map F; a layer of `steppers.Layers` is, as in GPT-2 and Llama,

        h <- h + step A(N_1(h)),    h <- h + step F(N_2(h))

    Parameters
    ----------
    attention, feedforward : Norm, optional
        N_1 and N_2, `LayerNorm(gain, bias, eps)` or `RMSNorm(gain, eps)`. With one of them alone
        the other sublayer has none.
    """

    @property
    def has_radii(self) -> bool:  # type: ignore[override]
        return not self.norms

    before = _Normed._normed


class MixLN(Normalisation):
    """Mix-LN: Post-LN until the time `tau`, Pre-LN from then on.

    Parameters
    ----------
    tau : float
        > 0.
    """

    has_radii = constant = True

    tau: Positive

    def grows(self, t: float) -> bool:
        return t >= self.tau

    def breakpoints(self) -> tuple[float, ...]:
        return (float(self.tau),)


class PeriLN(Normalisation):
    """Peri-LN: the output of attention is normalised too.

    x' = P A / (r |A|), r' = <x, A> / |A|; a layer is h <- h + step N(A(N(h))), h = r x.
    """

    needs_direction = has_radii = constant = True

    def update(self, t: float, A: np.ndarray, size: Values = 0.0) -> np.ndarray:
        return _unit(A, size)


class NGPT(Normalisation):
    """nGPT: x' = alpha P A / |A|; a layer is x <- N(x + step alpha N(A)).

    Parameters
    ----------
    alpha : float or callable
        The learning rate > 0, or alpha(t).
    """

    alpha: Callable[[float], float] | Positive = 1.0
    needs_direction = True

    @property
    def constant(self) -> bool:  # type: ignore[override]
        return not callable(self.alpha)

    def update(self, t: float, A: np.ndarray, size: Values = 0.0) -> np.ndarray:
        return self._rate(t) * _unit(A, size)

    def _rate(self, t: float) -> float:
        alpha = self.alpha(t) if callable(self.alpha) else self.alpha
        positive(f"alpha({t:g})", alpha)
        return alpha


class SqrtScaling(Normalisation):
    """LayerNorm scaling: x' = P A / sqrt(t + 1)."""

    constant = True  # tokens that rest stay at rest
    autonomous = False

    def update(self, t: float, A: np.ndarray, size: Values = 0.0) -> np.ndarray:
        if not t > -1:
            raise MeanfieldError(
                f"SqrtScaling divides by sqrt(t + 1): times begin at 0; got {t:g}."
            )
        return A / np.sqrt(t + 1)


def _unit(A: np.ndarray, size: Values) -> np.ndarray:
    """A/|A|; raises MeanfieldError where A is 0 to rounding and has no direction."""
    _, power = np.frexp(np.abs(value_of(A)).max(axis=-1, keepdims=True))
    A = np.ldexp(A, -power)  # exact; squares of numbers of any size neither overflow nor vanish
    scaled = np.linalg.norm(A, axis=-1, keepdims=True)
    with np.errstate(over="ignore"):
        lengths = np.ldexp(scaled, power)
    if (lengths <= CANCELLED_ATTENTION * size).any():
        largest = np.max(size)
        raise MeanfieldError(
            f"Attention is 0 at a token, to rounding ({lengths.min():.1e} of {largest:.1e}), and "
            "Peri-LN and nGPT have no direction to give to it. Move the tokens off this symmetric "
            "position, or use another normalisation."
        )
    return A / scaled

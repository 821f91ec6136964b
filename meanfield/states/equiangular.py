"""Equiangular tokens: all inner products of different tokens are the same number rho."""

from typing import Annotated, ClassVar

import numpy as np

from ..core.annotations import Parameters
from ..core.cached import cached_property
from ..core.checks import check_memory, common_shape, real_array, require, whole_number
from ..core.forms import Numbers, PositiveNumbers
from .contract import State, StatePart
from .tokens import Tokens

CLOSE_GAP = 1e-3


class Equiangular(State):
    """n tokens of equal masses on a sphere with <x_i, x_j> = rho for all i != j.

    Parameters
    ----------
    n : float or array
        The number of tokens, >= 2; it need not be whole, and 1e12 is as good as 32.
    rho : float or array, optional
        -1/(n - 1) < rho < 1.
    radius : float or array
        The common length > 0 of hidden states, for models whose normalisation moves it.
    gap : float or array, optional
        1 - rho instead of rho, for tokens so close that rho has lost its digits.

    Raises
    ------
    TypeError, ValueError
        For numbers out of these ranges, for both rho and gap or neither, and for arrays that do
        not broadcast; these make an ensemble.

    Notes
    -----
    The state is kept as its `logit`

        z = log((1 + (n - 1) rho)/(1 - rho)),    so    1 - rho = n/(e^z + n - 1),

    of which rho, 1 - rho and 1 + (n - 1) rho = |sum_i x_i|^2/n are computed without cancellation:
    each keeps its relative accuracy wherever it is small.
    """

    words: ClassVar[dict[str, str]] = {
        "rho": "inner product of any two tokens",
        "gap": "1 - rho",
        "initial_rho": "inner product at the start",
        "initial_gap": "1 - rho at the start",
        "initial_radius": "length of the hidden states at the start",
    }
    n: Annotated[np.ndarray, StatePart("number of tokens", fixed=True)]
    logit: Annotated[np.ndarray, StatePart("log((1 + (n - 1) rho)/(1 - rho))")]
    radius: Annotated[np.ndarray, StatePart("length of the hidden states")]

    def __init__(
        self,
        n: PositiveNumbers,
        rho: Numbers | None = None,
        radius: PositiveNumbers = 1.0,
        *,
        gap: PositiveNumbers | None = None,
    ):
        """Broadcast the arguments; raise ValueError for rho outside (-1/(n - 1), 1)."""
        name = "rho" if gap is None else "gap"
        got, exactly_one = "neither" if rho is None else "both", (rho is None) != (gap is None)
        require("Arguments of Equiangular", got, "one of rho and gap = 1 - rho", exactly_one)
        arrays = {"n": n, name: rho if gap is None else gap, "radius": radius}
        arrays = {key: real_array(key, value) for key, value in arrays.items()}
        common_shape("Equiangular", {key: array.shape for key, array in arrays.items()})
        for key, array in arrays.items():
            require(key, array, "numbers, at least one", array.size > 0)
        n, values, radius = np.broadcast_arrays(*arrays.values())
        require("n", n.tolist(), "finite n >= 2 tokens", ((n >= 2) & (n < np.inf)).all())
        require("radius", radius, "finite radius > 0", ((radius > 0) & (radius < np.inf)).all())
        name, rho, gap = ("rho", values, 1 - values) if gap is None else ("gap", 1 - values, values)
        _check_inside(n, rho, gap, name)
        self._set(n=np.array(n), logit=np.array(_logit(n, rho, gap)), radius=np.array(radius))

    @property
    def described(self) -> Parameters:
        """Parameters that restore it: n, radius, and rho, or gap if that is below 1/2 anywhere."""
        gap_is_small = bool((np.abs(self.gap) < 0.5).any())
        rho = {"gap": self.gap} if gap_is_small else {"rho": self.rho}
        return {"n": self.n, **rho, "radius": self.radius}

    @property
    def size_in_words(self) -> str:
        return "equiangular tokens"

    # What it is ----------------------------------------------------------------------------

    @property
    def tokens(self) -> int | np.ndarray:
        return self.n

    @property
    def rho(self) -> np.ndarray:
        """The inner product of two different tokens."""
        ahead = -np.expm1(-np.abs(self.logit)) * np.sign(self.logit)
        return ahead / self._scale

    @property
    def gap(self) -> np.ndarray:
        """1 - rho."""
        root = np.exp(np.minimum(-self.logit, 0) / 2)  # its square may underflow
        return root * self.n * root / self._scale

    @property
    def log_gap(self) -> np.ndarray:
        """log(1 - rho), finite where 1 - rho is below the least number."""
        return np.log(self.n) + np.minimum(-self.logit, 0) - np.log(self._scale)

    @property
    def square(self) -> np.ndarray:
        """(1 + (n - 1) rho)/n, the square of the length of the mean token."""
        return np.exp(np.minimum(self.logit, 0)) / self._scale

    @cached_property
    def _scale(self) -> np.ndarray:
        """e^z + n - 1, with z = `logit`, divided by e^z where z > 0."""
        w = np.exp(-np.abs(self.logit))
        return np.where(self.logit > 0, 1 + (self.n - 1) * w, self.n - 1 + w)

    def __repr__(self) -> str:
        if self.shape:
            return f"Equiangular(ensemble of shape {self.shape})"
        inner = f"gap={self.gap:.6g}" if self.rho > 0.9 else f"rho={self.rho:.6g}"
        return f"Equiangular(n={self.n:.15g}, {inner}, radius={self.radius:.6g})"

    def start(self) -> dict[str, list[float]]:
        """The numbers of an initial state, as plain data: rho, or 1 - rho where it is small."""
        close = (self.gap < CLOSE_GAP).any()
        rho = {"initial_gap": self.gap} if close else {"initial_rho": self.rho}
        radius = {} if (self.radius == 1).all() else {"initial_radius": self.radius}
        return {name: a.tolist() for name, a in {"n": self.n, **rho, **radius}.items()}

    def to_tokens(self, d: int | None = None) -> Tokens:
        """Tokens of S^(d-1) with these inner products, d = n by default; unique up to rotation.

        x_i = a e_i + b (e_1 + ... + e_n), a = (1 - rho)^(1/2).

        Parameters
        ----------
        d : int, optional

        Raises
        ------
        ValueError
            Unless n is whole, and d >= n: n equiangular tokens are linearly independent; and for
            more tokens than memory holds.
        """
        count = {whole_number("n", n, least=2) for n in self.n.flat}
        advice = "Convert members one by one: state[i].to_tokens()."
        require("n", sorted(count), "the same in an ensemble", len(count) == 1, advice=advice)
        (n,) = count
        d = n if d is None else whole_number("d", d)
        require("d", d, f">= n = {n}, as equiangular tokens are linearly independent", d >= n)
        check_memory(f"n = {n} tokens of R^{d}", (*self.shape, 3 * n, d), "n or d")
        a = np.sqrt(self.gap)[..., None, None]
        b = self.rho[..., None, None] / (a + np.sqrt(n * self.square)[..., None, None])
        x = np.zeros((*self.shape, n, d))
        x[..., :n] = a * np.eye(n) + b
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        radii = np.broadcast_to(self.radius[..., None], (*self.shape, n))
        return Tokens(x, radii=None if (self.radius == 1).all() else radii)


def _check_inside(n: np.ndarray, rho: np.ndarray, gap: np.ndarray, parameter: str) -> None:
    """Raise ValueError unless -1/(n - 1) < rho < 1, in terms of `parameter`, rho or gap."""
    is_valid = (gap > 0) & (1 + (n - 1) * rho > 0)
    if is_valid.all():
        return
    i = int(np.argmin(is_valid))
    count, value = n.flat[i], {"rho": rho, "gap": gap}[parameter].flat[i]
    if parameter == "rho":
        bounds, advice = f"{-1 / (count - 1):.6g} = -1/(n - 1) < rho < 1", "gap = 1 - rho"
    else:
        bounds, advice = f"0 < gap < n/(n - 1) = {count / (count - 1):.6g}", "gap > 0"
    raise ValueError(
        f"Equiangular needs {bounds} for n = {count:.15g} tokens: at the bounds they are a regular "
        f"simplex or one point, and rest; got {parameter} = {value:.6g}. For tokens that are "
        f"nearly one give {advice}."
    )


def _logit(n: np.ndarray, rho: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """log((1 + (n - 1) rho)/gap) = log(1 + n rho/gap), where n rho/gap may overflow."""
    with np.errstate(divide="ignore", over="ignore"):
        negative_logit = np.log1p(n * np.minimum(rho, 0) / gap)
        large_logit = np.logaddexp(0, np.log(n) + np.log(np.maximum(rho, 0)) - np.log(gap))
        small_logit = np.log1p(np.minimum(n * np.maximum(rho, 0), gap) / gap)
        return np.where(rho < 0, negative_logit, np.where(n * rho < gap, small_logit, large_logit))

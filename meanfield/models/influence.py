"""Influence of tokens or densities on others by positions in a sequence: masks and weights.

By default every token is influenced by all tokens. The position of token i is the mass up to and
including it, m_1 + ... + m_i, or i/n for equal masses; that of an `Indexed` density is its index s.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np

from ..core.annotations import Function, Json, UserValue
from ..core.checks import require, returned
from ..core.descriptions import KindOf
from ..core.errors import MeanfieldError
from ..core.forms import ARRAY, FUNCTION, Either, Form, Positive, Reading, Schema
from ..core.kinds import Kind
from .drift import Drift


class Causal(Kind, family=True):
    """Causal attention: position s attends to the positions tau <= s.

        v_s(x) = P_x int_0^s int w(s - tau) k(x, y) y dmu_tau(y) dtau / D_s(x)

    with D_s(x) = int_0^s int w(s - tau) Z(x, y) dmu_tau(y) dtau, the sum of the weights, where the
    drift is normalised; else D_s = int_0^s w(s - tau) dtau, the mass that is seen, for "mean",
    and D_s = 1 for "sum".

    Parameters
    ----------
    divide : "mean" or "sum", optional
        Denominator D_s for weights that are not normalised. Leave it out for normalised weights,
        such as those of `SA`, for which both coincide.
    window : float, optional
        Restricts attention to s - window <= tau <= s. By default all earlier positions.
    sink : float, optional
        Mass of the first part of the sequence, to which all later positions attend in spite of the
        window: k/n for the first k of n tokens; the mass of the atom of ``Positions(sink=)`` for
        this atom. In (0, 1), with a window only. A decay acts on this part too.
    decay : callable, optional
        w, a smooth function of arrays of differences s - tau >= 0, with values >= 0; 1 by default.
    beta : callable, optional
        The inverse temperature at position s, a function of arrays, which replaces that of the
        drift.

    Raises
    ------
    ValueError
        For a sink outside (0, 1), or without a window.

    References
    ----------
    Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322 (masked attention).
    Xiao, Tian, Chen, Han and Lewis, arXiv:2309.17453 (windows that always see the first tokens).
    """

    default_kind: ClassVar[str | None] = "Causal"

    divide: Literal["mean", "sum"] | None = None
    window: Positive | None = None
    decay: Function | None = None
    beta: Function | None = None
    sink: Positive | None = None

    def validate(self) -> None:
        if self.sink is None:
            return
        require("sink", self.sink, "a mass, 0 < sink < 1", self.sink < 1)
        if self.window is None:
            raise ValueError(
                f"sink = {self.sink:g} is what is seen beyond a window: give window= too, or leave "
                "it out, as all that came before is seen without one."
            )

    @property
    def plain(self) -> bool:
        """Whether all preceding positions have the same weight, and all positions the same beta."""
        return self.window is None and self.decay is None and self.beta is None

    def weights(self, differences: np.ndarray) -> np.ndarray:
        """The checked weights w at differences s - tau >= 0."""
        if self.decay is None:
            return np.ones_like(differences)
        return _checked("decay", self.decay(differences.copy()), differences.shape, 0.0)

    def betas(self, positions: np.ndarray) -> np.ndarray | None:
        """The checked beta at positions; None if all have the beta of the drift."""
        if self.beta is None:
            return None
        return _checked("beta", self.beta(positions.copy()), positions.shape)

    def is_mean(self, drift: "Drift") -> bool:
        """Whether, under a drift, sums are divided by the mass of the positions that are summed."""
        return drift.normalised or self.divide == "mean"

    def check_drift(self, drift: "Drift") -> None:
        """Raise ValueError if a drift cannot be causal, or needs a choice of "mean" or "sum"."""
        for _, part in drift.terms:
            if part.why_not_causal:
                raise ValueError(f"causal does not go with {part!r}: {part.why_not_causal}")
        if self.divide is None and not drift.normalised:
            raise ValueError(
                f"causal must say what sums of {drift!r} are divided by, whose weights are not "
                'normalised: "mean" divides by the mass that is seen, "sum" does not.'
            )


class _CausalForm(Form):
    """A `Causal`, or one of its words: true, "mean" or "sum"."""

    expected = 'true, "mean", "sum", or a table Causal'
    names = ("Causal",)

    def read(self, data: Json, where: str, reading: Reading) -> UserValue:
        if isinstance(data, bool | np.bool_):
            return Causal() if data else None
        if isinstance(data, str) and data in ("mean", "sum"):
            return Causal(data)  # type: ignore[arg-type]
        if isinstance(data, str) and data != "Causal":
            return reading.expected(where, self.expected, data, ("mean", "sum"))
        if reading.in_python and not isinstance(data, Causal):
            return reading.expected(where, self.expected, data)
        return KindOf(Causal).read(data, where, reading)

    def json(self, definitions: Schema) -> Schema:
        words = {"enum": [True, False, "mean", "sum"]}
        return {"anyOf": [words, KindOf(Causal).json(definitions)]}


CausalOrWord = Annotated[UserValue, _CausalForm()]


COUPLING = Either((ARRAY, FUNCTION))
Coupling = Annotated[UserValue, COUPLING]


class Frequency(Kind, family=True):
    """Angular velocity of points of the circle, in radians per unit of time, by their index."""

    def slopes(self, index: np.ndarray) -> dict[str, np.ndarray]:
        """Derivatives of the angular velocities at values of the index by parameters, (P,) each."""
        return {}


class OfIndex(Frequency):
    """The index times a factor: the natural frequency omega where the index is omega.

    Parameters
    ----------
    factor : float
        Multiplier of the index; 1 by default.
    """

    factor: float = 1.0

    def __call__(self, index: np.ndarray) -> np.ndarray:
        return self.factor * index

    def slopes(self, index: np.ndarray) -> dict[str, np.ndarray]:
        return {"factor": index}


class Lorentzian(Frequency):
    """Natural frequencies with the law g(omega) = (width/pi)/((omega - centre)^2 + width^2).

    A density on the circle is then the mean over omega, the density of all oscillators. If the
    initial density does not depend on omega, the moments z_k = int e^{ik theta} dmu follow

        z_k' = (i k centre - k width - k^2/kappa) z_k + ...,

    where the dots are the terms of a density without frequencies. The reason is that g has one pole
    in each half-plane, at which the moments given omega are evaluated.

    Parameters
    ----------
    width : float
        Half the width of g at half its height, > 0.
    centre : float
        The frequency at which g is largest; 0 by default.

    References
    ----------
    Ott and Antonsen, Chaos 18 (2008) 037113.
    """

    width: Positive
    centre: float = 0.0


FREQUENCY = Either((KindOf(Frequency), FUNCTION))
FrequencyOfIndex = Annotated[UserValue, FREQUENCY]


def frequencies_at(frequency: UserValue, index: np.ndarray) -> np.ndarray:
    """Angular velocities at values of the index (P,); 0 if `frequency` is None.

    Raises MeanfieldError for a law of frequencies, which is for a density without index.
    """
    if frequency is None:
        return np.zeros(index.shape)
    if isinstance(frequency, Lorentzian):
        raise MeanfieldError(
            f"{frequency!r} is the law of the frequencies that a density has all of; densities "
            "that are indexed by a frequency have frequency=OfIndex(), or a function of the index."
        )
    return _checked("frequency", frequency(index.copy()), index.shape)


def _checked(
    name: str, values: UserValue, shape: tuple[int, ...], smallest: float = -np.inf
) -> np.ndarray:
    """Finite numbers >= smallest, of a shape, from a function; else TypeError, ValueError."""
    values = np.broadcast_to(values, shape) if np.ndim(values) == 0 else values
    return returned(name, values, shape, smallest)

"""The model: a drift, the strength of the noise, and the other parts of a Transformer layer."""

import copy
import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from ..core.annotations import ArrayIndex, Function, OfLibrary, Parameters, TangentNames
from ..core.cached import cached_property
from ..core.checks import common_shape, first_not_finite
from ..core.dual import Dual
from ..core.errors import MeanfieldError
from ..core.kinds import Kind
from ..core.provided import FIGURES, Rows, Shown
from ..spaces.validity import SampledHarmonics
from .common_noise import CommonNoise
from .drift import Drift, unit_rates
from .influence import CausalOrWord, Coupling, FrequencyOfIndex
from .noise import Isotropic, Noise
from .normalisation import Normalisation, PostLN
from .parameters import NoiseParameter, at
from .pointwise import FeedForward, Pointwise, tangential, vectors_at
from .zonal import ZonalDrift

if TYPE_CHECKING:
    from ..spaces import Space

# The parts that depend on positions, or on an index
POSITIONAL_PARTS = "causal", "coupling", "frequency"
PARTS = "drift", "kappa", "causal", "normalisation", "noise", "common", "feedforward"


class Transformer(Kind, Shown, family=True):
    """Mean-field attention with noise: d mu/dt = (1/kappa) L* mu - div(mu v[mu]).

    The law of tokens that follow dX = v[mu_t](X) dt + sqrt(2/kappa) dW on the unit sphere.

    Parameters
    ----------
    drift : Drift
        A kind of `Drift`, such as ``SA(4.0)`` or ``Attention(Q, K, V, beta)``; or a sum, as
        ``SA(4.0) + 0.5 * Field(f)``. ``Drift.kinds`` lists them.
    kappa : float, array, PerLayer or callable
        Noise parameter, > 0: increments have variance 2 dt/kappa in each tangent direction.
        Infinity, the default, is the deterministic flow. An array makes an ensemble, by
        broadcasting with the drift's parameters. For tokens and densities it may change with time:
        a `PerLayer`, where inf is a layer without noise, or a function of t, whose jumps are
        `breaks` of `solve`.
    normalisation : Normalisation
        Where the hidden states are put back on the sphere: `PostLN()`, the flow above, or
        `PreLN()`, `MixLN(tau)`, `PeriLN()`, `NGPT(alpha)`, `SqrtScaling()`. The first three of
        these give tokens radii, which densities do not have. With norms that have gain, bias and
        epsilon, ``PreLN(LayerNorm(...), LayerNorm(...))``, tokens are hidden states of R^d.
    noise : Noise
        A kind of `Noise` of unit strength: `Isotropic()`, for which L is the Laplacian, or another
        with a finite kappa. ``Noise.kinds`` lists them.
    common : CommonNoise, optional
        Noise common to all tokens, with a strength of its own: a kind of `CommonNoise`, such as
        ``CommonRotations(kappa)``. A density is then random: the law of the tokens given the
        common noise.
    reaction : float
        alpha of d mu/dt = ... + alpha mu (Phi - int Phi dmu), Phi = W * mu. The masses of tokens,
        and of the nodes of `Characteristics`, follow w_i' = alpha w_i (Phi(x_i) - sum_j w_j
        Phi(x_j)) (Wasserstein-Fisher-Rao). Zonal drifts have such a Phi, and `Attention` where its
        velocity is a gradient.
    feedforward : callable, optional
        f of `FeedForward`, or any function of points (..., d): added to the output of attention.
        `steppers.Layers` and `LieTrotter` apply it after attention, and a part of
        `drift` together with it.
    causal : bool, "mean", "sum" or Causal, optional
        Whether attention is restricted to the same and earlier positions, for tokens and `Indexed`
        densities. "mean" divides sums over these positions by their mass, "sum" does not; for
        normalised weights both coincide, ``causal=True``. `Causal` adds windows, a decay and an
        inverse temperature that depends on the position.
    coupling : callable or array, optional
        J for `Indexed` densities: position tau acts on s with the weight J(s, tau). A function of
        arrays, or a matrix with a number for each pair of positions of the state.
    frequency : Frequency or callable, optional
        Angular velocity of points of the circle, in addition to the drift. For `Indexed` densities
        `OfIndex()` or a function of the index; for a density `Lorentzian(width)`, the law of the
        frequencies of all oscillators.

    Raises
    ------
    TypeError
        If an argument is of another kind.
    ValueError
        If kappa is not positive (nan included), or does not broadcast with the drift; for a noise
        other than Isotropic if kappa is infinite.

    References
    ----------
    Rigollet, arXiv:2512.01868, equations (8) and (9); the printed (9) has a wrong sign.
    """

    default_kind: ClassVar[str | None] = "Transformer"
    _internal: ClassVar[str] = (
        "at_each_place by_place card feedforward_at feedforward_harmonics feedforward_in "
        "feedforward_on has_independent_noise "
        "keeps_axes is_zonal kappa_at parts parts_tokens smooth_noise steady_noise "
        "why_on_tokens_only"
    )

    drift: Drift
    kappa: NoiseParameter = np.inf
    _: KW_ONLY
    normalisation: Normalisation = PostLN()
    noise: Noise = Isotropic()
    common: CommonNoise | None = None
    reaction: float = 0.0
    feedforward: FeedForward | Function | None = None
    causal: CausalOrWord | None = None
    coupling: Coupling | None = None
    frequency: FrequencyOfIndex | None = None

    def validate(self) -> None:
        if self.causal is not None:
            self.causal.check_drift(self.drift)
            if self.coupling is not None:
                raise ValueError(
                    "causal and coupling both say how positions see each other: give one of them. "
                    "A coupling J(s, tau) that is 0 for tau > s is causal."
                )
        if not (self.noise.laplacian or self.has_independent_noise):
            raise ValueError(
                f"{self.noise!r} has strength 1/kappa, and kappa = inf means no noise; give a "
                "finite kappa, or leave noise out."
            )
        self.shape  # noqa: B018  (raises if the two do not broadcast)

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape: that of the drift's parameters broadcast with kappa; () if single."""
        shapes = {"drift": self.drift.shape, "kappa": self.kappa.shape or ()}
        if self.common is not None:
            shapes["common"] = self.common.shape
        return common_shape(
            "The drift's parameters and kappa",
            shapes,
            "For a table of both, give the drift's parameter a trailing axis, x[:, None], with "
            "kappa of shape (n,).",
        )

    def member(self, index: ArrayIndex) -> Self:
        """The model of one member of the ensemble; itself if it is a single model.

        An array of indices of members gives the ensemble of these.
        """
        shape = self.shape
        if not shape:
            return self
        try:
            numbers = np.arange(math.prod(shape)).reshape(shape)[index]
        except IndexError as error:
            raise IndexError(f"member: the models are an ensemble {shape}; {error}.") from None
        return self.members(shape, numbers)

    @property
    def noisy(self) -> bool:
        """Whether there is noise in some member, independent or common."""
        return self.has_independent_noise or self.common is not None

    @property
    def has_independent_noise(self) -> bool:
        """Whether some member has, at some time, noise that is independent for each token."""
        values = getattr(self.kappa, "values", self.kappa)  # the values of all layers
        return not isinstance(values, np.ndarray) or bool(np.isfinite(values).any())

    @property
    def steady_noise(self) -> bool:
        """Whether kappa does not depend on time."""
        return isinstance(self.kappa, np.ndarray)

    @property
    def smooth_noise(self) -> bool:
        """Whether kappa is a function of time that is not piecewise constant."""
        return not self.steady_noise and not self.kappa.piecewise_constant

    def members(self, shape: tuple[int, ...], numbers: ArrayIndex) -> Self:
        """Members of the model, broadcast to an ensemble shape, by their indices in C order.

        A single index gives a single model, an array (n,) an ensemble.
        """
        drift, common = self.drift.broadcast(shape), self.common
        parts: Parameters = {}
        if drift.shape:
            parts["drift"] = drift.member(numbers)
        if self.kappa.shape:
            parts["kappa"] = np.array(np.broadcast_to(self.kappa, shape).ravel()[numbers])
        if common is not None and common.shape:
            kappa = np.broadcast_to(common.kappa, shape).ravel()[numbers]
            parts["common"] = common.replace(kappa=kappa)
        members = copy.copy(self)
        members._set(**parts)
        return members

    def kappa_at(self, t: float) -> np.ndarray:
        """kappa at the time t."""
        return at(self.kappa, t)

    def breakpoints(self, start: float, end: float) -> list[float]:
        """Times strictly between `start` and `end` at which a part of the model jumps."""
        times = [t for t in self.normalisation.breakpoints() if start < t < end]
        times += self.drift.breakpoints(start, end).tolist()
        if self._pointwise is not None:
            times += self._pointwise.breakpoints(start, end).tolist()
        return times if self.steady_noise else times + self.kappa.breakpoints(start, end).tolist()

    def along(self, names: TangentNames) -> Self:
        """The model with `Dual` parameters; names[i] changes at the rate 1 along tangent i."""
        varied, rates = copy.copy(self), unit_rates(names)
        reaction = rates.pop("reaction", None)
        if reaction is not None:
            varied._set(reaction=Dual(self.reaction, reaction))
        varied._set(drift=self.drift.along(rates))
        return varied

    @property
    def zonal(self) -> ZonalDrift:
        """The drift, if the model has only a zonal drift and noise.

        Raises
        ------
        MeanfieldError
            For another model, with the reason.
        """
        drift = self.drift.as_zonal()
        if self.extras:
            raise MeanfieldError(
                "A model of a zonal drift and noise alone is needed here; this one has also "
                + ", ".join(self.extras)
                + ". Leave these out, or solve for Tokens or a Density."
            )
        return drift

    @property
    def parts(self) -> list[str]:
        """Names of the parts that the model has besides the drift."""
        optional = "common", "feedforward", *POSITIONAL_PARTS
        has = {name: getattr(self, name) is not None for name in optional} | {
            "noise": self.has_independent_noise,
            "normalisation": not self.normalisation.is_identity,
            "reaction": self.reaction != 0,
        }
        return [name for name, present in has.items() if present]

    @property
    def extras(self) -> list[str]:
        """Names of the parts other than drift and noise; "noise" if it moves no densities."""
        noise = () if self.noise.moves_densities else ("noise",)
        return [*noise, *(name for name in self.parts if name not in ("noise", "common"))]

    @property
    def by_place(self) -> list[str]:
        """Names of the parts that depend on positions of tokens, or on an index."""
        return [name for name in self.parts if name in POSITIONAL_PARTS]

    @property
    def parts_tokens(self) -> bool:
        """Whether tokens at the same point may separate, as their positions differ."""
        return self.drift.parts_tokens or self.causal is not None

    @property
    def at_each_place(self) -> Self:
        """The model without the parts of `by_place`."""
        if not self.by_place:
            return self
        return self.replace(causal=None, coupling=None, frequency=None)

    @property
    def keeps_axes(self) -> bool:
        """Whether the flow without noise keeps laws that are symmetric about an axis symmetric."""
        attention_only = self.feedforward is None and self.normalisation.is_identity
        return attention_only and self.drift.is_zonal

    @property
    def is_zonal(self) -> bool:
        """Whether the model has only a zonal drift and noise: see `zonal`."""
        return self.drift.is_zonal and not self.extras

    @property
    def _pointwise(self) -> Pointwise | None:
        """The feed-forward map, if it is a `Pointwise`, which may change with time; else None."""
        return self.feedforward if isinstance(self.feedforward, Pointwise) else None

    def feedforward_in(self, t: float) -> Function:
        """The feed-forward map at the time t; the model must have one."""
        assert self.feedforward is not None
        return self.feedforward if self._pointwise is None else self._pointwise.at(t)

    def feedforward_at(self, x: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Values of the feed-forward map at points (..., d) and the time t, checked."""
        return vectors_at("feedforward", self.feedforward_in(t), x)

    @cached_property
    def feedforward_harmonics(self) -> SampledHarmonics:
        """Harmonics of the feed-forward map, whatever the degree of a density is."""
        if self._pointwise is not None:
            return self._pointwise.harmonics  # members share the map
        return SampledHarmonics(lambda space: tangential(space, self.feedforward_on(space)))

    def feedforward_on(self, space: "Space") -> np.ndarray:
        """Values (N, d) of the map on the grid of a space; MeanfieldError if not finite."""
        values = self.feedforward_at(space.points)
        if where := first_not_finite(values, x=space.points):
            raise MeanfieldError(
                f"feedforward must return finite vectors at all points of the sphere; got {where}."
            )
        return values

    @property
    def why_on_tokens_only(self) -> str:
        """The reason why normalisation or feed-forward map move tokens only; empty if none."""
        if self.normalisation.norms:
            return f"{self.normalisation!r} acts on hidden states of tokens in R^d."
        return "" if self._pointwise is None else self._pointwise.why_no_density

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Numerical parameters by name: of the drift, kappa if constant, and `common_kappa`."""
        kappa = {"kappa": self.kappa} if self.steady_noise else {}
        common = {} if self.common is None else {"common_kappa": self.common.kappa}
        return {**self.drift.parameters, **kappa, **common}

    def card(self) -> tuple[str, Rows, Callable[[], OfLibrary]]:
        """The title, the parts and a figure: the velocity between two tokens by their angle."""
        parts = {name: getattr(self, name) for name in PARTS}
        rows = [(name, f"{part}") for name, part in parts.items() if part is not None]
        title = type(self.drift).__doc__ or type(self).__name__
        return title.strip().splitlines()[0], rows, lambda: FIGURES["pull"](self)

    def __repr__(self) -> str:
        name, _, arguments = super().__repr__().partition("drift=")
        return name + arguments

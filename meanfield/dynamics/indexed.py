"""Indexed densities: d mu_s/dt = (1/kappa) Lap mu_s - div(mu_s v_s), v_s by the slices s sees."""

from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..models.influence import Frequency, frequencies_at
from ..models.transformer import Transformer
from ..spaces import Space
from ..spaces.contract import Transport
from ..spaces.density import Density
from ..spaces.indexed import Indexed
from ..spaces.indexed_transport import IndexedTransport
from .density import DensityEvolution, DensityMotion
from .field_transport import EnsembleFields, FieldTransport, check_fields, transport_of
from .motion import Failure
from .observables import MOMENT_COUNT, declare

declare("order_by_index", r"$|m_1(s)|$")
declare("index_tail", "tail in the index", log_from=100.0)

UNIT_ROW_TOLERANCE = 1e-12  # of rows of the influence whose sum is 1


class IndexedEvolution(DensityEvolution):
    """The equation of indexed densities: that of each slice, coupled by what acts on it.

    Parameters
    ----------
    influence : ndarray, (P, P)
        See `Index.influence`.
    nodes : Drift
        The drift at each node of each member, or that of all.
    """

    def __init__(self, *given: Any, influence: np.ndarray, nodes: Any, **options: Any):
        self._influence, self._nodes = influence, nodes
        super().__init__(*given, **options)

    def _transport(self, model: Transformer, fields: EnsembleFields | None) -> Transport:
        product: Any = self.space
        space, count = product.slice_space, len(self._influence)
        model = model.replace(drift=self._nodes, kappa=np.inf)  # the noise is not in N
        members = self.members * count
        if model.is_zonal:
            drift, degrees = model.zonal, (space.degree, space.dimension)
            below = drift.normaliser(*degrees)
            tables = [drift.attraction(*degrees), below]
            tables = [None if table is None else np.atleast_2d(table) for table in tables]
            inner = space.transport(*tables, members, pairs=True)
            return IndexedTransport(inner, self._influence, self.members)
        fields = fields or EnsembleFields(model.drift, space, (members,))
        means = np.abs(self._influence.sum(axis=1) - 1).max() <= UNIT_ROW_TOLERANCE
        make: Any = transport_of if means else FieldTransport  # tables know masses of 1 alone
        inner = make(model, fields, members, self._inside, pairs=True)
        return IndexedTransport(inner, self._influence, self.members)


class IndexedMotion(DensityMotion, moves=Indexed):
    """Indexed densities: the slices of all nodes are one expansion, with steps in common.

    Coordinates are the coefficients of all slices; errors are those of the product space.

    Attributes
    ----------
    influence : ndarray, (P, P)
        See `Index.influence`.
    drift_at_nodes : Drift
        That of each node of each member, an ensemble (R P,); or that of all.
    betas : ndarray, (P,), or None
        Inverse temperatures of the nodes, where they have their own.
    """

    example = "Indexed densities such as circle.indexed(f)"
    by_place = frozenset({"causal", "coupling", "frequency"})

    def check(self) -> None:
        """Raise MeanfieldError, with the reason, for a model that no indexed density can follow."""
        model, product = self.model, self.like.space
        self.check_dimensions()
        without = {
            "common": model.common is not None,
            "noise": not model.noise.laplacian,
            "reaction": model.reaction != 0,
        }
        if refused := [name for name, present in without.items() if present]:
            raise MeanfieldError(
                f"Indexed densities move under a drift and isotropic noise; this model has "
                f"{', '.join(refused)} too: leave it out."
            )
        if any(getattr(part, "causal", False) for _, part in model.drift.terms):
            raise MeanfieldError(
                "Of Indexed densities the model is causal, Transformer(..., causal=True), and not "
                "the drift: give Attention without causal=."
            )
        if model.frequency is not None and self.like.dimension != 2:
            raise MeanfieldError("frequency turns points of the circle; use Circle(degree).")
        if not self.plain.is_zonal:
            check_fields(self.plain, product.slice_space)
        self.influence = product.index.influence(model)
        self._frequencies = frequencies_at(model.frequency, product.index.nodes)
        self.drift_at_nodes = self._drift_at_nodes()

    def _drift_at_nodes(self) -> Any:
        """The drift of each node of each member, an ensemble (R P,); or that of all."""
        drift, index, shape = self.model.drift, self.like.index, self.like.shape
        members, causal = int(np.prod(shape)), self.model.causal
        if drift.shape:
            flat = drift.broadcast(shape)
            drift = flat.member(np.repeat(np.arange(members), len(index)))
        self.betas = None if causal is None else causal.betas(index.nodes)
        if self.betas is None:
            return drift
        own: Any = self.model.drift
        if "beta" not in own.described:
            raise ValueError(
                f"causal has a beta for each position, and {own!r} has no parameter beta: use "
                "SA(beta), USA(beta) or a drift of your own that has one."
            )
        if np.ndim(own.beta):
            raise ValueError(
                "causal has a beta for each position, in place of that of the drift, which is an "
                f"ensemble {own.beta.shape}: give one of them."
            )
        return own.replace(beta=np.tile(self.betas, members))

    def turning(self, space: Any) -> np.ndarray | None:
        """-i k omega for each slice, in the coefficients int e^(-ik theta) dmu_s."""
        if self.model.frequency is None:
            return None
        return self._turned(self._frequencies, space)

    def turning_slopes(self, space: Any) -> dict[str, np.ndarray]:
        """Derivatives of `turning` by parameters of the frequencies; none of a function's."""
        frequency: Any = self.model.frequency
        if not isinstance(frequency, Frequency):
            return {}
        slopes = frequency.slopes(space.index.nodes)
        return {f"frequency.{name}": self._turned(s, space) for name, s in slopes.items()}

    @staticmethod
    def _turned(frequencies: np.ndarray, space: Any) -> np.ndarray:
        return -1j * np.outer(frequencies, space.slice_space.degrees).ravel()

    def fields(self, space: Any) -> EnsembleFields:
        if space not in self._fields:
            members = int(np.prod(self.like.shape)) * len(space.index)
            self._fields[space] = EnsembleFields(self.drift_at_nodes, space.slice_space, (members,))
        return self._fields[space]

    def evolution(self, space: Space, *, apart: bool = False) -> IndexedEvolution:
        model = self.plain
        fields = None if model.is_zonal else self.fields(space)
        options: Any = {"influence": self.influence, "nodes": self.drift_at_nodes}
        return IndexedEvolution(
            *(model, space, self.like.shape, self.inside, fields),
            turning=self.turning(space),
            **options,
        )

    @property
    def alike(self) -> bool:
        return False

    def measure(self, state: Any, t: float = 0.0) -> dict[str, Any]:
        """Observables of indexed densities.

        Returns
        -------
        dict of ndarray
            moment : (*ensemble, 8), of the marginal law of the points, as of a `Density`
            order_parameter : |moment 1| of it
            moment_by_index : (*ensemble, P, 8), of each slice
            order_by_index : (*ensemble, P), |moment 1| of each
            minimum : smallest value of all slices
            mass : total mass, sum of weights and masses of slices
            spectral_tail : largest coefficient in the last eighth of the degrees of any slice
            index_tail : last coefficients in the index, see `Indexed.index_tail`
        """
        space, marginal = state.slice_space, state.marginal()

        def moments(density: Density) -> np.ndarray:
            numbers = range(1, MOMENT_COUNT + 1)
            rows = [space.scalar_moment(density.coefficients, k) for k in numbers]
            return np.stack(rows, axis=-1).astype(complex)

        whole, each = moments(marginal), moments(state.slices)
        return {
            "moment": whole,
            "order_parameter": np.abs(whole[..., 0]),
            "moment_by_index": each,
            "order_by_index": np.abs(each[..., 0]),
            "minimum": state.minimum,
            "mass": state.mass @ state.weights,
            "spectral_tail": state.spectral_tail,
            "index_tail": state.index_tail,
        }

    def stats(self, state: Any, t: float) -> dict[str, Any]:
        """Whether the nodes resolve the last state, for `Solution.resolved`."""
        return {**super().stats(state, t), "resolved_in_index": state.resolved}

    def _dissipation_of(self, state: Any, t: float) -> np.ndarray:
        """Nan: causal influence has no free energy."""
        return np.full(state.shape, np.nan)

    def without_warning(self, state: Any, t: float, rtol: float) -> np.ndarray:
        """None: the index of each is looked at."""
        return np.zeros(int(np.prod(state.shape)), dtype=bool)

    def warning(self, state: Any, t: float, failure: Failure) -> str | None:
        """A warning if slices are negative, or vary in the index more than its nodes resolve."""
        if reason := super().warning(state, t, failure):
            return reason
        if state.resolved:
            return None
        tail = float(state.index_tail.max())
        return (
            f"The densities are not resolved in the index: their last coefficients are {tail:.1e}. "
            "Use more nodes, or breaks where the initial law or a window has an edge; near s = 0, "
            "where positions follow the first ones, Positions.graded()."
        )

    def _warning_of_quotients(self, state: Any, t: float, most: float) -> str | None:
        """A warning if Z * nu is too small to divide by, nu the measure that acts on a slice."""
        if self.plain.is_zonal and not self.plain.zonal.normalised:
            return None
        acting = np.einsum("ij,...jk->...ik", self.influence, state.each)
        acting = acting.reshape(-1, acting.shape[-1])
        mass = self.fields(state.space).bounded(self.inside(t), acting)
        if mass <= most:
            return None
        return (
            "Velocities are divided by Z * nu, which has to be larger than its rounding errors; it "
            f"is not at points that hold a mass of {mass:.2g}, which moves too slowly. Use weights "
            "that are less uneven, as with a smaller |beta|, or Tokens."
        )

"""Gaussians under affine velocities in R^d: a' = sum_h V_h m_h + M a + c, L' = sum_h V_h R_h + M L.

Attention moves a point x = a + L z with the velocity sum_h V_h E_h[y | x], which is affine in z,
see `gaussian_attention`; fields and feed-forward maps may add M x + c. So the law stays normal,
with the mean a and the covariance L L^T. Steps act on the root L, so that the covariance is always
positive semidefinite. With noise they act on the covariance, see `gaussian_noise`.
"""

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.random import Generator

from ..core.annotations import MovedState, Observations, TangentNames, UserValue, Values
from ..core.calls import checked_call
from ..core.checks import as_given, real_array, require
from ..core.dual import Array, Dual, value_of
from ..core.errors import MeanfieldError
from ..models import Attention, Drift
from ..models.attention import HeadMatrices
from ..models.drift import unit_rates
from ..models.pointwise import Pointwise
from ..models.transformer import Transformer
from ..states import Gaussian
from .gaussian_attention import (
    AffineAttention,
    AffineMap,
    affine,
    affine_map,
    energy,
    length,
    lengths,
)
from .linearised import Changes, TangentSpace, check_vanishes, checked_changes, state_along
from .motion import Failure, Motion, motion_for
from .observables import declare, rank_of

declare("largest_variance", "largest variance", log_from=100.0, noise=0.0)
declare("least_variance", "least variance", log_from=100.0, noise=0.0)
declare("covariance_rank", "rank of the covariance", steps=True)

# A covariance is singular if its least variance is not above this share of the largest.
SINGULAR_COVARIANCE = 1e-12
LARGEST_ROOT = np.sqrt(np.finfo(float).max)  # root of the largest finite covariance
COMMUTATOR_TOLERANCE = 1e-12  # norm of a commutator that is 0, relative to both norms
# Rounding error of an eigenvalue 0, relative to d times the largest one
EIGENVALUE_ROUNDING = np.finfo(float).eps
LEAST_INTEGRABILITY = 1e-3  # of `integrable`; below it failures are due to L2 weights
SOLVE_SAMPLE = "Solve for Tokens: gaussian.sample(n, rng=...)."


class GaussianMotion(Motion, moves=Gaussian):
    """Velocities of the mean a and the root L of the covariance of a normal law.

    Coordinates are an array (d, d + 1): the columns of L, in decreasing order of size, and a.

    Parameters
    ----------
    model : Transformer
        `Attention` with softmax, L2, Sinkhorn or linear weights, affine fields, or a sum of
        these; an affine feed-forward map. Under noise laws move by `CovarianceMotion`.
    state : Gaussian

    Raises
    ------
    MeanfieldError
        For a model under which the law does not stay normal, with the reason.
    ValueError
        For matrices of another dimension, and an ensemble.

    References
    ----------
    Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322, section 4.
    """

    example = "Gaussian(mean, cov)"
    implicit = True
    detects_blow_up = True
    changes_coordinates = True
    tangent_arrays = "mean", "cov"
    follows = frozenset({"feedforward"})

    def setup(self) -> None:
        """Constant terms of the velocity, and the lengths of the first columns and mean."""
        state, self._dimension = self.like, self.like.dimension
        self._split(self.model.drift)
        root = np.column_stack([state.root, state.mean])
        sizes = lengths(GaussianMotion.projected(self, root))
        smallest = sizes[:-1].min(initial=np.inf, where=sizes[:-1] > 0)
        self._first = np.append(np.full(self._dimension, smallest), sizes[-1])

    def _split(self, drift: Drift) -> None:
        """Store the drift as heads of attention and an affine map, evaluated once if constant."""
        self._drift, feedforward = drift, self.model.feedforward
        self._constant = self._constant_map = None
        if drift.constant:
            self._constant = self._heads(0.0)
        if drift.constant and getattr(feedforward, "constant", True):
            self._constant_map = self._map(0.0)

    def check(self) -> None:
        """Raise MeanfieldError or ValueError, with the reason, if no law stays normal."""
        self.prepared(self.model, self.like)  # refuses ensembles
        self.check_dimensions()
        for _, term in self.model.drift.terms:
            if not isinstance(term, Pointwise):
                self._check_attention(term)

    @staticmethod
    def _check_attention(drift: Any) -> None:
        """Raise MeanfieldError, with the reason, if attention does not keep laws normal."""
        weights = getattr(drift, "weights", None)
        if weights is None:
            raise MeanfieldError(
                f"A Gaussian lives in R^d and moves under Attention(Q, K, V, beta); "
                f"{type(drift).__name__} is not affine on it, or lives on the sphere. "
                f"{SOLVE_SAMPLE}"
            )
        if (formulas := affine(weights)) is None:
            raise MeanfieldError(
                f"{weights!r} weights give velocities that are not affine in x, so that a "
                "Gaussian does not stay one. Softmax(), L2(), Sinkhorn() and Linear() keep it; or "
                f"{SOLVE_SAMPLE[0].lower()}{SOLVE_SAMPLE[1:]}"
            )
        if formulas.iterates and weights != type(weights)():
            raise MeanfieldError(
                "A Gaussian takes Sinkhorn weights in closed form, without iterations: tolerance "
                f"and most_iterations have no effect. Use Sinkhorn(); got {as_given(weights)}."
            )
        if drift.causal:
            raise MeanfieldError(
                "Under causal attention tokens of different places have different laws, and what a "
                f"later one sees is a mixture of them, which is not Gaussian. {SOLVE_SAMPLE}"
            )

    def coordinates(self, state: Gaussian) -> np.ndarray:
        """The root, with columns in decreasing order of size, and the mean, (d, d + 1)."""
        return self.projected(self.packed(state))

    def state_of(self, y: np.ndarray) -> Gaussian:
        """The law with these coordinates."""
        return Gaussian.of_root(y[:, -1], y[:, :-1])

    def packed(self, state: Gaussian) -> np.ndarray:
        """The root and the mean of the state, unchanged, (d, d + 1)."""
        return np.column_stack([state.root, state.mean])

    def _with_root(self, y: Values) -> Values:
        """The root and the mean of these coordinates, (..., d, d + 1)."""
        return y

    def _shortest(self, sizes: np.ndarray) -> np.ndarray:
        """Least lengths (d + 1,) to which errors of columns and mean are relative."""
        return np.maximum(np.minimum(self._first, length(sizes)), np.finfo(float).tiny)

    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates, or of a stack of them, (..., d, d + 1)."""
        rates = np.zeros_like(y)
        with np.errstate(over="ignore", invalid="ignore"):  # inf and nan are detected in the result
            for head, formulas in self._heads(t):
                rates += head.V @ formulas.expected(y, head)
            if (added := self._map(t)) is not None:
                rates += added.M @ y
                rates[..., -1] += added.c
        return rates

    def _heads(self, t: float) -> list[tuple[HeadMatrices, AffineAttention]]:
        """The heads at t with their formulas; ValueError if they are for another dimension."""
        if self._constant is not None:
            return self._constant
        heads = []
        for factor, term in self._drift.terms:
            if isinstance(term, Attention):
                formulas: Any = affine(term.weights)
                on_space = term.on(self.inside(t), self._dimension)
                heads += [(head._replace(V=factor * head.V), formulas) for head in on_space]
        return heads

    def _map(self, t: float) -> AffineMap | None:
        """The sum at t of the fields of the drift and the feed-forward map; None without any.

        Raises MeanfieldError if one of them is not affine.
        """
        if self._constant_map is not None:
            return self._constant_map
        t, functions = self.inside(t), []
        for factor, term in self._drift.terms:
            if isinstance(term, Pointwise):
                functions.append((factor, term.at(t).values))
        if self.model.feedforward is not None:
            functions.append((1.0, lambda x: self.model.feedforward_at(x, t)))
        if not functions:
            return None
        maps = [(factor, affine_map(values, self._dimension)) for factor, values in functions]
        return AffineMap(sum(k * f.M for k, f in maps), sum(k * f.c for k, f in maps))

    # Derivatives ---------------------------------------------------------------------------

    def along(self, names: TangentNames, state: MovedState) -> Self:
        """Copy with changes of the drift along the parameters, at `state`."""
        copied = copy(self)
        copied.like = state
        copied._split(self._drift.along(unit_rates(names)))
        return copied

    def state_along(self, state: Gaussian, changes: Changes) -> MovedState:
        """State with changes of mean and root; those of cov are named covariance."""
        root_changes = [
            h and {"covariance" if n == "cov" else n: a for n, a in h.items()} for h in changes
        ]
        return state_along(state, root_changes, ("mean", "root", "covariance"))

    def direction(self, direction: UserValue, state: Gaussian) -> dict[str, Array]:
        """A checked change of an initial law, as arrays by the names "mean" and "root".

        `direction` is a mapping with changes of "mean" (d,), "cov" (d, d), or both; or another
        Gaussian, whose differences of mean and covariance are then the changes. A singular
        covariance, with a ratio of variances up to 1e-12, cannot change.
        """
        changes = self._given_changes(direction, state)
        if "cov" not in changes:
            return changes
        change, variances = changes.pop("cov"), state.variances
        if not change.any():
            return changes | {"root": np.zeros_like(change)}
        if not variances[-1] > SINGULAR_COVARIANCE * variances[0]:
            raise MeanfieldError(
                "Changes of a singular covariance have no root that changes smoothly. Change the "
                "mean alone, or start with a covariance of full rank."
            )
        # L L^T changes by it for dL = (1/2) dSigma L^-T
        return changes | {"root": np.linalg.solve(state.root, change / 2).T}

    @staticmethod
    def _given_changes(direction: UserValue, state: Gaussian) -> dict[str, Array]:
        """Changes by the names "mean" and "cov", of a mapping or towards another Gaussian.

        ValueError for changes of the covariance that are not symmetric.
        """
        if isinstance(direction, Gaussian):
            fits = direction.dimension == state.dimension
            require("tangents", direction, f"Gaussians in R^{state.dimension}", fits)
            direction = {
                "mean": direction.mean - state.mean,
                "cov": direction.cov - state.cov,
            }
        shapes = {"mean": state.mean.shape, "cov": state.cov.shape}
        changes = checked_changes(direction, shapes, ", another Gaussian to move towards")
        if "cov" in changes:
            expected, change = "changes of the covariance that are symmetric", changes["cov"]
            check_vanishes(expected, change - change.T, change, tolerance=SINGULAR_COVARIANCE)
        return changes

    def tangent_space(self, state: Gaussian) -> TangentSpace:
        """The dimension for a regular covariance, and a function rng -> random direction."""
        d = state.dimension

        def draw(rng: Generator) -> dict[str, Array]:
            change = rng.standard_normal((d, d))
            changes = {"mean": rng.standard_normal(d), "cov": change + change.T}
            return self.direction(changes, state)

        return d + d * (d + 1) // 2, draw

    def tangent_vectors(self, y: Dual) -> Array:
        law: Any = self.state_of(y)
        pairs = zip(law.mean.changes, law.cov.changes, strict=True)
        return np.array([np.append(mean, cov) for mean, cov in pairs])[None]

    def smooth_observables(self, state: MovedState, t: float) -> Observations:
        """Differentiable observables; nan for |a| at 0 and for a multiple extreme variance."""
        a, cov, sizes = state.mean, state.cov, np.linalg.svd(value_of(state.root), compute_uv=False)
        simple = np.where(np.diff(sizes) < -SINGULAR_COVARIANCE * sizes[0], 1.0, np.nan)
        values, moments = np.linalg.eigvalsh(cov), np.linalg.eigvalsh(cov + np.outer(a, a))
        return {
            "order_parameter": np.linalg.norm(a),
            "effective_rank": rank_of(moments / moments.sum()),
            "largest_variance": values[-1] * simple[:1].prod(),
            "least_variance": values[0] * simple[-1:].prod(),
            "spread": np.sqrt(np.trace(cov)),
        }

    # Steps ---------------------------------------------------------------------------------

    def relative_error(self, error: np.ndarray, y: np.ndarray) -> float:
        """The largest error of a column of the root, or of the mean, relative to its length.

        As L' = B L with one matrix B for all columns, errors of small columns are small too.
        Lengths below the least one at the start are replaced by it.
        """
        sizes = lengths(y)
        if not (length(sizes[:-1]) < LARGEST_ROOT and np.isfinite(sizes).all()):
            return np.inf
        return float((lengths(error) / np.maximum(sizes, self._shortest(sizes))).max())

    def projected(self, y: np.ndarray) -> np.ndarray:
        """Coordinates of this law with columns of the root in decreasing order of size.

        The new root is L O, with O from a pivoted QR decomposition of L^T. Its rounding errors are
        relative to each column, so that small variances keep their digits.
        """
        from scipy.linalg import qr

        if not np.isfinite(y).all():
            return y
        root, new = value_of(y)[:, :-1].T, y.copy()
        if isinstance(y, Dual):  # O may be held fixed: a rotation of the root changes no law
            turn, R, order = qr(root, pivoting=True, check_finite=False)
            new[:, :-1] = y[:, :-1] @ turn
        else:
            R, order = qr(root, mode="r", pivoting=True, check_finite=False)
        value_of(new)[order, :-1] = R.T
        return new

    def rate(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """The speed of the law in W2."""
        return metric_speed(y[:, :-1], velocity[:, :-1], velocity[:, -1])

    def growth(self, y: np.ndarray, velocity: np.ndarray, t: float) -> float:
        """The rate of growth; 0 if these weights can reach it without a blow-up."""
        growth = self._growth(y, velocity)
        largest_rate = sum(formulas.fastest(head) for head, formulas in self._heads(t))
        if (added := self._map(t)) is not None:
            largest_rate += 2 * float(np.linalg.norm(added.M, 2))
        return 0.0 if 0 < growth <= largest_rate else growth

    def _growth(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """The largest rate d/dt log of |a|^2 and of the variances along the axes of the root.

        These variances are the squares of the diagonal of the lower triangular T in L = P T: each
        is the variance of a coordinate conditional on the preceding ones. So a large mean, or a
        large constant variance, hides none that grows. Their rates are 2 (T^-1 P^T L')_ii.
        """
        from scipy.linalg import solve_triangular

        L, slopes, columns = y[:, :-1], velocity[:, :-1], np.arange(self._dimension)
        last = np.where(L != 0, columns, -1).max(axis=1)
        rows = np.where(last[:, None] == columns, np.abs(L), 0.0).argmax(axis=0)
        T = L[rows]
        T[columns, columns] += np.diag(T) == 0  # of columns that vanish and stay so
        rates = np.diag(solve_triangular(T, slopes[rows], lower=True, check_finite=False))
        sizes = lengths(y)
        rates = np.where((sizes > self._shortest(sizes))[:-1], rates, -np.inf)
        a, size = y[:, -1], sizes[-1]
        of_mean = (a / size) @ (velocity[:, -1] / size) if size > 0 else 0.0
        return 2 * float(max(rates.max(), of_mean))

    # In words ------------------------------------------------------------------------------

    def failure(self, status: str, end: Failure) -> str:
        """The reason why a run could not go on, and what to do."""
        if status == "blow-up":
            T, p = end.stats["blow_up_time"], end.stats["blow_up_power"]
            law = f"grows like (T - t)^-{p:.3g}" if p else "becomes infinite, like no power"
            return (
                f"The law blows up at T = {T:.10g}: int |x|^2 dmu {law}, and the solution ends. "
                "The states before it are as accurate as asked."
            )
        y = self._with_root(end.y)
        least = (formulas.integrable(y, head) for head, formulas in self._heads(end.t))
        if min(least, default=1.0) < LEAST_INTEGRABILITY:
            return (
                f"L2 weights with beta < 0 cease to have an integral over the law at t = {end.t:g}"
                ": 1 + 2 beta |K L|^2 falls to 0, and velocities grow without bound. The solution "
                "ends there."
            )
        if status == "cancelled":
            return (
                f"At t = {end.t:g} the covariance has grown so large that what decays does so "
                "faster than the law grows by about as many digits as there are: velocities cancel "
                "to rounding, and steps become ever shorter. End the run earlier; a larger rtol "
                "gets a little further."
            )
        if status == "not_finite":
            return (
                f"Numbers exceed 1e308 after t = {end.t:g}. With dt errors are not controlled, "
                "and a blow-up is passed unseen, so that states before may be wrong: leave dt out "
                "to have it located, or use a smaller dt."
            )
        return super().failure(status, end)

    def why_rejected(self, end: Failure) -> str:
        """The reason why no step was short enough."""
        return (
            "the velocity is not smooth there, or numbers exceed 1e308, as where the law grows "
            "exponentially. End the run earlier."
        )

    def why_stalled(self, end: Failure) -> str:
        """The reason why steps became too short to change the time."""
        return self.why_rejected(end)

    def why_not_finite(self, y: np.ndarray, t: float) -> str:
        """The reason why velocities at these coordinates are not finite."""
        return "numbers overflow, or L2 weights with beta < 0 have no integral over this Gaussian."

    # Measured ------------------------------------------------------------------------------

    def measure(self, state: Gaussian, t: float = 0.0) -> Observations:
        """Observables of a Gaussian.

        Returns
        -------
        dict of ndarray, each ()
            order_parameter : |a|, the length of the mean
            spread : (tr Sigma)^(1/2), the root mean square distance from the mean
            largest_variance, least_variance : the extreme eigenvalues, see `Gaussian.variances`
            covariance_rank : how many of them exceed 1e-6 of the largest
            effective_rank : exp of the entropy of the eigenvalues of Sigma + a a^T, as of tokens
            speed : of the law in W2, 0 where only its points move; see `metric_speed`. It is
                (int |v|^2 dmu)^(1/2) where v is a gradient, and less elsewhere
            interaction_energy : E, with dE/dt = speed^2, where the motion is a gradient flow in
                W2 but for noise, see `gaussian_attention`; else nan
        """
        variances, y = state.variances, self.coordinates(state)
        sizes = np.linalg.svd(np.column_stack([state.root, state.mean]), compute_uv=False)
        return {
            "order_parameter": length(state.mean),
            "speed": self.rate(y, self.velocity(y, t)),
            "interaction_energy": energy(self._drift, state, t),
            "effective_rank": rank_of((sizes / (length(sizes) or np.nan)) ** 2),
            "largest_variance": variances[0],
            "least_variance": variances[-1],
            "covariance_rank": float(state.rank()),
            "spread": length(state.root),
        }


def metric_speed(root: np.ndarray, root_rate: np.ndarray, mean_rate: np.ndarray) -> float:
    """Speed of a normal law in the Bures-Wasserstein distance.

        (|a'|^2 + sum_ij (u_i S' u_j)^2 / (2 (s_i^2 + s_j^2)))^(1/2), S = L L^T, L = U s W^T

    It is the norm (int |v|^2 dmu)^(1/2) of the smallest velocity field with these rates of mean and
    covariance, which is a' plus a symmetric matrix times x - a. The rest of a velocity leaves the
    law unchanged.

    u_i S' u_j = b_ij s_j + s_i b_ji with B = U^T L' W; nan if the rates are not finite. Terms with
    s_i = s_j = 0 are 0, since L' = M L.
    """
    if not (np.isfinite(root).all() and np.isfinite(root_rate).all()):
        return np.nan
    U, s, Wt = np.linalg.svd(root)
    B, sizes = U.T @ root_rate @ Wt.T, np.hypot.outer(s, s)
    shares = s / np.where(sizes > 0, sizes, 1.0)  # of column j in the pair i, j
    rates = B * shares
    with np.errstate(over="ignore"):
        return length(np.append(np.sqrt(0.5) * (rates + rates.T), mean_rate))


class ClosedCovariance:
    """Sigma(t) = L (1 - t L^T M L)^(-1) L^T, L L^T = Sigma_0, M = sum_h V_h A_h + (V_h A_h)^T.

    It is (Sigma_0^(-1) - t M)^(-1) where the covariance is regular. A_h = beta K_h^T Q_h, and with
    output projections O_h V_h stands for V_h.

    Parameters
    ----------
    model : Transformer
        `Attention` with softmax weights and constant parameters, without noise.
    state : Gaussian
        At t = 0; its mean has no influence on the covariance.

    Attributes
    ----------
    blow_up_time : float
        1 / the largest eigenvalue of L^T M L; inf unless it is positive, see the notes.

    Raises
    ------
    MeanfieldError
        If a V_h does not commute with M and with the covariance, if a parameter changes with time,
        or if L^T M L exceeds 1e308.
    TypeError
        For anything but a model and a Gaussian.

    Notes
    -----
    An eigenvalue of L^T M L has an error of eps = 2e-16 times the largest modulus m, and counts as
    0 below d eps m. So a blow-up later than 1 / (d eps m) is taken for a limit, and the relative
    error of a blow-up time T is eps m T.

    References
    ----------
    Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322, section 4.
    """

    @checked_call()
    def __init__(self, model: Transformer, state: Gaussian):
        """Diagonalise L^T M L, with M = sum_heads (A + A^T), A = beta V K^T Q, and cov = L L^T."""
        motion_for(state, model)(model, state)  # raises if the law does not stay normal
        drift: Any = model.drift
        alone = isinstance(drift, Attention) and not model.parts
        if not (alone and drift.constant and affine(drift.weights).closed):  # type: ignore[union-attr]
            raise MeanfieldError(
                "The covariance is known in closed form under softmax weights with constant "
                f"parameters and nothing else; got {as_given(model)}. Use solve."
            )
        root, heads, drive = state.root, drift.on(0.0, state.dimension), np.zeros(())
        with np.errstate(over="ignore", invalid="ignore"):
            for V, Q, K, beta in heads:
                pull = V @ (beta * K.T @ Q)
                drive = drive + (pull + pull.T)
            rates = root.T @ drive @ root
        if not np.isfinite(rates).all():
            raise MeanfieldError(
                "The closed form needs L^T M L below 1e308, for it blows up at 1 / its largest "
                f"eigenvalue; got more, from {drift!r} and a covariance of the trace "
                f"{np.trace(state.cov):.3g}. Divide beta by some c: times are then c times as long."
            )
        for head in heads:
            _check_commute(head.V, state.cov, "the covariance")
            _check_commute(head.V, drive, "M")
        eigenvalues, vectors = np.linalg.eigh(rates)
        negligible = state.dimension * EIGENVALUE_ROUNDING * np.abs(eigenvalues).max()
        self._values = np.where(np.abs(eigenvalues) > negligible, eigenvalues, 0.0)
        self._columns = root @ vectors
        fastest = self._values.max()
        self.blow_up_time = 1 / float(fastest) if fastest > 0 else np.inf

    def at(self, t: Values) -> np.ndarray:
        """Sigma(t), (d, d), or (..., d, d) of an array of times.

        Raises TypeError if t is not numeric, ValueError unless 0 <= t < `blow_up_time`.
        """
        times = real_array("t", t)
        before_blow_up = ((times >= 0) & (times < self.blow_up_time)).all()
        require("t", t, f">= 0 and < {self.blow_up_time:.10g}", before_blow_up)
        remaining = 1 - times[..., None, None] * self._values
        return self._columns / remaining @ self._columns.T

    @property
    def limit(self) -> np.ndarray:
        """Sigma(t) for t to infinity, (d, d), of the rank d - rank M where Sigma_0 is regular.

        Raises MeanfieldError where the covariance blows up.
        """
        if self.blow_up_time < np.inf:
            raise MeanfieldError(
                f"There is no limit: the covariance blows up at t = {self.blow_up_time:.10g}."
            )
        stays = self._columns[:, self._values == 0]
        return stays @ stays.T


def _check_commute(V: np.ndarray, other: np.ndarray, name: str) -> None:
    """Raise MeanfieldError unless V commutes with the matrix `other`."""
    unit, other = V / (length(V) or 1.0), other / (length(other) or 1.0)  # squares may overflow
    defect = np.linalg.norm(unit @ other - other @ unit)
    if defect > COMMUTATOR_TOLERANCE:
        raise MeanfieldError(
            f"The closed form needs V that commutes with {name}; their commutator has the norm "
            f"{defect:.2g}, relative to theirs. Use solve."
        )

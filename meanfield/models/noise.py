"""Noise: diffusions of tokens, by steps of weak order 2 that keep them on the sphere.

A `Noise` moves tokens independently of each other; `common_noise` moves all of them together.
Compiled code is imported at the first step, so that models are created quickly.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..core.annotations import Function
from ..core.cached import cached_property
from ..core.checks import answer, require, returned
from ..core.errors import MeanfieldError, UnresolvedWarning
from ..core.forms import Array
from ..core.kinds import Kind
from ..spaces.validity import SampledHarmonics
from ..states.points import along_circles, on_circles, unit
from ..steppers.splitting import kutta_step
from .common_noise import CommonMatrix as CommonMatrix
from .common_noise import CommonNoise as CommonNoise
from .common_noise import CommonRotations as CommonRotations
from .common_noise import CommonTranslations as CommonTranslations
from .common_noise import bounded, check_length

if TYPE_CHECKING:
    from ..spaces import Space
    from .generators import Generator

SINGULAR_NOISE = 1e-10  # least ratio of variances, or of values of a scale, for densities
FINEST_SCALE = 256  # degree up to which scales are sampled at more than that of a space
SCALE_TAIL = 1e-8  # last coefficients of a scale, relative to the largest
SCALE_DIFFERENCE = 6e-6  # of central differences: (rounding)^(1/3), where their two errors balance


class Noise(Kind, family=True):
    """A diffusion on the unit sphere of R^d that moves tokens in the absence of a drift.

    Its generator is L/kappa, where L is the Laplacian for isotropic noise. A step of length dt
    depends on s = dt/kappa alone, and one step differs from e^(s L) by O(s^3), tested with any
    smooth function of the tokens: noise for dt/2, the flow of a drift for dt and noise for dt/2
    make a scheme of weak order 2.

    A step is drawn in two parts. `increments` holds all that is random: standard normal numbers
    that depend neither on the tokens, nor on s, nor on the drift. `moved` is a function of the
    tokens and of them. Two systems that are moved by the same increments are therefore coupled
    synchronously, and the same generator gives the same Brownian paths to any drift and kappa.

    Attributes
    ----------
    known_rate : bool
        Whether inner products change at most at the rate (d - 1)/kappa: steps are chosen by it.
    on_sphere_only : bool
        Whether it is defined on the sphere alone, not in R^d.
    moves_densities : bool
        Whether densities can have it: the law of a token is then moved by d mu/dt = L* mu/kappa.
    turns_angles : bool
        Whether it is defined on the torus too, by the method `turned`.
    laplacian : bool
        Whether L is the Laplacian, and the noise of tokens independent: only then there are free
        energies, and the uniform density stays as it is.
    dimension : int or None
        The d of the tokens; None where the noise leaves it open.
    harmonics : SampledHarmonics or None
        Harmonics of the functions of points in L*; None where these are polynomials.
    """

    known_rate: ClassVar[bool] = False
    on_sphere_only: ClassVar[bool] = True
    moves_densities: ClassVar[bool] = False
    turns_angles: ClassVar[bool] = False
    laplacian: ClassVar[bool] = False
    dimension: ClassVar[int | None] = None
    harmonics: ClassVar[SampledHarmonics | None] = None
    _internal: ClassVar[str] = (
        "check_densities covariance_in_space generator_on harmonics known_rate least_degree "
        "moved_in_space on_densities turned"
    )

    @abstractmethod
    def increments_shape(self, replicas: int, n: int, d: int) -> tuple[int, ...]:
        """Shape of the increments of one step; its first axis is that of the replicas."""

    @abstractmethod
    def move(self, x: np.ndarray, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        """A new array of the tokens after a step of strengths s (R,), all > 0."""

    # Densities -----------------------------------------------------------------------------

    def generator(self, space: "Space") -> np.ndarray | None:
        """The matrix of L* on the harmonics of a space; None where L is the Laplacian.

        Returns
        -------
        array, shape (2 modes, 2 modes)
            It acts on coefficients.view(float), alternating real and imaginary parts. Its first row
            is 0, so that the mass is constant. Rows and columns of imaginary parts that are always
            0 are 0 too.

        Raises
        ------
        MeanfieldError
            If densities on this space cannot have the noise.

        Warns
        -----
        UnresolvedWarning
            If the space has too few harmonics for a scale.
        """
        operator = self.on_densities(space)
        if operator is None:
            return None
        if not self.resolved(space, SCALE_TAIL):
            warnings.warn(
                f"The scale of the noise, or its reciprocal, is not resolved by {space!r}: "
                f"expected coefficients below {SCALE_TAIL:.0e} of the largest in the last eighth "
                "of the degrees. Use a higher degree.",
                UnresolvedWarning,
                stacklevel=2,
            )
        return operator.matrix

    def on_densities(self, space: "Space") -> "Generator | None":
        """The generator L* on a space, None for the Laplacian; the last one is cached."""
        if self.laplacian:
            return None
        self.check_densities(space)
        operator = self._generators.get(space)
        if operator is None:
            self._generators.clear()
            operator = self._generators[space] = self.generator_on(space)
        return operator

    def check_densities(self, space: "Space") -> None:
        """Raise MeanfieldError, with the reason, if densities on a space cannot have this noise."""
        if self.laplacian:
            return
        name = type(self).__name__
        if not self.moves_densities:
            raise MeanfieldError(
                f"Densities have no {name}: their equation is not that of one token. Solve for "
                "Tokens."
            )
        if not (space.spherical or self.turns_angles):
            raise MeanfieldError(f"{name} is known on spheres; on {space!r} take Isotropic().")
        if space.axisymmetric:
            raise MeanfieldError(
                f"{name} does not keep densities symmetric about an axis, which {space!r} holds "
                "alone; use a Circle or a Sphere, or solve for Tokens."
            )

    def resolved(self, space: "Space", tolerance: float) -> bool:
        """Whether harmonics of a space resolve the coefficients of L; True for polynomials.

        Otherwise the last eighth of their own expansion has to be below the tolerance, relative to
        the largest coefficient.
        """
        return True

    def least_degree(self, space: "Space", tolerance: float, highest: int) -> int:
        """A degree <= `highest` whose harmonics resolve L; MeanfieldError if there is none."""
        for degree in (*(2**k for k in range(highest.bit_length() - 1)), highest):
            if self.resolved(space.with_degree(degree), tolerance):
                return degree
        raise MeanfieldError(
            f"The scale of the noise, or its reciprocal, is not resolved by max_degree = "
            f"{highest}: the last coefficients are more than {tolerance:.1g} of the largest. Use a "
            "smoother scale, a larger rtol or, where memory allows, a larger max_degree."
        )

    @cached_property
    def _generators(self) -> "dict[Space, Generator]":
        return {}

    def generator_on(self, space: "Space") -> "Generator":
        """The generator L* on a space, computed anew; for noises that can move densities."""
        raise MeanfieldError(
            f"{type(self).__name__} needs a method generator_on(space) for densities, and has none."
        )

    # In R^d --------------------------------------------------------------------------------

    def covariance_in_space(self, d: int) -> np.ndarray:
        """The covariance N (d, d) of dX_i = sqrt(2/kappa) N^(1/2) dB_i in R^d."""
        raise MeanfieldError(f"{self!r} is defined on the sphere; in R^d use Isotropic().")

    def moved_in_space(self, x: np.ndarray, s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Tokens x (R, n, d) of R^d after noise of strengths s = dt/kappa (R,), in law exactly."""
        raise MeanfieldError(f"{self!r} is defined on the sphere; in R^d use Isotropic().")

    # On the torus --------------------------------------------------------------------------

    def turned(self, angles: np.ndarray, s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Angles (R, n, m) of points of a torus after noise of strengths s = dt/kappa (R,)."""
        raise MeanfieldError(f"{self!r} is not known on the torus: take Isotropic(), the default.")

    # Tokens --------------------------------------------------------------------------------

    def increments(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw the random numbers of one step for tokens of `shape` (R, n, d).

        Independent standard normal numbers, drawn as one array of shape `increments_shape`,
        also for replicas without noise: a replica's paths do not depend on the kappa
        of the others.
        """
        self._check_shape(shape)
        return rng.standard_normal(self.increments_shape(*shape))

    def moved(self, x: np.ndarray, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        """The tokens after noise of strength s = dt/kappa.

        Parameters
        ----------
        x : array, shape (R, n, d)
            Unit vectors: n tokens in each of R independent replicas. They are not changed.
        s : array, shape (R,)
            Strength for each replica, finite and >= 0. A replica with s = 0 (kappa = inf) is
            returned as it came, bit by bit.
        increments : array
            What `increments` drew for this shape.

        Returns
        -------
        array, shape (R, n, d)
            New; unit vectors to rounding.

        Raises
        ------
        ValueError
            If the shapes do not fit, or s is negative or not finite.
        """
        x, s = np.asarray(x, dtype=float), np.asarray(s, dtype=float)
        self._check(x, s, increments)
        noisy = s > 0
        if noisy.all():
            return self.move(x, s, increments)
        result = x.copy()
        if noisy.any():
            result[noisy] = self.move(x[noisy], s[noisy], increments[noisy])
        return result

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        subject, fits = f"The tokens of {type(self).__name__}", len(shape) == 3 and shape[2] >= 2
        advice = "One replica is x[None]."
        require(subject, shape, "of shape (R, n, d) with d >= 2", fits, advice=advice)

    def _check(self, x: np.ndarray, s: np.ndarray, increments: np.ndarray) -> None:
        """Raise ValueError unless strengths s (R,) and increments fit tokens x (R, n, d)."""
        name = type(self).__name__
        self._check_shape(x.shape)
        wanted = f"one finite s = dt/kappa >= 0 for each of {len(x)} replicas"
        fits = s.shape == x.shape[:1] and (np.isfinite(s) & (s >= 0)).all()
        require(f"The strengths of {name}", s, wanted, fits, advice="No noise is s = 0.")
        shape, expected = np.shape(increments), self.increments_shape(*x.shape)
        advice = "Draw them with increments(x.shape, rng)."
        require(f"Increments of {name}", shape, f"of shape {expected}", shape == expected,
                advice=advice)  # fmt: skip


class Isotropic(Noise):
    """dX_i = sqrt(2/kappa) dW_i, W_i independent Brownian motions on the sphere: L = Lap.

    A token moves along a great circle by an angle rho in a uniform direction. On the circle the
    angle is normal of variance 2 s, exactly. For d >= 3, with a standard normal G in R^d,

        xi = P_x G,  q = |xi|^2,  w = a q (1 + b q) = tan^2(rho/2),
        x' = ((1 - w) x + 2 sqrt(a (1 + b q)) xi)/(1 + w) = cos(rho) x + sin(rho) xi/|xi|

    where (a, b) is such that harmonics of degree 1 and 2 decay by exactly e^(-l (l + d - 2) s),
    for every s > 0: without a drift, the mean and the covariance of a token have no error of the
    time step. The other degrees have a local error of O(s^5).

    Notes
    -----
    Increments: (R, n, d) normals, or (R, n, 1) on the circle, the increments of the angles,
    where a synchronous coupling turns two systems by the same angles.

    Cost O(R n d), less than that of drawing the increments; one millisecond for each new s.

    References
    ----------
    Mijatovic, Mramor and Uribe Bravo, Statist. Probab. Lett. 165 (2020): the law of rho.
    """

    known_rate = True
    on_sphere_only = False
    moves_densities = laplacian = turns_angles = True

    def covariance_in_space(self, d: int) -> np.ndarray:
        return np.eye(d)

    def moved_in_space(self, x: np.ndarray, s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return x + np.sqrt(2 * s)[:, None, None] * rng.standard_normal(x.shape)

    def turned(self, angles: np.ndarray, s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.moved_in_space(angles, s, rng)

    def increments_shape(self, replicas: int, n: int, d: int) -> tuple[int, ...]:
        return (replicas, n, d if d > 2 else 1)

    def move(self, x: np.ndarray, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        """Turns by sqrt(2 s) dB on the circle, else `noise_steps.step` with stretches for s."""
        from .noise_steps import step, stretch_of, turn

        result = np.empty_like(x)
        if x.shape[2] == 2:
            turn(x, np.sqrt(2 * s), increments, result)
            return result
        stretches = [stretch_of(x.shape[2], float(strength)) for strength in s]
        a, b = np.array(stretches).T.copy()  # rows, so that any number of replicas is one signature
        step(x, a, b, increments, result)
        return result


class Anisotropic(Noise):
    """dX_i = sqrt(2/kappa) P_X Sigma^(1/2) o dB_i, independent for each token, Stratonovich.

    The generator is L/kappa, L = sum_k V_k^2 with V_k(x) = sqrt(lambda_k) P_x u_k, where
    (lambda_k, u_k) are the eigenvalues and eigenvectors of Sigma. For Sigma = I it is the
    Laplacian: isotropic noise.

    One step is the composition of the flows of V_1, ..., V_d for random times sqrt(2 s) xi_k,
    xi_k standard normal, in this order or the reverse one with probability 1/2, for each token
    (Ninomiya and Victoir): weak order 2. The flow of P_x u for a time tau is explicit,

        <x', u> = (<x, u> + tanh tau)/(1 + <x, u> tanh tau),

    the other components being divided by cosh tau + <x, u> sinh tau. It is a Lorentz boost of
    the light-like vector (x, 1), so that the d flows together cost O(d), with one division.

    Densities on the circle and on S^2 are moved by

        d mu/dt = (1/kappa) (div(P Sigma P grad mu) - (d - 1) div(mu P Sigma x)),  P = P_x,

    reversible with respect to <x, Sigma^-1 x>^(-(d - 1)/2), the stationary density without a
    drift.

    In R^d it is dX_i = sqrt(2/kappa) Sigma^(1/2) dB_i.

    Parameters
    ----------
    sigma : array, shape (d, d)
        Covariance Sigma, symmetric (to 1e-12 of its largest entry) and positive semidefinite
        (likewise). It may be singular, or 0, for tokens; for densities it is positive.

    Raises
    ------
    TypeError
        If sigma is not real.
    ValueError
        If it is not a covariance matrix; on a step, if tokens have another dimension.
    MeanfieldError
        On a step with s tr(Sigma) > 100; for densities if sigma is singular.

    Notes
    -----
    Increments: (R, n, d + 1) normals, xi_1, ..., xi_d and one whose sign is the order. Cost
    O(R n d^2), of the change to the eigenbasis. Of densities see `generators`.

    References
    ----------
    Ninomiya and Victoir, Appl. Math. Finance 15 (2008), 107-121.
    """

    on_sphere_only = False
    moves_densities = True

    sigma: Array

    def validate(self) -> None:
        sigma, shape = self.sigma, self.sigma.shape
        square = len(shape) == 2 and shape[0] == shape[1] > 1
        advice = "Independent components are np.diag(variances)."
        require("sigma.shape", shape, "(d, d) with d >= 2", square, advice=advice)
        rounding, advice = 1e-12 * np.abs(sigma).max(), "The law of B dW is that of B @ B.T."
        asymmetry = float(np.abs(sigma - sigma.T).max())
        require("The largest entry of sigma - sigma.T", asymmetry, "0: a covariance is symmetric",
                asymmetry <= rounding, advice=advice)  # fmt: skip
        least, wanted = float(np.linalg.eigvalsh(sigma)[0]), ">= 0: sigma is positive semidefinite"
        require("The least eigenvalue of sigma", least, wanted, least >= -rounding, advice=advice)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return len(self.sigma)

    @cached_property
    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard deviations (d,) along the principal axes, and the axes as columns, (d, d)."""
        variances, axes = np.linalg.eigh(self.sigma)
        return np.sqrt(np.maximum(variances, 0)), axes  # -1e-17 is an eigenvalue 0

    def covariance_in_space(self, d: int) -> np.ndarray:
        return self.sigma

    def moved_in_space(self, x: np.ndarray, s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        deviations, axes = self._eigen
        normal = rng.standard_normal(x.shape) @ (deviations[:, None] * axes.T)
        return x + np.sqrt(2 * s)[:, None, None] * normal

    def check_densities(self, space: "Space") -> None:
        super().check_densities(space)
        if space.dimension != self.dimension:
            raise ValueError(
                f"{self!r} is for dimension {self.dimension}; got {space!r}, of dimension "
                f"{space.dimension}."
            )
        variances = self._eigen[0] ** 2
        if not variances[0] > SINGULAR_NOISE * variances[-1]:
            raise MeanfieldError(
                "Densities need a positive sigma: where it is singular, noise is confined to fewer "
                "directions in some places, and densities need not stay smooth; got eigenvalues "
                f"from {variances[0]:.3g} to {variances[-1]:.3g}. Add a small multiple of the "
                "identity, or solve for Tokens."
            )

    def generator_on(self, space: "Space") -> "Generator":
        from .generators import anisotropic

        return anisotropic(space, self.sigma)

    def increments_shape(self, replicas: int, n: int, d: int) -> tuple[int, ...]:
        return (replicas, n, d + 1)

    def move(self, x: np.ndarray, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        """Boosts by increments sqrt(2 s) sigma^(1/2) dB, in the eigenvectors of sigma."""
        from .noise_steps import boost

        d = self.dimension
        deviations, axes = self._eigen
        if x.shape[2] != d:
            raise ValueError(
                f"Anisotropic has a sigma of shape {(d, d)}, and the tokens have d = {x.shape[2]}."
            )
        longest = s.max() * (deviations**2).sum()
        check_length("with s tr(sigma), s = dt/kappa, of", longest)
        result = (x.reshape(-1, d) @ axes).reshape(x.shape)
        boost(result, np.sqrt(2 * s), deviations, increments)
        return (result.reshape(-1, d) @ axes.T).reshape(x.shape)


# Multiplicative noise ----------------------------------------------------------------------------


class _Multiplicative(Noise):
    """Noise whose strength is a function of the point.

    Parameters
    ----------
    scale : callable
        Takes unit vectors (..., d), returns finite numbers (...) >= 0.

    Attributes
    ----------
    power : int
        The stationary density is proportional to scale^-power.
    """

    moves_densities = turns_angles = True
    power: ClassVar[int]

    scale: Function

    def check_densities(self, space: "Space") -> None:
        super().check_densities(space)
        values = self.values(space.points)
        if not values.min() > SINGULAR_NOISE * values.max():
            raise MeanfieldError(
                f"Densities need a scale > 0: where it is 0, mass gathers without end; got values "
                f"from {values.min():.3g} to {values.max():.3g}. Add a small constant to it, or "
                "solve for Tokens."
            )

    def resolved(self, space: "Space", tolerance: float) -> bool:
        fine = space.with_degree(max(space.degree, min(4 * space.degree, FINEST_SCALE)))
        sizes = self.harmonics.on(fine)
        return sizes.tail(space.degree, tolerance) <= tolerance

    @cached_property
    def harmonics(self) -> SampledHarmonics:  # type: ignore[override]
        """Harmonics of the powers of the scale in L*, relative to the largest of each."""

        def powers(fine: "Space") -> np.ndarray:
            values = self.values(fine.points)
            values = values / values.max()
            series = [values**power for power in (-self.power, 2 - self.power)]
            return np.array([one / np.abs(fine.to_coefficients(one)).max() for one in series])

        return SampledHarmonics(powers)

    def generator_on(self, space: "Space") -> "Generator":
        from .generators import multiplicative

        return multiplicative(space, self.values(space.points), self.power)

    def increments_shape(self, replicas: int, n: int, d: int) -> tuple[int, ...]:
        return (replicas, n, d + 1)

    def move(self, x: np.ndarray, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        """The tokens carried by the flows of the fields V_k(x) = scale(x) P_x e_k."""
        return self._composed(x, s, increments, _towards, self.values)

    def turned(self, angles: np.ndarray, s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Angles carried by the flows of scale(x) in one angle after another."""
        increments = rng.standard_normal((*angles.shape[:2], angles.shape[2] + 1))
        return self._composed(angles, s, increments, _onwards, self._values_at)

    def _composed(
        self, x: np.ndarray, s: np.ndarray, increments: np.ndarray,
        along: Callable[..., np.ndarray], values: Callable[[np.ndarray], np.ndarray],
    ) -> np.ndarray:  # fmt: skip
        """Points after the flows of all fields, in either order.

        `along(x, axis, tau)` is the flow of the field of one axis with the scale 1, and `values(x)`
        is the scale.
        """
        d = x.shape[2]
        times = np.sqrt(2 * s)[:, None, None] * increments
        reverse = increments[..., d:] > 0
        for step in range(d):
            axis = np.where(reverse, d - 1 - step, step)
            time = np.take_along_axis(times, axis, axis=2)[..., 0]
            x = along(x, axis, _travel(x, axis, time, along, values))
        return x

    def _values_at(self, angles: np.ndarray) -> np.ndarray:
        """The values of the scale at angles (..., m)."""
        return self.values(on_circles(angles))

    def values(self, x: np.ndarray) -> np.ndarray:
        """The checked values scale(x), (...), at unit vectors (..., d)."""
        shape = x.shape[:-1]
        scale = answer("scale", self.scale, f"return numbers of shape {shape}", x)
        values = returned("scale, a function of unit vectors,", scale, shape, 0.0)
        return np.asarray(values, dtype=float)


class MultiplicativeStratonovich(_Multiplicative):
    """dX_i = sqrt(2/kappa) scale(X_i) P_X o dB_i, B_i independent Brownian motions of R^d.

    The generator is L/kappa with the fields V_k(x) = scale(x) P_x e_k,

        L f = sum_k V_k^2 f = scale^2 Lap f + scale <grad scale, grad f>

    and without a drift the stationary density is proportional to 1/scale: densities are moved by
    d mu/dt = (1/kappa) div(scale grad(scale mu)). One step of tokens is the
    composition of the flows of V_1, ..., V_d for random times sqrt(2 s) xi_k, xi_k standard
    normal, in this order or the reverse one with probability 1/2 for each token (Ninomiya and
    Victoir). A flow follows the great circle from x to e_k: only the time tau that P_x e_k needs
    for the way is unknown, and tau' = scale(x(tau)) is solved by the classical Runge-Kutta
    method. Its error, odd in xi_k to leading order, has the mean O(s^3): weak order 2. On the
    torus the fields are scale(x) times the derivatives by the angles.

    Parameters
    ----------
    scale : callable
        Takes points (..., d), unit vectors or m pairs (cos, sin), returns finite numbers (...) >=
        0. Four times differentiable, or the order is lower. It must not write into its argument.

    Raises
    ------
    TypeError
        If scale is not callable, or its values are not real.
    ValueError
        On a step, if the values have another shape, are negative or not finite.
    MeanfieldError
        On a step that moves tokens by more than 100 radians.

    Notes
    -----
    Increments: (R, n, d + 1) normals, xi_1, ..., xi_d and one whose sign is the order. A step
    takes 4 d evaluations of scale for all tokens.

    References
    ----------
    Ninomiya and Victoir, Appl. Math. Finance 15 (2008), 107-121.
    """

    power = 1


class MultiplicativeIto(_Multiplicative):
    """dX_i = sqrt(2/kappa) scale(X_i) dW_i in the sense of Ito: L f = scale^2 Lap f.

    Densities are moved by d mu/dt = (1/kappa) Lap(scale^2 mu), and without a drift the stationary
    density is proportional to 1/scale^2. For tokens it is Stratonovich's
    equation with the drift -(1/kappa) scale grad scale, whose flow, by the midpoint rule, takes
    half of the time before a step of `MultiplicativeStratonovich` and half after: weak order 2.

    Parameters
    ----------
    scale : callable
        Takes unit vectors (..., d), returns finite numbers (...) >= 0. It must not write into
        its argument.
    gradient : callable, optional
        The gradient of any extension of scale to R^d: takes unit vectors (..., d), returns
        (..., d), of which the tangential part is used. By default central differences of
        scale((x + h e_k)/|x + h e_k|), 2 d evaluations, h = 6e-6: their error is
        h^2 |third derivative|/6 plus 2e-11 |scale|, of rounding.

    Raises
    ------
    TypeError
        If scale or gradient is not callable, or values are not real.
    ValueError
        On a step, if values have another shape or are not finite, or the scale is negative.
    MeanfieldError
        On a step that moves tokens by more than 100 radians.

    Notes
    -----
    Increments as for `MultiplicativeStratonovich`. A step takes 4 d + 4 evaluations of scale and
    4 of the gradient, for all tokens.
    """

    power = 2

    gradient: Function | None = None

    def move(self, x: np.ndarray, s: np.ndarray, increments: np.ndarray) -> np.ndarray:
        half = s[:, None, None] / 2
        x = _midpoint_step(self._descent, x, half, unit)
        x = super().move(x, s, increments)
        return _midpoint_step(self._descent, x, half, unit)

    def turned(self, angles: np.ndarray, s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        half = s[:, None, None] / 2
        angles = _midpoint_step(self._descent_of_angles, angles, half)
        angles = super().turned(angles, s, rng)
        return _midpoint_step(self._descent_of_angles, angles, half)

    def _descent_of_angles(self, angles: np.ndarray) -> np.ndarray:
        """Rates of change of the angles (..., m) by -scale grad scale."""
        if self.gradient is not None:
            slopes = along_circles(on_circles(angles), self._gradient(on_circles(angles)))
        else:
            slopes = _central_differences(self._values_at, angles)
        return -self._values_at(angles)[..., None] * slopes

    def _descent(self, x: np.ndarray) -> np.ndarray:
        """The tangential vector field -scale grad scale at points x."""
        gradient = self._gradient(x)
        tangential = gradient - (gradient * x).sum(axis=-1, keepdims=True) * x
        return -self.values(x)[..., None] * tangential

    def _gradient(self, x: np.ndarray) -> np.ndarray:
        if self.gradient is not None:
            return returned("gradient", self.gradient(x), x.shape, -np.inf)
        return _central_differences(lambda moved: self.values(unit(moved)), x)


def _midpoint_step(
    velocity: Function, x: np.ndarray, time: np.ndarray, projected: Function = np.asarray
) -> np.ndarray:
    """The flow of a velocity field for a time, by the midpoint rule."""
    middle = projected(x + bounded(time / 2 * velocity(x)))
    return projected(x + bounded(time * velocity(middle)))


def _central_differences(values: Function, x: np.ndarray) -> np.ndarray:
    """The gradient (..., k) of a function of points x (..., k)."""
    shifts = SCALE_DIFFERENCE * np.eye(x.shape[-1])
    differences = [values(x + h) - values(x - h) for h in shifts]
    return np.stack(differences, axis=-1) / (2 * SCALE_DIFFERENCE)


def _towards(x: np.ndarray, axis: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The flow of P_x e_k for times tau (...); x (..., d), k = axis (..., 1)."""
    component = np.take_along_axis(x, axis, axis=-1)
    cosh, sinh = np.cosh(bounded(tau))[..., None], np.sinh(tau)[..., None]
    result = x.copy()
    np.put_along_axis(result, axis, component * cosh + sinh, axis=-1)
    return unit(result)


def _travel(
    x: np.ndarray, axis: np.ndarray, time: np.ndarray,
    along: Callable[..., np.ndarray], values: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:  # fmt: skip
    """The solution at `time` of tau' = scale, tau(0) = 0, by one Runge-Kutta step."""

    def rate(tau: np.ndarray, _t: float) -> np.ndarray:
        return values(along(x, axis, tau) if tau.any() else x)

    return kutta_step(rate, np.zeros_like(time), 0.0, time)  # type: ignore[arg-type]


def _onwards(angles: np.ndarray, axis: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Angles (..., m) of which that of index `axis` (..., 1) grows by tau (...)."""
    result = angles.copy()
    moved = np.take_along_axis(angles, axis, axis=-1) + bounded(tau)[..., None]
    np.put_along_axis(result, axis, moved, axis=-1)
    return result

"""Frames of transition paths: spaces of densities while a path is computed, and its symmetries."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.interpolate import CubicSpline

from ..bifurcation import StationaryState
from ..bifurcation.bases import UNIFORM_MOMENT, VISIBLE_MOMENT, OnSphere
from ..bifurcation.multistability import same_state
from ..bifurcation.reflections import Reflected
from ..bifurcation.stationary import SAME_STATE
from ..core.cached import cached_property
from ..dynamics.motion import motion_for
from ..models.transformer import Transformer
from ..spaces import Circle, Density, Sphere, Torus, Zonal
from .saddles import Saddle

COARSEST_FRAME = 16  # least degree
VISIBLE_COEFFICIENT = 1e-12  # smaller coefficients of states are left out
LENGTH_NODES = 3  # of Gauss quadrature in each interval of a spline
TURNS_PER_DEGREE, TURN_STEPS = 4, 5  # angles tried to turn a state, and Newton steps from the best
EQUAL = 1e-9  # in L^2: images of a state at smaller distances are equally near
FEWEST_PARTS = 2  # of a leg between a stable state and a saddle

Map = Callable[[np.ndarray], np.ndarray]  # of rows of coefficients (..., modes)


@dataclass(frozen=True)
class PathFrame:
    """Space of the densities on a path while it is computed, and the way to and from it.

    Densities on S^2 that are symmetric about an axis are computed as functions of one variable.

    Attributes
    ----------
    model : Transformer
    basis : Basis
        Basis of the states.
    space : Space
        Space of the rows of coefficients, (images, modes), of a path.
    axis : Any
        Axis of the densities on the path.
    """

    model: Transformer
    basis: Any
    space: Any
    axis: Any

    @classmethod
    def of(cls, a: StationaryState, b: StationaryState, *others: StationaryState) -> Self:
        """The frame of a path from a to b, of the degree that all these states need."""
        states = (a, b, *others)
        basis = max((one.equation.basis for one in states), key=lambda one: one.degree)
        needed = [_visible_degree(one) for one in states]
        basis = basis.finer(max(COARSEST_FRAME, *needed))
        space = basis.density(0.0 * basis.degrees, basis.axis).space
        if cls.is_flat(basis):
            space = Zonal(basis.dimension, basis.degree)
        axis = b.axis if np.abs(b.legendre_moments).max() > UNIFORM_MOMENT else a.axis
        return cls(a.model, basis, space, axis)

    @staticmethod
    def is_flat(basis: Any) -> bool:
        """Whether densities of one variable stand for those on S^2."""
        return isinstance(basis, OnSphere)

    @cached_property
    def weights(self) -> np.ndarray:
        """Factors (modes,) of squared coefficients in the square of the norm in H^-1."""
        varies = self.space.degrees > 0
        rates = np.where(varies, np.abs(self.space.laplacian), 1.0)
        return np.where(varies, self.space.parseval / rates, 0.0)

    def norms(self, changes: np.ndarray) -> np.ndarray:
        """Norms (...,) in H^-1 of changes of coefficients (..., modes)."""
        return np.sqrt(np.abs(changes) ** 2 @ self.weights)

    def row(self, space: Any, coefficients: np.ndarray, axis: Any) -> np.ndarray:
        """Coefficients (modes,) on the space of the path, of a density or a perturbation."""
        if self.is_flat(self.basis):
            masses = space.weights * space.to_values(coefficients)
            legendre = np.polynomial.legendre.legvander(space.points @ axis, space.degree)
            flat = Zonal(3, space.degree)
            coefficients, space = masses @ legendre * np.sqrt(2 * flat.degrees + 1), flat
        return np.asarray(space.resample(coefficients, self.space.degree))

    def row_of(self, state: StationaryState, axis: Any = None) -> np.ndarray:
        """Coefficients of a state, about an axis; by default its own."""
        density = state.density
        axis = state.axis if axis is None else axis
        return self.row(density.space, density.coefficients, axis)

    def density(self, rows: np.ndarray) -> Density:
        """Densities with rows of coefficients (..., modes)."""
        return Density.computed(rows, self.space)

    def lifted(self, rows: np.ndarray, axis: Any = None) -> Density:
        """Densities with rows of coefficients, on the space of the states."""
        if not self.is_flat(self.basis):
            return self.density(rows)
        sizes, axis = self.basis.sizes, self.axis if axis is None else axis
        m = np.atleast_2d(rows)[:, 1:] / sizes
        each = Density.stack([self.basis.density(one, axis) for one in m])
        return each if rows.ndim > 1 else each[0]

    def velocities(self, rows: np.ndarray) -> np.ndarray:
        """d_t of rows of coefficients (images, modes)."""
        density = self.density(rows)
        return np.asarray(motion_for(density)(self.model, density).velocity(rows, 0.0))

    @property
    def keeps_saddle(self) -> bool:
        """Whether paths keep the frame of the saddle: no rotation to the ends is computed."""
        if not isinstance(self.space, Sphere):
            return False
        return not isinstance(self.basis, Reflected) or len(self.basis.rotations) > 1

    def apart(self, row: np.ndarray, other: np.ndarray) -> float:
        """Distance of two states in L^2, from their rows of coefficients."""
        return float(np.sqrt(np.abs(row - other) ** 2 @ self.space.parseval))

    def symmetry(self, row: np.ndarray, wanted: np.ndarray) -> "Map | None":
        """The first symmetry of the model that maps one state nearest to another; None if far."""

        def away(one: Map) -> float:
            return max(self.apart(one(row), wanted), EQUAL)

        nearest = min(self._symmetries(row, wanted), key=away)
        return nearest if away(nearest) < SAME_STATE else None

    def _symmetries(self, row: np.ndarray, wanted: np.ndarray) -> "Iterator[Map]":
        """Symmetries of the model that may map one state to another, the identity first."""
        yield lambda rows: rows
        if isinstance(self.basis, Reflected):
            for reflection in self.basis.symmetries.reflections:
                yield partial(self.reflected, reflection)
                if len(self.basis.rotations) == 1:
                    image, there = map(
                        self.basis.all.moments, (self.reflected(reflection, row), wanted)
                    )
                    angle = self._turning.angle(image, there)
                    yield partial(self._turned, reflection, angle)
        elif isinstance(self.space, Zonal):
            yield lambda rows: rows * (-1.0) ** self.space.degrees
        elif isinstance(self.space, Circle):
            for turn in turns_between(row, wanted):
                yield partial(self.space.rotate, rotation=turn)
        elif isinstance(self.space, Torus):
            shift = np.exp(-1j * self.space.waves @ self._translation(row, wanted))
            yield lambda rows: rows * shift

    def _translation(self, row: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Angles (m,) by which a state on the torus is moved to be nearest to another, in L^2."""
        space: Any = self.space
        overlap = row.conj() * wanted
        t = space.angles_of(space.points[int(np.argmax(space.to_values(overlap)))])
        for _ in range(TURN_STEPS):
            terms = space.parseval * overlap * np.exp(1j * space.waves @ t)
            slope = -(space.waves.T @ terms.imag)
            bend = -(space.waves.T * terms.real) @ space.waves
            t = t - np.linalg.lstsq(bend, slope, rcond=EQUAL)[0]
        return np.asarray(t)

    def reflected(self, reflection: int, rows: np.ndarray) -> np.ndarray:
        """Rows of coefficients of mirror images, for the number of a reflection."""
        if reflection == 0:
            return rows
        harmonics = self.basis.all
        signs = np.where(harmonics.odd(reflection), -1.0, 1.0)
        return np.asarray(harmonics.series(signs * harmonics.moments(rows)))

    def _turned(self, reflection: int, angle: float, rows: np.ndarray) -> np.ndarray:
        """Rows of coefficients, reflected and turned in the plane that preserves the model."""
        moments = self.basis.all.moments(self.reflected(reflection, rows))
        return np.asarray(self.basis.all.series(self._turning.turned(moments, angle)))

    @cached_property
    def _turning(self) -> "Turning":
        """The rotations in the one plane that preserves the model."""
        return Turning(self.basis.rotations[0], self.basis.degrees)

    def spline(self, rows: np.ndarray) -> tuple[np.ndarray, CubicSpline]:
        """Lengths (images,) in H^-1 along the cubic spline through rows, and it by its length."""
        chords = np.concatenate([[0.0], np.cumsum(self.norms(np.diff(rows, axis=0)))])
        slope = CubicSpline(chords, rows).derivative()
        x, w = np.polynomial.legendre.leggauss(LENGTH_NODES)
        steps = np.diff(chords)
        places = chords[:-1, None] + (x + 1) / 2 * steps[:, None]
        lengths = np.cumsum(self.norms(slope(places)) @ w / 2 * steps)
        lengths = np.concatenate([[0.0], lengths])
        return lengths, CubicSpline(lengths, rows)


class Turning:
    """Rotations exp(angle A) of coefficients (..., N), for a matrix A that preserves degrees.

    By the eigenvectors of A in the functions of each degree.
    """

    def __init__(self, matrix: Any, degrees: np.ndarray):
        edges = np.searchsorted(degrees, [*np.unique(degrees), np.inf])
        self._parts = [slice(first, last) for first, last in pairwise(edges)]
        self._pairs = [np.linalg.eigh(1j * matrix[p, p].toarray()) for p in self._parts]

    def turned(self, c: np.ndarray, angle: float) -> np.ndarray:
        """Coefficients turned by an angle."""
        turned = np.empty_like(c)
        for part, (speeds, modes) in zip(self._parts, self._pairs, strict=True):
            share = c[..., part] @ modes.conj() * np.exp(-1j * angle * speeds)
            turned[..., part] = (share @ modes.T).real
        return turned

    def angle(self, c: np.ndarray, wanted: np.ndarray) -> float:
        """Angle by which coefficients (N,) are turned to be nearest to others."""
        pairs = zip(self._parts, self._pairs, strict=True)
        each = [
            (speeds, (c[part] @ modes.conj()) * (wanted[part] @ modes))
            for part, (speeds, modes) in pairs
        ]
        speeds, sizes = (np.concatenate(column) for column in zip(*each, strict=True))
        many = int(TURNS_PER_DEGREE * np.abs(speeds).max(initial=1.0)) + 1
        angles = 2 * np.pi * np.arange(many) / many
        overlaps = (np.exp(-1j * np.outer(angles, speeds)) @ sizes).real
        angle = angles[int(np.argmax(overlaps))]
        for _ in range(TURN_STEPS):
            terms = sizes * np.exp(-1j * angle * speeds)
            slope, bend = (terms @ (-1j * speeds)).real, -(terms @ speeds**2).real
            angle -= slope / bend if bend < 0 else 0.0
        return float(angle)


def _visible_degree(state: StationaryState) -> int:
    """Highest degree of the coefficients of a state that are above 1e-12."""
    basis = state.equation.basis
    seen = np.abs(basis.sizes * state.legendre_moments) > VISIBLE_COEFFICIENT
    return int(basis.degrees[seen].max(initial=0))


class Course(NamedTuple):
    """A path while it is computed.

    Attributes
    ----------
    frame : PathFrame
    legs : list of ndarray, (n, modes)
        Rows of coefficients, for each part of the path between stable states and saddles.
    passes : sequence of Saddle
    method : str
    climbs : int
        1 if every other leg, from the first, does not follow the flow; else 0.
    """

    frame: PathFrame
    legs: list[np.ndarray]
    passes: Sequence[Saddle]
    method: str
    climbs: int = 0


def placed(
    frame: PathFrame, legs: list[np.ndarray], a: StationaryState, b: StationaryState
) -> list[np.ndarray] | None:
    """Legs mapped by a symmetry of the model so that they end in b, and begin in a if b stays.

    None if no symmetry maps their ends to a and b.
    """
    last = frame.row_of(b)
    for end, wanted in ((-1, last), (0, frame.row_of(a))):
        map_to = frame.symmetry(legs[end][end], wanted)
        if map_to is None:
            return legs if frame.keeps_saddle else None
        mapped = [map_to(leg) for leg in legs]
        if frame.apart(mapped[-1][-1], last) < SAME_STATE:
            legs = mapped
    return legs


def turns_between(row: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Angles (k,) that may turn the coefficients of a state on the circle to those wanted."""
    sizes = np.abs(wanted[1:])
    k = int(np.argmax(sizes > VISIBLE_MOMENT * sizes.max())) + 1
    first = np.angle(wanted[k] / row[k]) if row[k] else 0.0
    return np.asarray((-first + 2 * np.pi * np.arange(k)) / k)


def maps(reflection: int, one: StationaryState, other: StationaryState) -> bool:
    """Whether a reflection of the model, followed by a rotation of it, maps a state to another."""
    basis = max(one.equation.basis, other.equation.basis, key=lambda basis: basis.degree)
    if not isinstance(basis, Reflected):
        return same_state(one, other)
    m, k = (basis.padded(state.legendre_moments) for state in (one, other))
    m = np.where(basis.all.odd(reflection), -m, m)
    if np.linalg.norm(basis.fingerprint(m) - basis.fingerprint(k)) > SAME_STATE:
        return False
    if len(basis.rotations) != 1:  # the fingerprint is exact, or all rotations keep the model
        return True
    m, k = basis.sizes * m, basis.sizes * k
    turning = Turning(basis.rotations[0], basis.degrees)
    away = turning.turned(m, turning.angle(m, k)) - k
    return bool(np.linalg.norm(away) < SAME_STATE)


def spaced(
    frame: PathFrame, leg: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lengths, rows and unit tangents at the ends of `count` equal parts of a leg."""
    lengths, curve = frame.spline(leg)
    places = np.linspace(0.0, lengths[-1], count + 1)
    rows, tangents = curve(places), curve.derivative()(places)
    rows[0], rows[-1] = leg[0], leg[-1]
    return places, rows, tangents / frame.norms(tangents)[:, None]


def parts_of(frame: PathFrame, legs: Sequence[np.ndarray], images: int) -> list[int]:
    """Number of parts of each leg, at least 2, so that the longest part is shortest."""
    lengths = np.array([frame.spline(leg)[0][-1] for leg in legs])
    parts = np.full(len(legs), FEWEST_PARTS)
    for _ in range(images - 1 - FEWEST_PARTS * len(legs)):
        parts[np.argmax(lengths / parts)] += 1
    return [int(part) for part in parts]

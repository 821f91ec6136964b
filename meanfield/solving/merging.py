"""Merging: tokens that have collapsed onto each other, followed as one of all their mass."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.checks import fitting
from ..core.errors import SlowWarning
from ..dynamics.motion import Motion
from ..states import Tokens
from .policies import Policy

Lengths = Callable[[np.ndarray], np.ndarray]  # of gaps, after parts of a step
Gaps = Callable[[np.ndarray, np.ndarray], Lengths]  # between pairs of rows

MERGE_HALVINGS = 52
SIMULTANEOUS = 1e-6  # of a step: times that differ by less are one
FARTHEST_MERGED = 0.1  # tokens farther apart are not one
COLLAPSED_DISTANCE = 1e-8  # tokens that are closer are advised to merge
HINT_INTERVAL = 5000  # steps, each so many of which it is seen whether merging would save some


def checked_distance(merge: float | None, motion: Motion) -> float | None:
    """The distance below which tokens merge, None for never; ValueError where they cannot."""
    if merge is None:
        return None
    fitting(
        "merge",
        merge,
        f"a distance > 0 and <= {FARTHEST_MERGED:g}, to be taken for none",
        merge <= FARTHEST_MERGED,
    )
    if motion.model.parts_tokens:
        raise ValueError(
            "Merging is for drifts that move tokens at the same place alike; under Hardmax, where "
            "none attends to itself, and causal attention they part."
        )
    if motion.like.shape or motion.random:
        raise ValueError(
            "Merging needs a single set of Tokens without noise; solve replicas one by one, "
            "tokens[i]."
        )
    return merge


def may_merge(motion: Motion) -> bool:
    """True for tokens that `merge` would be allowed for."""
    if "merge" not in motion.options:
        return False
    return not (motion.model.drift.parts_tokens or motion.like.shape or motion.random)


class MergingHint(Policy):
    """Warns, once, of tokens that have collapsed and keep the steps of a long run short.

    Tokens that are together attract each other at rates like e^beta under USA, and steps of an
    explicit scheme are at most a few of these times, for ever.
    """

    memory = ()

    def __init__(self) -> None:
        self._steps, self._warned = 0, False

    def after_step(self, run: Any, code: int) -> None:
        """Look at the tokens now and then."""
        self._steps += 1
        if self._warned or self._steps % HINT_INTERVAL or run.progress > 0.5:
            return
        if len(_links(run.rows.state_of(run.flow.x).x, COLLAPSED_DISTANCE)):
            self._warned = True
            warnings.warn(
                f"t = {run.t:.3g}, {100 * run.progress:.2g} % of the way, took {self._steps} "
                f"steps. Tokens less than {COLLAPSED_DISTANCE:g} apart are followed one by one, "
                "which keeps steps short. With solve(..., merge=1e-8) they become one, and steps "
                "grow; the page docs/howto/merge.md has an example.",
                SlowWarning,
                stacklevel=2,
            )


class Merging(Policy):
    """Merging of tokens: a run goes on with fewer rows than it has tokens.

    Parameters
    ----------
    count : int
        The number of tokens.
    distance : float
        Chains of gaps up to this distance are merged.

    Attributes
    ----------
    labels : ndarray of int, (count,)
        The row of each token.
    shares : ndarray, (count,)
        The share of each token in the mass of its row, which does not change any more.
    times : list of (t, rows)
        When tokens were merged, and how many rows were left.
    """

    memory = ("labels", "shares", "times")
    always = True

    def __init__(self, count: int, distance: float):
        self.distance = distance
        self.labels, self.shares = np.arange(count), np.ones(count)
        self.times: list[tuple[float, int]] = []

    def after_step(self, run: Any, code: int) -> None:
        """Merge what has collapsed in the last step of a run, which goes on with fewer tokens."""
        step, before = None, run.flow.before
        if before is not None and run.flow.dense:
            step = run.start + before.elapsed, before.dt, _gaps(run.flow.interpolant, run.rows)
        rows = self.merge(run.rows.state_of(run.flow.x), run.start + run.clock.t, step)
        if rows is not None:
            motion = run.motion.with_state(rows)
            run.go_on(motion, motion.coordinates(rows))

    def merge(
        self, rows: Tokens, t: float, step: tuple[float, float, Gaps] | None = None
    ) -> Tokens | None:
        """Merge rows that have come close at the time t; what is left, or None if none has.

        Radii, where there are any, must have come as close, relative. The step that led there, its
        beginning, its length and gaps(one, two) -> (s -> lengths), tells when they came close.
        """
        points = rows.x
        if rows.radii is not None:
            points = np.concatenate([points, np.log(rows.radii)[:, None]], axis=1)
        links = _links(points, self.distance)
        if not len(links):
            return None
        labels = _chains(links, len(rows))
        left = _merged(rows, labels)
        with np.errstate(invalid="ignore"):
            shares = rows.masses / left.masses[labels]
        shares[left.masses[labels] == 0] = 1.0
        self.shares = self.shares * shares[self.labels]
        self.labels = labels[self.labels]
        parts = np.ones(len(links)) if step is None else self._parts(links, step[2])
        for i in np.flatnonzero(np.diff(parts, append=2.0) > SIMULTANEOUS):
            when = t if step is None else min(t, step[0] + parts[i] * step[1])
            self.times.append((float(when), len(rows) - int(i) - 1))
        return left

    def _parts(self, links: np.ndarray, gaps: Gaps) -> np.ndarray:
        """The parts of a step after which the gaps of links are closed, in order; by bisection."""
        gaps_at = gaps(*links.T)
        low, high = np.zeros(len(links)), np.ones(len(links))
        for _ in range(MERGE_HALVINGS):
            middle = (low + high) / 2
            closed = gaps_at(middle[:, None]) <= self.distance
            low, high = np.where(closed, low, middle), np.where(closed, middle, high)
        return np.sort(high)

    def rows_of(self, tokens: Tokens) -> Tokens:
        """The rows of all tokens, of which merged ones are at the same place."""
        first = np.unique(self.labels, return_index=True)[1]
        masses = np.bincount(self.labels, tokens.masses)
        radii = None if tokens.radii is None else tokens.radii[first]
        return Tokens(tokens.x[first], masses, radii, on_sphere=tokens.on_sphere)

    def spread(self, y: np.ndarray, has_masses: bool) -> np.ndarray:
        """Coordinates of all tokens from those of the rows; masses are in the last column."""
        if not self.times:
            return y
        y = y[:, self.labels]
        if has_masses:
            with np.errstate(divide="ignore"):
                y[..., -1] += np.log(self.shares)
        return y

    def stats(self, start: float) -> dict[str, Any]:
        """The times at which tokens were merged, with the rows left."""
        return {"merges": [[t, int(rows)] for t, rows in self.times]}

    def restore(self, snapshot: dict[str, np.ndarray], run: Any = None) -> None:
        """Remember what `snapshot` returned, and take the run to the tokens that were left."""
        super().restore(snapshot)
        if self.times:
            run.rows = run.motion.with_state(self.rows_of(run.first))


def _gaps(interpolant: Any, motion: Any) -> Gaps:
    """Distances between rows, as a function of parts of the last step; see `Merging.merge`."""
    d = motion.dimension

    def gaps(one: np.ndarray, two: np.ndarray) -> Lengths:
        apart = interpolant.of(lambda y: y[0, one, :d] - y[0, two, :d])
        if not motion.has_radii:
            return lambda s: np.linalg.norm(apart(s), axis=1)
        longer = interpolant.of(lambda y: y[0, one, d, None] - y[0, two, d, None])
        radii = interpolant.of(lambda y: y[0, two, d, None])
        return lambda s: np.linalg.norm(
            np.concatenate([apart(s), np.log1p(longer(s) / radii(s))], axis=1), axis=1
        )

    return gaps


def _links(x: np.ndarray, distance: float) -> np.ndarray:
    """Pairs (m, 2) of points (n, d) that hold chains of gaps <= `distance` together; no more."""
    from scipy.spatial import cKDTree

    pairs = cKDTree(x).query_pairs(distance, output_type="ndarray")
    if len(pairs) <= 1:
        return pairs
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    lengths = np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1)
    lengths += np.finfo(float).tiny  # a length of 0 would be no link
    return np.argwhere(minimum_spanning_tree(coo_array((lengths, pairs.T), shape=(len(x),) * 2)))


def _chains(links: np.ndarray, count: int) -> np.ndarray:
    """Numbers of the chains (count,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(links)), links.T), shape=(count, count))
    return connected_components(graph, directed=False)[1]


def _merged(tokens: Tokens, labels: np.ndarray) -> Tokens:
    """One token for each label: centre of mass, put back on the sphere; mean radius.

    A centre of mass is as accurate as the square of the distance between those merged.
    """
    masses, alone = np.bincount(labels, tokens.masses), np.bincount(labels) == 1
    weights = np.where(masses[labels] > 0, tokens.masses, 1.0)  # any, where there is no mass
    total = np.bincount(labels, weights)

    def averaged(values: np.ndarray) -> np.ndarray:
        return np.bincount(labels, weights * values) / total

    x = np.stack([averaged(column) for column in tokens.x.T], axis=1)
    if tokens.on_sphere:
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    untouched = alone[labels]
    x[labels[untouched]] = tokens.x[untouched]
    radii = None if tokens.radii is None else averaged(tokens.radii)
    return Tokens(x, masses, radii, on_sphere=tokens.on_sphere)

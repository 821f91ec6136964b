"""Merging: tokens that have collapsed onto each other are replaced by one with their total mass."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.annotations import JsonTable
from ..core.checks import require
from ..core.errors import SlowWarning
from ..dynamics.motion import Motion
from ..states import Tokens
from .policies import Policy

Lengths = Callable[[np.ndarray], np.ndarray]  # fractions of a step -> distances of pairs of rows
Gaps = Callable[[np.ndarray, np.ndarray], Lengths]  # indices of both rows of pairs -> Lengths

MERGE_HALVINGS = 52  # bisections of a step for the time of a merger
SIMULTANEOUS = 1e-6  # fraction of a step: mergers whose times differ by less are one entry
FARTHEST_MERGED = 0.1  # largest value of the argument `merge`
COLLAPSED_DISTANCE = 1e-8  # the hint about merging is given for tokens closer than this
HINT_INTERVAL = 5000  # number of steps between two checks whether to give the hint


def checked_distance(merge: float | None, motion: Motion) -> float | None:
    """Argument `merge` of `solve`, None for never; raises ValueError if tokens cannot merge."""
    if merge is None:
        return None
    require(
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
    """True for tokens whose run may have the argument `merge`."""
    part = motion.model.parts_tokens or motion.like.shape or motion.random
    return "merge" in motion.options and not part


class MergingHint(Policy):
    """Policy that warns, once, if collapsed tokens keep the steps of a long run short.

    Tokens at one point attract each other at rates like e^beta under USA, which limits the steps
    of an explicit scheme for the rest of the run.
    """

    memory = ()

    def __init__(self) -> None:
        self._steps, self._warned = 0, False

    def after_step(self, run: Any, code: int) -> None:
        """Check every HINT_INTERVAL steps, in the first half of the run, and warn if due."""
        self._steps += 1
        if self._warned or self._steps % HINT_INTERVAL or run.progress > 0.5:
            return
        if len(_spanning_forest(run.rows.state_of(run.flow.x).x, COLLAPSED_DISTANCE)):
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
    """Policy that merges tokens: a row of the coordinates then stands for several tokens.

    Parameters
    ----------
    count : int
        Number of tokens.
    distance : float
        Tokens that are connected by pairs at most this far apart are merged.

    Attributes
    ----------
    labels : ndarray of int, (count,)
        Row index of each token.
    shares : ndarray, (count,)
        Share of each token in the mass of its row; constant once a token has merged.
    masses : ndarray, (rows,)
        Masses of the rows after the last merger, empty before the first. Their last bits depend on
        the order of the mergers.
    times : list of (t, rows)
        Time of each merger, and the number of rows left.
    """

    memory = ("labels", "shares", "masses", "times")
    always = True

    def __init__(self, count: int, distance: float):
        self.distance = distance
        self.labels, self.shares, self.masses = np.arange(count), np.ones(count), np.empty(0)
        self.times: list[tuple[float, int]] = []

    def after_step(self, run: Any, code: int) -> None:
        """Merge tokens that have come close in the last step, and continue with fewer rows."""
        step, prior = None, run.flow.before
        if prior is not None and run.flow.dense:
            step = run.start + prior.elapsed, prior.dt, _gaps(run.flow.interpolant, run.rows)
        rows = self.merge(run.rows.state_of(run.flow.x), run.start + run.clock.t, step)
        if rows is not None:
            motion = run.motion.with_state(rows)
            run.go_on(motion, motion.coordinates(rows))

    def merge(
        self, rows: Tokens, t: float, step: tuple[float, float, Gaps] | None = None
    ) -> Tokens | None:
        """Merge rows that are close at the time t; return the rows left, or None if none is close.

        Distances are those of the points; with radii, of the points and the logarithms of radii.

        Parameters
        ----------
        rows : Tokens
            Tokens before the merger.
        t : float
            Time of `rows`.
        step : (float, float, Gaps), optional
            Beginning and length of the step that ends at t, and distances of rows within it, from
            which the times of the mergers are computed; otherwise they are t.
        """
        points = rows.x
        if rows.radii is not None:
            points = np.concatenate([points, np.log(rows.radii)[:, None]], axis=1)
        close_pairs = _spanning_forest(points, self.distance)
        if not len(close_pairs):
            return None
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        graph = coo_array((np.ones(len(close_pairs)), close_pairs.T), shape=(len(rows), len(rows)))
        labels = connected_components(graph, directed=False)[1]
        merged_tokens = _merged(rows, labels)
        with np.errstate(invalid="ignore"):
            shares = rows.masses / merged_tokens.masses[labels]
        shares[merged_tokens.masses[labels] == 0] = 1.0
        self.shares = self.shares * shares[self.labels]
        self.labels, self.masses = labels[self.labels], merged_tokens.masses
        at_once = np.ones(len(close_pairs))
        fractions = at_once if step is None else self._fractions(close_pairs, step[2])
        for i in np.flatnonzero(np.diff(fractions, append=2.0) > SIMULTANEOUS):
            merge_time = t if step is None else min(t, step[0] + fractions[i] * step[1])
            self.times.append((float(merge_time), len(rows) - int(i) - 1))
        return merged_tokens

    def _fractions(self, close_pairs: np.ndarray, lengths: Gaps) -> np.ndarray:
        """Fractions of the last step at which pairs of rows came close, sorted; by bisection.

        `close_pairs` (m, 2) has the indices of the rows of each pair; close is within `distance`.
        """
        gaps_of_links = lengths(*close_pairs.T)
        low, high = np.zeros(len(close_pairs)), np.ones(len(close_pairs))
        for _ in range(MERGE_HALVINGS):
            middle = (low + high) / 2
            closed = gaps_of_links(middle[:, None]) <= self.distance
            low, high = np.where(closed, low, middle), np.where(closed, middle, high)
        return np.sort(high)

    def rows_of(self, tokens: Tokens) -> Tokens:
        """Tokens with one row for all that have merged, from all tokens (merged ones coincide)."""
        first, masses = np.unique(self.labels, return_index=True)[1], self.masses
        radii = None if tokens.radii is None else tokens.radii[first]
        return Tokens(tokens.x[first], masses, radii, on_sphere=tokens.on_sphere)

    def spread(self, y: np.ndarray, has_masses: bool) -> np.ndarray:
        """Coordinates of all tokens from the coordinates of the rows.

        With `has_masses` the last column is the logarithm of the masses, which `shares` divide.
        """
        if not self.times:
            return y
        y = y[:, self.labels]
        if has_masses:
            with np.errstate(divide="ignore"):
                y[..., -1] += np.log(self.shares)
        return y

    def stats(self, start: float) -> JsonTable:
        """Times of the mergers and the numbers of rows left, as "merges"."""
        return {"merges": [[t, int(rows)] for t, rows in self.times]}

    def restore(self, snapshot: dict[str, np.ndarray], run: Any = None) -> None:
        """Set the attributes from a snapshot, and let the run continue with the rows left."""
        super().restore(snapshot)
        if self.times:
            run.rows = run.motion.with_state(self.rows_of(run.first))


def _gaps(interpolant: Any, motion: Any) -> Gaps:
    """Distances between rows within the last step, from its interpolant; see `Merging.merge`."""
    d = motion.dimension

    def gaps(rows: np.ndarray, others: np.ndarray) -> Lengths:
        """Distances of the rows from the others as functions of the fraction s of the step."""
        separation = interpolant.of(lambda y: y[0, rows, :d] - y[0, others, :d])
        if not motion.has_radii:
            return lambda s: np.linalg.norm(separation(s), axis=1)
        longer = interpolant.of(lambda y: y[0, rows, d, None] - y[0, others, d, None])
        radii = interpolant.of(lambda y: y[0, others, d, None])
        return lambda s: np.linalg.norm(
            np.concatenate([separation(s), np.log1p(longer(s) / radii(s))], axis=1), axis=1
        )

    return gaps


def _spanning_forest(x: np.ndarray, distance: float) -> np.ndarray:
    """Minimum spanning forest of the pairs of points x (n, d) at most `distance` apart.

    Returns the indices of its m pairs, (m, 2).
    """
    from scipy.spatial import cKDTree

    pairs = cKDTree(x).query_pairs(distance, output_type="ndarray")
    if len(pairs) <= 1:
        return pairs
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    lengths = np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1)
    lengths += np.finfo(float).tiny  # a sparse matrix would drop a length of 0
    rows, columns = pairs.T.astype(np.int32)  # scipy before 1.17.1 asks for them
    graph = coo_array((lengths, (rows, columns)), shape=(len(x),) * 2)
    return np.argwhere(minimum_spanning_tree(graph))


def _merged(tokens: Tokens, labels: np.ndarray) -> Tokens:
    """Tokens merged by their labels (n,): total mass, centre of mass and mean radius of each label.

    A centre of mass is projected to the sphere. Its error is of the order of the square of the
    distance between the merged tokens.
    """
    masses, is_single = np.bincount(labels, tokens.masses), np.bincount(labels) == 1
    weights = np.where(masses[labels] > 0, tokens.masses, 1.0)  # without mass any weights will do
    total = np.bincount(labels, weights)

    def averaged(values: np.ndarray) -> np.ndarray:
        return np.bincount(labels, weights * values) / total

    x = np.stack([averaged(column) for column in tokens.x.T], axis=1)
    if tokens.on_sphere:
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    untouched = is_single[labels]
    x[labels[untouched]] = tokens.x[untouched]
    radii = None if tokens.radii is None else averaged(tokens.radii)
    return Tokens(x, masses, radii, on_sphere=tokens.on_sphere)

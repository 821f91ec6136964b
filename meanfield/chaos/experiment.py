"""The computation of one batch of a study: tokens, coupled tokens, samples and their distances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core.checks import check_memory
from ..core.errors import MeanfieldError
from ..core.identity import digest
from ..models import MeanField
from ..models.transformer import Transformer
from ..results.solution import Solution
from ..solving import solve
from ..spaces import Density
from ..states import Tokens, TorusTokens
from ..sweeps.points import SweepPoint, Work, key_of
from .measurements import Functional, Measured, PointSet

NUMBERS_PER_BATCH = 256  # memory of the record of one batch, in numbers
TOKENS_PER_BATCH = 2**14  # about
MAX_REPLICAS = 64  # in a batch


class Batch(NamedTuple):
    """Replicas of n tokens that are run together in one array.

    The size of a batch depends on n alone, and each batch has separate seeds:
    SeedSequence(seed, spawn_key=(n, number)). A study of fewer sizes or replicas therefore equals
    the corresponding part of a larger one. The last batch is run in full and truncated.

    Attributes
    ----------
    n : int
    number : int
        Its index among the batches of this n.
    size : int
        Number of replicas that are run.
    kept : int
        Number of replicas that are used.
    """

    n: int
    number: int
    size: int
    kept: int

    @property
    def point(self) -> SweepPoint:
        """The point of the sweep under which a store keeps the results of the batch."""
        values = self._asdict()
        return SweepPoint(key_of({name: digest(value) for name, value in values.items()}), values)

    @property
    def replicas(self) -> slice:
        """The indices of its replicas among all."""
        begin = self.number * self.size
        return slice(begin, begin + self.kept)

    def seeds(self, seed: int, count: int) -> list[np.random.Generator]:
        """Independent generators: for the initial tokens, for the noise, and so on."""
        root = np.random.SeedSequence(seed, spawn_key=(self.n, self.number))
        return [np.random.default_rng(child) for child in root.spawn(count)]


def batches_of(sizes: list[int], replicas: int) -> list[Batch]:
    """All batches of a study, small sizes first."""
    widths = {n: min(max(TOKENS_PER_BATCH // n, 1), MAX_REPLICAS) for n in sizes}
    count = sum(-(-replicas // size) for size in widths.values())
    purpose = f"replicas = {replicas}, in {count} batches"
    check_memory(purpose, (NUMBERS_PER_BATCH, count), "replicas or sizes")
    return [
        Batch(n, begin // size, size, min(size, replicas - begin))
        for n, size in widths.items()
        for begin in range(0, replicas, size)
    ]


@dataclass(frozen=True)
class Experiment(Work):
    """The computation that a study performs for every batch.

    Attributes
    ----------
    model : Transformer
    start : Density
        The initial law of the tokens.
    law : Solution
        The densities, at outputs that include `times`.
    times : ndarray
    distances : mapping of str to callable
        (tokens, density) -> numbers (*replicas,).
    functionals : mapping of str to callable
        state -> numbers (*replicas,), of tokens or a density.
    coupled, floor : bool
        Whether to run the nonlinear process as well; whether to draw independent samples.
    dt : float or None
    seed : int
    breaks : tuple of float
        Times that no step of tokens passes.
    """

    model: Transformer
    start: Density
    law: Solution
    times: np.ndarray
    distances: Mapping[str, Measured]
    functionals: Mapping[str, Functional]
    coupled: bool
    floor: bool
    dt: float | None
    seed: int
    breaks: tuple[float, ...] = ()

    supplied: ClassVar[str] = "Distances and functionals"

    def try_measurements(self) -> None:
        """Call every distance and functional once, so that errors appear before the first run."""
        tokens = self.start.space.tokens(self.start.sample(6, rng=0).x.reshape(2, 3, -1))
        for measure in self.distances.values():
            _real(measure(tokens, self.start), tokens.shape)
        for value in self.functionals.values():
            _real(value(tokens), tokens.shape)
            _real(value(self.start), ())

    def limits(self, name: str) -> np.ndarray:
        """The values of a functional of the densities at `times`."""
        return np.array([_real(self.functionals[name](law), ()) for law in self.laws], float)

    @property
    def names(self) -> list[str]:
        """The names of the rows that `run` returns."""
        coupled = ["coupling", "coupling up to rotation"] if self.coupled else []
        floors = [f"floor of {name}" for name in self.distances] if self.floor else []
        return [*self.distances, *self.functionals, *coupled, *floors]

    def run(self, batch: Batch) -> np.ndarray:
        """The measurements of a batch, (names, times, replicas)."""
        first, noise, samples = batch.seeds(self.seed, 3)
        tokens = self._sample(self.start, batch, first)
        path = self._path(self.model, tokens, noise, batch, "interacting tokens")
        rows = [self._series(path, measure) for measure in self.distances.values()]
        for value in self.functionals.values():
            rows += [np.stack([_real(value(tokens), tokens.shape) for tokens in path])]
        if self.coupled:
            noise = batch.seeds(self.seed, 3)[1]  # the same increments again
            mean_field = self.model.replace(drift=MeanField(self.law))
            limit_path = self._path(mean_field, tokens, noise, batch, "tokens in the mean field")
            for gap in (_coupling_distance, _apart_up_to_rotation):
                rows += [np.stack(list(map(gap, path, limit_path)))]
        if self.floor:
            independent = [self._sample(law, batch, samples)[: batch.kept] for law in self.laws]
            rows += [self._series(independent, measure) for measure in self.distances.values()]
        return np.array(rows, float).reshape(-1, len(self.times), batch.kept)

    # The interface of a sweep over batches --------------------------------------------------------

    def cost(self, point: SweepPoint) -> float:
        batch = Batch(**point.parameters)
        return batch.n * batch.size

    def values(self, points: Sequence[SweepPoint], seed: int | None) -> list[Any]:
        return [self.run(Batch(**point.parameters)) for point in points]

    def identity(self) -> dict[str, Any]:
        """The data that determine the results; the law follows from the model and the start."""
        return vars(self) | {"law": (len(self.law.t), self.law.rtol)}

    @property
    def laws(self) -> list[Any]:
        """The densities at `times`."""
        return [self.law[int(np.abs(self.law.t - t).argmin())] for t in self.times]

    def _path(
        self,
        model: Transformer,
        tokens: PointSet,
        rng: np.random.Generator,
        batch: Batch,
        noun: str,
    ) -> list[PointSet]:
        """The tokens of the replicas that are used, at `times`."""
        options: dict[str, Any] = {"rng": rng, "dt": self.dt} if model.noisy else {}
        span = (float(self.law.t[0]), float(self.times[-1]))
        options |= {"t_eval": self.times, "breaks": self.breaks, "progress": False}
        run = solve(model, tokens, span, **options)
        if not run.success:
            raise MeanfieldError(f"A run of {len(tokens)} {noun} ended early: {run.message}")
        return [state[: batch.kept] for state in run if isinstance(state, PointSet)]

    def _series(self, states: list[PointSet], measure: Measured) -> np.ndarray:
        pairs = zip(states, self.laws, strict=True)
        return np.stack([_real(measure(tokens, law), tokens.shape) for tokens, law in pairs])

    @staticmethod
    def _sample(law: Density, batch: Batch, rng: np.random.Generator) -> PointSet:
        x = law.sample(batch.size * batch.n, rng=rng).x
        return law.space.tokens(x.reshape(batch.size, batch.n, -1))


def _real(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(values)
    if array.shape != shape or array.dtype.kind not in "fiu":
        raise ValueError(
            "Functionals return one real number for a density; distances and functionals return a "
            f"real number for each replica, {shape}; got shape {array.shape} of {array.dtype}."
        )
    return array


def _coupling_distance(a: PointSet, b: PointSet) -> np.ndarray:
    """Root mean square of the Euclidean distance between coupled tokens, (replicas,)."""
    return np.sqrt(((a.x - b.x) ** 2).sum(axis=-1).mean(axis=-1))


def _apart_up_to_rotation(a: PointSet, b: PointSet) -> np.ndarray:
    """The least `_coupling_distance` over rotations of one set (Kabsch), by singular vectors.

    On a torus it is that over translations: (sum_k 2 - 2 |mean e^{i (a_k - b_k)}|)^(1/2).
    """
    if isinstance(a, TorusTokens) and isinstance(b, TorusTokens):
        aligned = np.abs(np.exp(1j * (a.angles - b.angles)).mean(axis=-2))
        return np.sqrt(2 * np.maximum(1 - aligned, 0.0).sum(axis=-1))
    left, _, right = np.linalg.svd(np.swapaxes(a.x, -1, -2) @ b.x)
    left[..., -1] *= np.sign(np.linalg.det(left @ right))[..., None]
    return _coupling_distance(a, Tokens(b.x @ np.swapaxes(left @ right, -1, -2)))

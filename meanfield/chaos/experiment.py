"""One batch of a study: interacting and coupled tokens, independent samples, their distances."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.checks import check_memory
from ..core.errors import MeanfieldError
from ..models import MeanField
from ..models.transformer import Transformer
from ..results.solution import Solution
from ..solving import solve
from ..spaces import Density
from ..states import Tokens
from .measurements import Functional, Measured

BATCH = 256  # numbers that take as much memory as what is known of a batch
TOGETHER = 2**14  # tokens in a batch, about
MOST = 64  # replicas in a batch


class Batch(NamedTuple):
    """Replicas of n tokens that are run together in one array.

    The size of a batch depends on n alone, and every batch has seeds of its own:
    SeedSequence(seed, spawn_key=(n, number)). A study of fewer sizes or replicas thus has the same
    numbers as that part of a larger one. The last batch is run whole and cut.

    Attributes
    ----------
    n : int
    number : int
        Its place among the batches of this n.
    size : int
        Replicas that are run.
    kept : int
        Replicas that count.
    """

    n: int
    number: int
    size: int
    kept: int

    @property
    def replicas(self) -> slice:
        """The places of its replicas among all."""
        begin = self.number * self.size
        return slice(begin, begin + self.kept)

    def cut(self, tokens: Tokens) -> Tokens:
        """The replicas that count, of all that were run."""
        return Tokens(tokens.x[: self.kept])

    def seeds(self, seed: int, count: int) -> list[np.random.Generator]:
        """Independent generators: of the initial tokens, of the noise, and so on."""
        root = np.random.SeedSequence(seed, spawn_key=(self.n, self.number))
        return [np.random.default_rng(child) for child in root.spawn(count)]


def batches_of(sizes: list[int], replicas: int) -> list[Batch]:
    """All batches of a study, small sizes first."""
    together = {n: min(max(TOGETHER // n, 1), MOST) for n in sizes}
    count = sum(-(-replicas // size) for size in together.values())
    check_memory(f"replicas = {replicas}, in {count} batches", (BATCH, count), "replicas or sizes")
    return [
        Batch(n, begin // size, size, min(size, replicas - begin))
        for n, size in together.items()
        for begin in range(0, replicas, size)
    ]


class Experiment(NamedTuple):
    """What is done with every batch.

    Attributes
    ----------
    model : Transformer
    start : Density
        The law of the tokens at the start.
    law : Solution
        The densities, at outputs that include `times`.
    times : ndarray
    distances : mapping of str to callable
        (tokens, density) -> numbers (*replicas,).
    functionals : mapping of str to callable
        state -> numbers (*replicas,), of tokens or a density.
    coupled, floor : bool
        Whether the nonlinear process is run too; whether independent samples are drawn.
    dt : float or None
    seed : int
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

    def try_measurements(self) -> None:
        """Call every distance and functional once, so that they fail before anything is run."""
        few = Tokens(self.start.sample(6, rng=0).x.reshape(2, 3, -1))
        for measure in self.distances.values():
            _real(measure(few, self.start), few.shape)
        for value in self.functionals.values():
            _real(value(few), few.shape)
            _real(value(self.start), ())

    def limits(self, name: str) -> np.ndarray:
        """A functional of the densities at `times`."""
        return np.array([_real(self.functionals[name](law), ()) for law in self.laws], float)

    def run(self, batch: Batch) -> dict[str, np.ndarray]:
        """Numbers (times, replicas) by name."""
        first, noise, samples = batch.seeds(self.seed, 3)
        tokens = self._sample(self.start, batch, first)
        path = self._path(self.model, tokens, noise, batch, "interacting tokens")
        found = {name: self._each(path, measure) for name, measure in self.distances.items()}
        for name, value in self.functionals.items():
            found[name] = np.stack([_real(value(tokens), tokens.shape) for tokens in path])
        if self.coupled:
            noise = batch.seeds(self.seed, 3)[1]  # whose replicas have the same increments
            alone = self.model.replace(drift=MeanField(self.law))
            followed = self._path(alone, tokens, noise, batch, "tokens in the mean field")
            found["coupling"] = np.stack(list(map(_apart, path, followed)))
            turned = list(map(_apart_up_to_rotation, path, followed))
            found["coupling up to rotation"] = np.stack(turned)
        if self.floor:
            independent = [batch.cut(self._sample(law, batch, samples)) for law in self.laws]
            for name, measure in self.distances.items():
                found[f"floor of {name}"] = self._each(independent, measure)
        return found

    def identity(self) -> dict[str, Any]:
        """What determines the numbers: callables by their names."""
        named = {"distances": list(self.distances), "functionals": list(self.functionals)}
        return self._asdict() | named | {"law": (len(self.law.t), self.law.rtol)}

    @property
    def laws(self) -> list[Any]:
        """The densities at `times`."""
        return [self.law[int(np.abs(self.law.t - t).argmin())] for t in self.times]

    def _path(self, model, tokens: Tokens, rng, batch: Batch, what: str) -> list[Tokens]:
        """The tokens that count, at `times`."""
        options: dict[str, Any] = {"rng": rng, "dt": self.dt} if model.noisy else {}
        span = (float(self.law.t[0]), float(self.times[-1]))
        run = solve(model, tokens, span, t_eval=self.times, progress=False, **options)
        if not run.success:
            raise MeanfieldError(f"A run of {len(tokens)} {what} ended early: {run.message}")
        return [batch.cut(state) for state in run if isinstance(state, Tokens)]

    def _each(self, states: list[Tokens], measure: Measured) -> np.ndarray:
        pairs = zip(states, self.laws, strict=True)
        return np.stack([_real(measure(tokens, law), tokens.shape) for tokens, law in pairs])

    @staticmethod
    def _sample(law: Density, batch: Batch, rng: np.random.Generator) -> Tokens:
        x = law.sample(batch.size * batch.n, rng=rng).x
        return Tokens(x.reshape(batch.size, batch.n, -1))


def _real(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(values)
    if array.shape != shape or array.dtype.kind not in "fiu":
        raise ValueError(
            "Functionals return one real number for a density; distances and functionals return a "
            f"real number for each replica, {shape}; got shape {array.shape} of {array.dtype}."
        )
    return array


def _apart(a: Tokens, b: Tokens) -> np.ndarray:
    """Root mean square of the Euclidean distance between coupled tokens, (replicas,)."""
    return np.sqrt(((a.x - b.x) ** 2).sum(axis=-1).mean(axis=-1))


def _apart_up_to_rotation(a: Tokens, b: Tokens) -> np.ndarray:
    """The least of that over rotations of one of the two (Kabsch), by singular vectors."""
    left, _, right = np.linalg.svd(np.swapaxes(a.x, -1, -2) @ b.x)
    left[..., -1] *= np.sign(np.linalg.det(left @ right))[..., None]
    return _apart(a, Tokens(b.x @ np.swapaxes(left @ right, -1, -2)))

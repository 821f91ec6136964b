"""One batch of a study: interacting tokens, coupled ones, independent samples; distances."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import MeanfieldError
from ..models import MeanField
from ..models.transformer import Transformer
from ..results.solution import Solution
from ..solving import solve
from ..spaces.density import Density
from ..states import Tokens
from .batches import Batch
from .measures import Measured

__all__ = ["Experiment"]


class Experiment(NamedTuple):
    """What is done with every batch.

    Attributes
    ----------
    model : Transformer
    start : Density
        The law of the tokens at the start.
    law : Solution
        The densities, at outputs among which `times` are.
    times : ndarray
    distances : mapping of str to callable
        (tokens, density) -> numbers (*replicas,).
    functionals : mapping of str to callable
        state -> numbers (*replicas,), of tokens or a density.
    coupled, floor : bool
        Whether the nonlinear process is run too, and independent samples are drawn.
    dt : float or None
    seed : int
    """

    model: Transformer
    start: Density
    law: Solution
    times: np.ndarray
    distances: Mapping[str, Measured]
    functionals: Mapping[str, Callable[[Any], Any]]
    coupled: bool
    floor: bool
    dt: float | None
    seed: int

    def tried(self) -> None:
        """Call every distance and functional once; raises what they raise, or ValueError."""
        few = Tokens(self.start.sample(6, rng=0).x.reshape(2, 3, -1))
        for measure in self.distances.values():
            _numbers(measure(few, self.start), few)
        for value in self.functionals.values():
            _numbers(value(few), few)
            _limit(value, self.start)

    def limits(self, name: str) -> np.ndarray:
        """A functional of the densities at `times`."""
        return np.array([_limit(self.functionals[name], law) for law in self.laws])

    def run(self, batch: Batch) -> dict[str, np.ndarray]:
        """Numbers (times, replicas) by name."""
        first, noise, samples = batch.seeds(self.seed, 3)
        tokens = self._sample(self.start, batch, first)
        state = noise.bit_generator.state
        path = self._path(self.model, tokens, noise, batch, "interacting tokens")
        found = {name: self._each(path, measure) for name, measure in self.distances.items()}
        for name, value in self.functionals.items():
            found[name] = np.stack([_numbers(value(tokens), tokens) for tokens in path])
        if self.coupled:
            noise.bit_generator.state = state
            alone = Transformer(MeanField(self.law), self.model.kappa)
            followed = self._path(alone, tokens, noise, batch, "tokens in the mean field")
            found["coupling"] = np.stack(list(map(_apart, path, followed)))
            turned = list(map(_apart_up_to_rotation, path, followed))
            found["coupling up to rotation"] = np.stack(turned)
        if self.floor:
            independent = [batch.cut(self._sample(law, batch, samples)) for law in self.laws]
            for name, measure in self.distances.items():
                found[f"floor of {name}"] = self._each(independent, measure)
        return found

    def describe(self) -> dict[str, Any]:
        """What determines the numbers, as plain data and arrays."""
        return {
            "model": self.model,
            "initial": self.start,
            "times": self.times,
            "outputs": len(self.law.t),
            "rtol": self.law.rtol,
            "dt": self.dt,
            "seed": self.seed,
            "distances": list(self.distances),
            "functionals": list(self.functionals),
            "coupled": self.coupled,
            "floor": self.floor,
        }

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
        return np.stack([_numbers(measure(tokens, law), tokens) for tokens, law in pairs])

    @staticmethod
    def _sample(law: Density, batch: Batch, rng: np.random.Generator) -> Tokens:
        x = law.sample(batch.size * batch.n, rng=rng).x
        return Tokens(x.reshape(batch.size, batch.n, -1))


def _numbers(values: Any, tokens: Tokens) -> np.ndarray:
    """One real number for each replica; raises ValueError for others."""
    array = np.asarray(values)
    if array.shape != tokens.shape or array.dtype.kind not in "fiu":
        raise ValueError(
            f"Distances and functionals return a real number for each replica, {tokens.shape}; got "
            f"shape {array.shape} of {array.dtype}."
        )
    return array


def _limit(value: Callable[[Any], Any], law: Any) -> float:
    """A functional of a density, one real number; raises ValueError for others."""
    array = np.asarray(value(law))
    if array.shape != () or array.dtype.kind not in "fiu":
        raise ValueError(
            "Functionals return one real number for a density, and one for each replica of tokens; "
            f"got shape {array.shape} of {array.dtype}."
        )
    return float(array)


def _apart(a: Tokens, b: Tokens) -> np.ndarray:
    """Root mean square of the distance of coupled tokens, in space, (replicas,)."""
    return np.sqrt(((a.x - b.x) ** 2).sum(axis=-1).mean(axis=-1))


def _apart_up_to_rotation(a: Tokens, b: Tokens) -> np.ndarray:
    """The least over rotations of one of the two (Kabsch), by the singular vectors of sum a b^T."""
    left, _, right = np.linalg.svd(np.swapaxes(a.x, -1, -2) @ b.x)
    left[..., -1] *= np.sign(np.linalg.det(left @ right))[..., None]
    return _apart(a, Tokens(b.x @ np.swapaxes(left @ right, -1, -2)))

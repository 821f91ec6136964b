"""Degrees that a model needs, whatever the degree of the densities that it moves."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..core.annotations import Values
from ..core.cached import cached_property
from ..core.errors import MeanfieldError
from ..models import HigherOrder, PairKernel, ZonalDrift
from ..models.transformer import Transformer
from ..spaces import Space
from ..spaces.validity import HarmonicSizes

HIDDEN = 1e-10  # harmonics of a function that count, relative to the largest
FIELD_ROUNDING, LEAST_FIELD = 1e-13, 0.01  # relative rounding error, of means at least this large


class ModelFunction(NamedTuple):
    """Harmonics of one function in a model.

    Attributes
    ----------
    name : str
        Name of the function in messages.
    sizes : HarmonicSizes
    share : float
        Densities of degree L resolve harmonics up to `share` * L; 1 for functions of one point.
    """

    name: str
    sizes: HarmonicSizes
    share: float = 1.0

    @property
    def limit(self) -> float:
        """Least size of a harmonic that counts."""
        rounding = FIELD_ROUNDING * (LEAST_FIELD + float(self.sizes.sizes[0]))
        return max(HIDDEN * self.sizes.beyond(0), rounding)


class ModelHarmonics:
    """Harmonics of the fields, kernels, feed-forward map and noise of a model on a space.

    If the degree of a density is too low for them, these functions look simpler than they are, or
    like 0, and nothing in the density tells of it.

    Parameters
    ----------
    model : Transformer
    space : Space
    searched : int
        Highest degree of a search for states, where perturbations of higher degrees than a density
        may grow: then W has its multipliers up to this degree. Onsets, which have normal forms
        with twice the degree, need twice that of W and other kernels. 0 for runs, in which a
        density does not feel higher multipliers.
    """

    def __init__(self, model: Transformer, space: Space, searched: int = 0) -> None:
        self._model, self._most = model, searched
        self._space: Space = getattr(space, "slice_space", space)

    @cached_property
    def functions(self) -> list[ModelFunction]:
        """All functions of the model that have harmonics."""
        return list(self._each())

    def _each(self) -> Iterator[ModelFunction]:
        model, space = self._model, self._space
        drift: Values = model.drift
        for factor, part in () if drift.is_absent else drift.terms:
            if isinstance(factor, float | np.ndarray) and not np.any(factor):
                continue
            if part.is_zonal:
                if self._most:
                    yield ModelFunction(f"W of {part!r}", self._of_kernel(part), 0.5)
            elif isinstance(part, HigherOrder):
                for modes, share in ((part.modes, 0.5), ((part.harmonic,), 1.0)):
                    if self._most or share == 1:
                        degrees = np.abs(modes)
                        sizes = HarmonicSizes(degrees, np.ones(len(degrees)))
                        yield ModelFunction(repr(part), sizes, share)
            elif getattr(part, "harmonics", None) is not None:
                for one in part.singles:
                    yield ModelFunction(repr(one), one.harmonics.on(space))
                    if self._most and one.interacts:
                        yield ModelFunction(repr(one), one.harmonics.on(space), 0.5)
                    if isinstance(one, PairKernel):  # the second point is integrated over
                        second = one.second_harmonics.on(space)
                        yield ModelFunction(repr(one), second, 2.0)
        if model.feedforward is not None:
            yield ModelFunction("the feed-forward map", model.feedforward_harmonics.on(space))
        if self._most and not model.noise.is_absent and model.noise.harmonics is not None:
            yield ModelFunction(f"the scale of {model.noise!r}", model.noise.harmonics.on(space))

    def _of_kernel(self, part: ZonalDrift) -> HarmonicSizes:
        """Multipliers of W up to the highest degree of a search."""
        space, degree = self._space, max(self._most, self._space.degree)
        if space.spherical:
            table = part.as_zonal().attraction(degree, space.dimension)
            return HarmonicSizes(np.arange(degree + 1), table)
        fine = space.with_degree(degree)
        return HarmonicSizes(fine.level_degrees, fine.attraction(part.as_zonal()))

    def needed(self, degree: int) -> tuple[int, str]:
        """Least degree, from `degree` on, that hides no harmonics, and the name of what needs it.

        The name is "" if `degree` itself is enough.
        """
        name = ""
        for function in self.functions:
            seen = function.sizes.seen_from(math.floor(function.share * degree), function.limit)
            wanted = math.ceil(seen / function.share)
            if self._most:
                wanted = min(wanted, max(seen, self._most))
            if wanted > degree:
                degree, name = wanted, function.name
        return degree, name

    def check(self, degree: int) -> None:
        """Raise MeanfieldError if a degree hides harmonics."""
        needed, name = self.needed(degree)
        if name:
            raise MeanfieldError(
                f"The degree {degree} hides harmonics of degree {needed} of {name}. Use a degree "
                f"of at least {needed}, or a max_degree that allows it."
            )

    def moving(self, degree: int) -> np.ndarray:
        """Shares (degree + 1,) of moments of each degree in those above `degree`.

        A function of one point carries moments of degree l there by its harmonics above degree - l.
        The share is the size of these, relative to its largest harmonic.
        """
        shares = np.zeros(degree + 1)
        for function in self.functions:
            if function.share == 1:
                sizes = np.where(function.sizes.sizes > function.limit, function.sizes.sizes, 0.0)
                above = np.append(np.maximum.accumulate(sizes[:0:-1])[::-1], 0.0)
                above = np.pad(above / (above[0] or 1.0), (0, max(0, degree + 1 - above.size)))
                shares = np.maximum(shares, above[degree::-1])
        return shares

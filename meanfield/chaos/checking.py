"""The arguments of a study, checked before anything is computed."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from ..core.checks import positive, real_array, whole_number
from ..models.transformer import Transformer
from ..spaces import Circle, Sphere
from ..spaces.density import Density

__all__ = ["check_names", "check_problem", "checked_dt", "checked_replicas", "checked_seed",
           "checked_sizes", "checked_times"]  # fmt: skip

LARGEST_SEED = 2**63  # what files hold
NEAR = 1e-9  # times closer than this, in parts of the last, make no field
RESERVED = ("n", "t", "replica", "coupling", "coupling up to rotation")


def check_problem(model: Any, mu0: Any) -> None:
    """Raise TypeError or ValueError for what densities and tokens cannot both follow."""
    if not isinstance(model, Transformer) or not isinstance(mu0, Density):
        raise TypeError(
            "propagation_of_chaos expects a Transformer and a Density; got "
            f"{type(model).__name__} and {type(mu0).__name__}."
        )
    if not isinstance(mu0.geometry, Circle | Sphere) or mu0.shape or model.shape:
        raise ValueError(
            "propagation_of_chaos expects a single density on the circle or S^2 and a single "
            f"model; got {mu0!r} and {model!r}."
        )


def checked_sizes(sizes: Any) -> list[int]:
    """Increasing numbers of tokens, at least 2."""
    if not isinstance(sizes, Iterable) or isinstance(sizes, str | dict):
        raise TypeError(f"sizes is a sequence of numbers of tokens, [64, 256]; got {sizes!r}.")
    given = list(sizes)
    whole = [whole_number("sizes are whole numbers n", "n", n) for n in given]
    if not whole or min(whole) < 2 or sorted(set(whole)) != whole:
        raise ValueError(f"sizes are increasing numbers of tokens >= 2; got {given}.")
    return whole


def checked_times(times: Any) -> np.ndarray:
    """Increasing times from 0 on."""
    array = real_array("times", times)
    if (
        array.ndim != 1
        or not array.size
        or not np.isfinite(array).all()
        or array[0] < 0
        or array[-1] <= 0
        or not (np.diff(array) > NEAR * array[-1]).all()
    ):
        raise ValueError(
            "times are finite, >= 0 and increasing, by more than 1e-9 of the last, which is > 0; "
            f"got {times!r}."
        )
    return array


def checked_replicas(replicas: Any) -> int:
    """At least 2, for errors of means."""
    number = isinstance(replicas, Integral) and not isinstance(replicas, bool)
    if not number or replicas < 2:
        raise ValueError(
            "propagation_of_chaos needs a whole number of replicas >= 2, for errors of means; got "
            f"replicas = {replicas!r}."
        )
    return int(replicas)


def checked_seed(rng: Any) -> int:
    """A whole number that files can hold."""
    number = isinstance(rng, Integral) and not isinstance(rng, bool)
    if not number or not 0 <= rng < LARGEST_SEED:
        raise ValueError(
            "propagation_of_chaos needs a seed, a whole number 0 <= rng < 2^63, from which batches "
            f"have theirs; got rng = {rng!r}."
        )
    return int(rng)


def checked_dt(dt: Any, model: Transformer) -> float | None:
    """Positive, and for noise only."""
    if dt is None:
        return None
    positive(dt=dt)
    if not model.noisy:
        raise ValueError(
            f"dt is the step of tokens with noise, and this model has none; leave it out, got {dt}."
        )
    return float(dt)


def check_names(distances: Iterable[str], functionals: Iterable[str]) -> None:
    """Raise ValueError for names that a table or a file cannot hold, or that stand for others."""
    taken: set[str] = set()
    for name in [*distances, *functionals]:
        kept = name in RESERVED or name.startswith(("floor of ", "limit of "))
        if kept or name in taken or not name or "/" in name:
            raise ValueError(
                "Names of distances and functionals differ from each other, from "
                f"{', '.join(RESERVED)}, 'floor of ...' and 'limit of ...', and have no '/'; got "
                f"{name!r}."
            )
        taken.add(name)

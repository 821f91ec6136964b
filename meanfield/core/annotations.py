"""Names for annotations: each type that mypy cannot describe is called by the reason.

Rooms use these names in place of `Any`. A value truly of any type is an `object`.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

UserValue: TypeAlias = Any  # of a call or a file, before the check that converts it
Json: TypeAlias = Any  # data of JSON or TOML: None, booleans, numbers, texts, lists, tables
JsonTable: TypeAlias = dict[str, Json]
Values: TypeAlias = Any  # a number, an array or a `Dual`: formulas are written once for all three
Observations: TypeAlias = dict[str, Values]  # numbers and arrays by the names of observables
Snapshot: TypeAlias = dict[str, Values]  # numbers and arrays of a run, as checkpoints hold them
Parameters: TypeAlias = dict[str, Any]  # values by the names of parameters, each of its own type
PassedOn: TypeAlias = Any  # an argument for another function, whose signature checks it
Function: TypeAlias = Callable[..., Any]  # a callable with the signature that its docstring states
MovedState: TypeAlias = Any  # a state of the class that a motion or a model moves
AnyObject: TypeAlias = Any  # an object of any class, whose attributes are looked up by name
OfLibrary: TypeAlias = Any  # an object of a library without types: scipy, numba, torch
FromAbove: TypeAlias = Any  # an object of a room above, such as a `Solution`
TypeHint: TypeAlias = Any  # an annotation: a class, a union, Literal[...], Annotated[...]
ArrayIndex: TypeAlias = Any  # whole numbers, slices, masks and arrays, or a tuple of these
Narrowed: TypeAlias = Any  # of a class that a subclass requires and its base does not
TangentNames: TypeAlias = Sequence[str | None]  # of parameters; None for directions of a state

# The argument `rng`: a generator, or a seed
RandomSource: TypeAlias = int | Sequence[int] | np.random.Generator | np.random.SeedSequence | None

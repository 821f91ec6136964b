"""The result of every distance: a number or an array, with an error bound and the method."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


class Distance(NDArrayOperatorsMixin):
    """A distance, which is used as a number, or as an array of numbers.

    Arithmetic, comparisons and numpy functions act on `value` and return numbers or arrays.

    Attributes
    ----------
    value : float or ndarray, (*ensemble,)
    error : float or ndarray, (*ensemble,)
        The distance lies in value +- error, up to rounding.
    method : str
        How the value was computed.
    """

    def __init__(self, value: Any, error: Any, method: str):
        value, error = np.asarray(value, dtype=float), np.asarray(error, dtype=float)
        self.value: Any = float(value) if value.ndim == 0 else value
        self.error: Any = float(error) if error.ndim == 0 else error
        self.method = method

    def __repr__(self) -> str:
        if isinstance(self.value, float):
            return f"Distance({self.value:.10g}, error {self.error:.1g}, {self.method})"
        largest = np.max(self.error, initial=0.0)
        return f"Distance({self.value}, error <= {largest:.1g}, {self.method})"

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, specification: str) -> str:
        return format(self.value, specification)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype=dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        options.pop("out", None)  # w += 1 makes w a number
        values = [x.value if isinstance(x, Distance) else x for x in inputs]
        return getattr(ufunc, method)(*values, **options)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __iter__(self) -> "Iterator[Distance]":
        if not self.shape:
            raise TypeError("A single Distance is a number, not a sequence of them.")
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, member: Any) -> "Distance":
        value, error = np.asarray(self.value)[member], np.asarray(self.error)[member]
        return Distance(value, error, self.method)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the ensemble; () for one number."""
        return np.shape(self.value)

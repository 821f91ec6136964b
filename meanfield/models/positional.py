"""Positions of tokens in attention: their effects on queries, keys and logits.

Tokens have the positions i = 0, ..., n - 1 in their order, those without mass included. A density
has no order, so that attention with positions moves tokens only.
"""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np

from ..core.checks import finite_array, require
from ..core.forms import Array, Natural, Positive
from ..core.kinds import Kind


class PositionalEncoding(Kind, family=True):
    """Effect of positions in `Attention`, see ``Attention(positions=...)``.

    A kind of one's own has `turned`, or `terms`, or both.

    Attributes
    ----------
    adds : bool
        Whether it adds terms to the logits.
    heads : int or None
        The required number of heads; None if the encoding is the same for all heads.
    """

    adds: ClassVar[bool] = False
    heads: ClassVar[int | None] = None

    def turned(self, rows: np.ndarray) -> np.ndarray:
        """Queries or keys (..., n, k) of n tokens, changed by their positions; linear in `rows`."""
        return rows

    def terms(self, i: np.ndarray, j: np.ndarray, head: int) -> np.ndarray:
        """Terms added to the logits of a head; positions i of queries and j of keys broadcast."""
        return np.zeros(np.broadcast_shapes(i.shape, j.shape))

    def of_head(self, head: int) -> Callable[[slice, slice], np.ndarray] | None:
        """A function (rows, columns) -> terms added to a block of the logits of a head; or None."""
        return partial(self._block, head) if self.adds else None

    def _block(self, head: int, rows: slice, columns: slice) -> np.ndarray:
        i, j = (np.arange(part.start, part.stop) for part in (rows, columns))
        return self.terms(i[:, None], j, head)

    def check_size(self, size: int) -> None:
        """Raise ValueError unless the encoding is for heads of this size k."""


class Rotary(PositionalEncoding):
    """Rotary positions: pairs of coordinates of queries and keys are turned by their position.

        (u, w) at position i <- (u cos a - w sin a, w cos a + u sin a),    a = i base^(-2 m/size)

    for the pair m = 0, ..., size/2 - 1, so that <q_i, k_j> depends on i - j alone.

    Parameters
    ----------
    base : float
        > 0; 10000 by default.
    size : int, optional
        How many coordinates of each head are turned, an even number; the first ones. All by
        default.
    interleaved : bool
        Whether pairs are neighbours (2m, 2m + 1), as in GPT-J, rather than (m, m + size/2), as in
        Llama and GPT-NeoX.

    Raises
    ------
    ValueError
        If `size` is odd; in `Attention`, if heads have fewer coordinates, or an odd number.

    References
    ----------
    Su, Lu, Pan, Murtadha, Wen and Liu, arXiv:2104.09864, equation (34).
    """

    base: Positive = 10000.0
    size: Natural | None = None
    interleaved: bool = False

    def validate(self) -> None:
        even = self.size is None or self.size % 2 == 0
        require("size", self.size, "an even number of coordinates", even)

    def check_size(self, size: int) -> None:
        if size < (self.size or 2) or (self.size is None and size % 2):
            expected = "an even number of" if self.size is None else f"{self.size} or more"
            raise ValueError(f"{self!r} needs heads of {expected} coordinates k; got k = {size}.")

    def turned(self, rows: np.ndarray) -> np.ndarray:
        """Rows (..., n, d) with pair i turned, at place p, by p base^(-2 i / size)."""
        self.check_size(rows.shape[-1])
        size = self.size or rows.shape[-1]
        half, result = size // 2, rows.copy()
        angles = np.arange(rows.shape[-2])[:, None] * self.base ** (-np.arange(half) / half)
        cosine, sine = (f(angles).astype(rows.dtype) for f in (np.cos, np.sin))
        abscissae, ordinates = slice(half), slice(half, size)
        if self.interleaved:
            abscissae, ordinates = slice(0, size, 2), slice(1, size, 2)
        u, w = rows[..., abscissae], rows[..., ordinates]
        result[..., abscissae] = u * cosine - w * sine
        result[..., ordinates] = w * cosine + u * sine
        return result


class ALiBi(PositionalEncoding):
    """Linear biases: -slope |i - j| is added to the logit of query i and key j.

    Parameters
    ----------
    slopes : number or array, (H,)
        Of all heads, or of each. The paper's for H heads: 2^(-8 h/H), h = 1, ..., H.

    Raises
    ------
    ValueError
        For slopes of another shape; in `Attention`, for another number of heads.

    References
    ----------
    Press, Smith and Lewis, arXiv:2108.12409 (for causal attention, where i >= j).
    """

    adds = True

    slopes: Array

    def validate(self) -> None:
        shape = self.slopes.shape
        require("slopes.shape", shape, "() or (H,)", len(shape) <= 1 and self.slopes.size > 0)

    @property
    def heads(self) -> int | None:  # type: ignore[override]
        return self.slopes.size if self.slopes.ndim else None

    def terms(self, i: np.ndarray, j: np.ndarray, head: int) -> np.ndarray:
        return -(self.slopes[head] if self.slopes.ndim else self.slopes) * np.abs(i - j)


class RelativeBias(PositionalEncoding):
    """A number for each difference of positions is added to the logit of query i and key j.

    That is values[m + clip(j - i, -m, m)]: all keys that are m or more away have the same.

    Parameters
    ----------
    values : array, (2m + 1,) or (H, 2m + 1)
        Of all heads, or of each.

    Raises
    ------
    ValueError
        For values of another shape; in `Attention`, for another number of heads.

    References
    ----------
    Raffel and others, J. Mach. Learn. Res. 21 (2020) 140, section 2.1 (T5, with differences in
    buckets).
    """

    adds = True

    values: Array

    def validate(self) -> None:
        values = finite_array("values", self.values)
        fits = values.ndim in (1, 2) and values.size > 0 and values.shape[-1] % 2 == 1
        require("values.shape", values.shape, "(2m + 1,) or (H, 2m + 1)", fits)

    @property
    def heads(self) -> int | None:  # type: ignore[override]
        return len(self.values) if self.values.ndim == 2 else None

    def terms(self, i: np.ndarray, j: np.ndarray, head: int) -> np.ndarray:
        row = self.values[head] if self.values.ndim == 2 else self.values
        farthest = row.size // 2
        return row[farthest + np.clip(j - i, -farthest, farthest)]

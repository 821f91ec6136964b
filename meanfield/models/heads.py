"""Heads of attention: the matrices Q, K, V and the output projection, and whether they fit.

A number stands for that multiple of the identity. Without an axis of heads a matrix, or a
number, serves all heads.
"""

from collections.abc import Iterator, Mapping

import numpy as np

__all__ = ["check_shapes", "dimension", "heads", "norm"]

Shapes = Mapping[str, tuple[int, ...] | None]


def check_shapes(shapes: Shapes) -> None:
    """Raise ValueError unless matrices of these shapes make attention on one R^d.

    Parameters
    ----------
    shapes : mapping
        Of "Q", "K", "V", and "output" if there is one: () for a number, None where unknown.
    """
    q, k = shapes["Q"], shapes["K"]
    if q and k and q != k:
        raise ValueError(
            "Q and K must have equal shapes, (k, d) or (H, k, d), for their inner products; "
            f"got Q {q} and K {k}."
        )
    if q == () or k == ():
        _check_square("Q" if q else "K", q or k, "beside a multiple of the identity")
    _check_values(shapes["V"], shapes.get("output", ()), "output" in shapes)
    _check_one("numbers of heads", {n: s[0] for n, s in shapes.items() if s and len(s) == 3})
    dimension(shapes)


def dimension(shapes: Shapes) -> int | None:
    """The d of tokens that matrices of these shapes act on; None where numbers leave it open."""
    axes = {"Q": -1, "K": -1, "V": -1, "output": -2}
    return _check_one("dimensions d", {n: s[axes[n]] for n, s in shapes.items() if s})


def heads(matrices: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """The matrices of each head in turn, (rows, columns), or a number ()."""
    count = max((len(m) for m in matrices.values() if m.ndim == 3), default=1)
    for h in range(count):
        yield {name: m[h] if m.ndim == 3 else m for name, m in matrices.items()}


def norm(matrix: np.ndarray) -> float:
    """The largest singular value, that of all heads added; of a number its modulus."""
    if matrix.ndim == 0:
        return float(np.abs(matrix))
    return float(np.linalg.svd(matrix, compute_uv=False)[..., 0].sum())


def _check_values(v, output, projected: bool) -> None:
    if not projected:
        advice = "unless `output` (d, k) takes its values back to R^d"
        _check_square("V", v, advice)
    elif v == () or output == ():
        _check_square("V" if v else "output", v or output, "beside a multiple of the identity")
    elif v and output and output[-2:] != v[-2:][::-1]:
        raise ValueError(
            "V (k, d) or (H, k, d) and output (d, k) or (H, d, k) must be of opposite shapes; "
            f"got V {v} and output {output}."
        )


def _check_square(name: str, shape, where: str) -> None:
    if shape and shape[-1] != shape[-2]:
        raise ValueError(f"{name} must be square, (d, d) or (H, d, d), {where}; got {shape}.")


def _check_one(what: str, found: Mapping[str, int]) -> int | None:
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {number}" for name, number in found.items())
        raise ValueError(f"The matrices have different {what}: {listed}. Give them the same.")
    return next(iter(found.values()), None)

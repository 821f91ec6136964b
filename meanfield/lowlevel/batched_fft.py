"""Complex Fourier transforms of eight columns side by side, compiled.

For many rings of latitude FFTW transforms one ring after the other, and data have to be transposed
before and after. Here eight transforms run in the eight lanes of a register, without transposition
or shuffling, in half the time of FFTW's.

An array of n rows has eight complex columns: a row is eight real parts, then eight imaginary parts.
The algorithm is Stockham's, which needs no reordering, with factors 8, 5, 4 and 3.
"""

from typing import Any

import numpy as np

from .compilation import INNER, SUBROUTINE, njit
from .records import numbers_at
from .simd import LANES, load, store

PLANE = 8 * LANES  # bytes of eight real or imaginary parts
ROW = 2 * PLANE  # bytes of a row
HALF_ROOT = np.sqrt(0.5)
COS_3, SIN_3 = -0.5, np.sqrt(0.75)
COS_5, COS_5_TWICE = np.cos(2 * np.pi / 5), np.cos(4 * np.pi / 5)
SIN_5, SIN_5_TWICE = np.sin(2 * np.pi / 5), np.sin(4 * np.pi / 5)


def good_length(n: int) -> int:
    """The length >= n, a multiple of 4, with the lowest estimated cost length * (passes + 1)."""
    lengths = range(-(-n // 4) * 4, n + n // 2 + 8, 4)
    fast = [length for length in lengths if radices(length)]
    return min(fast, key=lambda length: length * (len(radices(length)) + 1))


def radices(length: int) -> list[int]:
    """The factors 8, 5, 4 and 3 of a multiple of 4, one for each pass; [] if there are others."""
    factors = []
    for radix in (8, 4, 5, 3):
        while length % radix == 0:
            factors.append(radix)
            length //= radix
    if length == 2:  # 2 * 8 = 4 * 4
        factors.remove(8)
        factors, length = [*factors, 4, 4], 1
    return sorted(factors, reverse=True) if length == 1 else []


def twiddles(factors: list[int]) -> np.ndarray:
    """Cosines and sines of all passes, one after the other: (p, j, 2) of 2 pi p j / n each."""
    n, tables = int(np.prod(factors)), []
    for radix in factors:
        angles = 2 * np.pi / n * np.arange(n // radix)[:, None] * np.arange(1, radix)
        tables.append(np.stack([np.cos(angles), np.sin(angles)], axis=-1).ravel())
        n //= radix
    return np.concatenate(tables)


@njit(**SUBROUTINE)
def transform(source: int, target: int, scratch: int, factors: np.ndarray, table: int) -> None:
    """Transform target[j] = sum_k source[k] e^{2 pi i j k / n} of eight columns.

    `source`, `target` and `scratch` are addresses of different arrays, `table` is that of the
    `twiddles` of the factors. The transform with the opposite sign has the same entries, the one of
    j at the index n - j.
    """
    n, stride, begin = 1, np.int64(1), 0  # a literal stride would compile the passes twice
    for radix in factors:
        n *= radix
    for i in range(factors.size):
        radix, into = factors[i], target if (factors.size - i) % 2 == 1 else scratch
        count = n // radix
        w = table + 8 * begin
        if radix == 8:
            _pass_8(source, into, count, stride, w)
        elif radix == 5:
            _pass_5(source, into, count, stride, w)
        elif radix == 4:
            _pass_4(source, into, count, stride, w)
        else:
            _pass_3(source, into, count, stride, w)
        source, begin, n, stride = into, begin + 2 * n - 2 * count, count, stride * radix


@njit(**INNER)
def read_row(address: int) -> tuple[Any, Any]:
    """Real and imaginary parts of the row at an address."""
    return load(address), load(address + PLANE)


@njit(**INNER)
def write_row(address: int, re: Any, im: Any) -> None:
    """Write the row at an address."""
    store(address, re)
    store(address + PLANE, im)


@njit(**INNER)
def _turn(address: int, re: Any, im: Any, turn: int) -> None:
    """Write a row times e^{i angle}; cosine and sine of the angle are at the address `turn`."""
    w = numbers_at(turn, 0, 0.0)
    c, s = w[0], w[1]
    write_row(address, c * re - s * im, c * im + s * re)


@njit(**INNER)
def _pass_3(source: int, target: int, count: int, stride: int, turns: int) -> None:
    """Pass of the transform with factor 3: `count` groups of three rows, `stride` rows apart."""
    step_in, step_out = count * stride * ROW, stride * ROW
    for p in range(count):
        w = turns + 32 * p
        for q in range(stride):
            a, b = source + (q + stride * p) * ROW, target + (q + stride * 3 * p) * ROW
            x0, y0 = read_row(a)
            x1, y1 = read_row(a + step_in)
            x2, y2 = read_row(a + 2 * step_in)
            sx, sy, dx, dy = x1 + x2, y1 + y2, SIN_3 * (x1 - x2), SIN_3 * (y1 - y2)
            ex, ey = x0 + COS_3 * sx, y0 + COS_3 * sy
            write_row(b, x0 + sx, y0 + sy)
            _turn(b + step_out, ex - dy, ey + dx, w)
            _turn(b + 2 * step_out, ex + dy, ey - dx, w + 16)


@njit(**INNER)
def _pass_4(source: int, target: int, count: int, stride: int, turns: int) -> None:
    """Pass of the transform with factor 4: `count` groups of four rows, `stride` rows apart."""
    step_in, step_out = count * stride * ROW, stride * ROW
    for p in range(count):
        w = turns + 48 * p
        for q in range(stride):
            a, b = source + (q + stride * p) * ROW, target + (q + stride * 4 * p) * ROW
            x0, y0, x1, y1, x2, y2, x3, y3 = _four(a, step_in)
            write_row(b, x0, y0)
            _turn(b + step_out, x1, y1, w)
            _turn(b + 2 * step_out, x2, y2, w + 16)
            _turn(b + 3 * step_out, x3, y3, w + 32)


@njit(**INNER)
def _four(address: int, step: int) -> tuple[Any, ...]:
    """Transform of length 4 of the rows at distances 0, `step`, 2 `step`, 3 `step`."""
    x0, y0 = read_row(address)
    x1, y1 = read_row(address + step)
    x2, y2 = read_row(address + 2 * step)
    x3, y3 = read_row(address + 3 * step)
    ax, ay, bx, by = x0 + x2, y0 + y2, x0 - x2, y0 - y2
    cx, cy, dx, dy = x1 + x3, y1 + y3, x1 - x3, y1 - y3
    return ax + cx, ay + cy, bx - dy, by + dx, ax - cx, ay - cy, bx + dy, by - dx


@njit(**INNER)
def _pass_5(source: int, target: int, count: int, stride: int, turns: int) -> None:
    """Pass of the transform with factor 5: `count` groups of five rows, `stride` rows apart."""
    step_in, step_out = count * stride * ROW, stride * ROW
    for p in range(count):
        w = turns + 64 * p
        for q in range(stride):
            a, b = source + (q + stride * p) * ROW, target + (q + stride * 5 * p) * ROW
            x0, y0 = read_row(a)
            x1, y1 = read_row(a + step_in)
            x2, y2 = read_row(a + 2 * step_in)
            x3, y3 = read_row(a + 3 * step_in)
            x4, y4 = read_row(a + 4 * step_in)
            sx, sy, dx, dy = x1 + x4, y1 + y4, x1 - x4, y1 - y4
            tx, ty, ux, uy = x2 + x3, y2 + y3, x2 - x3, y2 - y3
            write_row(b, x0 + sx + tx, y0 + sy + ty)
            ex, ey = x0 + COS_5 * sx + COS_5_TWICE * tx, y0 + COS_5 * sy + COS_5_TWICE * ty
            fx, fy = SIN_5 * dx + SIN_5_TWICE * ux, SIN_5 * dy + SIN_5_TWICE * uy
            _turn(b + step_out, ex - fy, ey + fx, w)
            _turn(b + 4 * step_out, ex + fy, ey - fx, w + 48)
            ex, ey = x0 + COS_5_TWICE * sx + COS_5 * tx, y0 + COS_5_TWICE * sy + COS_5 * ty
            fx, fy = SIN_5_TWICE * dx - SIN_5 * ux, SIN_5_TWICE * dy - SIN_5 * uy
            _turn(b + 2 * step_out, ex - fy, ey + fx, w + 16)
            _turn(b + 3 * step_out, ex + fy, ey - fx, w + 32)


@njit(**INNER)
def _pass_8(source: int, target: int, count: int, stride: int, turns: int) -> None:
    """Pass of the transform with factor 8: `count` groups of eight rows, `stride` rows apart."""
    step_in, step_out = count * stride * ROW, stride * ROW
    for p in range(count):
        w = turns + 112 * p
        for q in range(stride):
            a, b = source + (q + stride * p) * ROW, target + (q + stride * 8 * p) * ROW
            x0, y0, x1, y1, x2, y2, x3, y3 = _four(a, 2 * step_in)
            u0, v0, u1, v1, u2, v2, u3, v3 = _four(a + step_in, 2 * step_in)
            u1, v1 = HALF_ROOT * (u1 - v1), HALF_ROOT * (v1 + u1)
            u3, v3 = HALF_ROOT * (u3 + v3), HALF_ROOT * (v3 - u3)
            write_row(b, x0 + u0, y0 + v0)
            _turn(b + step_out, x1 + u1, y1 + v1, w)
            _turn(b + 2 * step_out, x2 - v2, y2 + u2, w + 16)
            _turn(b + 3 * step_out, x3 - u3, y3 - v3, w + 32)
            _turn(b + 4 * step_out, x0 - u0, y0 - v0, w + 48)
            _turn(b + 5 * step_out, x1 - u1, y1 - v1, w + 64)
            _turn(b + 6 * step_out, x2 + v2, y2 - u2, w + 80)
            _turn(b + 7 * step_out, x3 + u3, y3 + v3, w + 96)

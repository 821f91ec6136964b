"""The degrees between which a run changes: 2^k and 3 * 2^k."""

__all__ = ["coarser", "finer"]


def finer(degree: int) -> int:
    """The smallest 2^k or 3 * 2^k above this degree."""
    power = 1 << degree.bit_length()  # the next power of 2
    return power * 3 // 4 if degree < power * 3 // 4 else power


def coarser(degree: int) -> int:
    """The largest 2^k or 3 * 2^k below this degree, or 1."""
    power = 1 << max(degree - 1, 1).bit_length() - 1
    return max(1, power * 3 // 2 if degree > power * 3 // 2 else power)

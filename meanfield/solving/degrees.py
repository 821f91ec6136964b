"""The degrees between which a run changes: 2^k and, where a step up is dear, 3 * 2^k as well."""

__all__ = ["coarser", "finer"]


def finer(degree: int, halfway: bool) -> int:
    """The smallest 2^k, or 3 * 2^k if `halfway`, above this degree."""
    power = 1 << degree.bit_length()
    return power * 3 // 4 if halfway and degree < power * 3 // 4 else power


def coarser(degree: int, halfway: bool) -> int:
    """The largest 2^k, or 3 * 2^k if `halfway`, below this degree; 1 if there is none."""
    power = 1 << max(degree - 1, 1).bit_length() - 1
    return max(1, power * 3 // 2 if halfway and degree > power * 3 // 2 else power)

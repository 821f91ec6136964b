"""Numbers as mathematical text, in as few digits as tell them apart."""

from collections.abc import Iterable

__all__ = ["distinct", "mathematical"]


def distinct(values: Iterable[float], *, least: int = 3) -> list[str]:
    """Numbers with `least` significant digits, or more where two would look alike."""
    numbers = [float(value) for value in values]
    different = len(set(numbers))
    for digits in range(least, 18):
        texts = [mathematical(number, digits) for number in numbers]
        if len(set(texts)) == different:
            break
    return texts


def mathematical(number: float, digits: int) -> str:
    r"""A number for use between dollar signs: 0.25, 3 \times 10^{-7}, \infty."""
    text = f"{number:.{digits}g}".replace("inf", r"\infty")
    mantissa, exponential, exponent = text.partition("e")
    if not exponential:
        return text
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \times {power}"

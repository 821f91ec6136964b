"""Labels: numbers as mathematical text, members of an ensemble, ticks of logarithmic axes."""

import re
from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator, NullFormatter

from ..core.checks import as_given
from ..results.solution import Solution

Member = tuple[int, ...]
MOST_PANELS = 9
PARAMETER_SYMBOLS = {
    "beta": r"\beta",
    "kappa": r"\kappa",
    "common_kappa": r"\kappa_0",
    "n": "n",
    "initial_rho": r"\rho(0)",
    "initial_gap": r"1 - \rho(0)",
    "initial_radius": "r(0)",
}
OF_A_PART = re.compile(r"(?:factors|drifts)\[(\d+)\](?:\.(.*))?")  # of a sum of drifts
# (decades, multiples): on shorter axes, multiples of powers of ten are labelled, or equal steps.
TICKS = ((0.8, ()), (1.4, (1, 2, 5)), (3.0, (1, 3)))


def distinct(values: Iterable[float], *, fewest: int = 3) -> list[str]:
    """Numbers with `fewest` significant digits, or more where two would look alike."""
    numbers = [float(value) for value in values]
    count = len(set(numbers))
    for digits in range(fewest, 18):
        texts = [mathematical(number, digits) for number in numbers]
        if len(set(texts)) == count:
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


def percent(mass: float) -> str:
    """A share of the mass as a label."""
    return f"{100 * mass:.0f}%"


# Members of an ensemble ------------------------------------------------------------------------


def choose_members(solution: Solution, member: int | Member | None) -> list[Member]:
    """Indices of the members to draw, one panel each.

    Parameters
    ----------
    member : int or tuple of int, optional
        One member. By default all of them; () is the only member of a single solution.

    Raises
    ------
    ValueError
        If the member does not exist, or there are more members than panels in a figure.
    """
    shape = tuple(solution.shape)
    if member is not None and not shape:
        raise ValueError(
            f"member = {as_given(member)} was asked for, but this solution is a single run, not an "
            "ensemble. Leave `member` out."
        )
    if member is not None:
        index = member if isinstance(member, tuple) else (member,)
        try:
            return [tuple(range(n)[i] for i, n in zip(index, shape, strict=True))]
        except (IndexError, TypeError, ValueError):
            last = shape[0] - 1 if len(shape) == 1 else tuple(n - 1 for n in shape)
            raise ValueError(
                f"member = {as_given(member)} is not in an ensemble of shape {shape}; "
                f"the last member is member={last}."
            ) from None
    if prod(shape) > MOST_PANELS:
        first = 0 if len(shape) == 1 else (0,) * len(shape)
        raise ValueError(
            f"An ensemble of shape {shape} has {prod(shape)} members and a figure holds "
            f"{MOST_PANELS} panels. Choose one member, for instance member={first}; "
            "kind='observables' draws all of them."
        )
    return list(np.ndindex(shape))


def all_members(solution: Solution, member: int | Member | None) -> list[Member]:
    """Indices of one member, or of all, for figures that draw members together."""
    if member is None:
        return list(np.ndindex(tuple(solution.shape)))
    return choose_members(solution, member)


def member_of(state: Any, member: Member) -> Any:
    """A member of an ensemble; a single state is its only member, ()."""
    return state[member] if member else state


def varying_parameters(solution: Solution) -> dict[str, np.ndarray]:
    """Parameters that differ between members, each as an array of the ensemble shape."""
    arrays = {
        name: np.broadcast_to(value, solution.shape)
        for name, value in solution.parameters.items()
        if np.ndim(value)
    }
    return {name: array for name, array in arrays.items() if (array != array.flat[0]).any()}


def label_of_member(solution: Solution, index: Member) -> str:
    """Title of one member: the parameters in which it differs, or else its number."""
    parts = []
    for name, array in varying_parameters(solution).items():
        texts = dict(zip(array.flat, distinct(array.flat, fewest=5), strict=True))
        parts.append(_equation(name, texts[array[index]]))
    if parts:
        return ", ".join(parts)
    return f"member {index[0] if len(index) == 1 else index}" if index else ""


def describe_model(solution: Solution) -> str:
    """The drift, whether it is causal, and the parameters that all members share, as a heading."""
    causal = solution.model.causal
    division = f" ({causal.divide})" if causal and causal.divide else ""
    causality = [] if causal is None else [f"causal{division}"]
    varying, parameters = varying_parameters(solution), solution.parameters
    return _heading([_names(solution.model.drift), *causality], parameters, varying)


def describe_drift(drift: Any, varies: str) -> str:
    """A heading for a drift or a model, or for a class or function that gives some.

    Name, and parameters other than `varies`.
    """
    drift = getattr(drift, "drift", drift)
    if isinstance(drift, type):
        return drift.__name__
    if not hasattr(drift, "is_absent"):
        return "a family of models"
    if drift.is_absent or not drift.parameters:
        return repr(drift)
    return _heading([_names(drift)], drift.parameters, [varies])


def _heading(words: list[str], parameters: Mapping[str, Any], but: Collection[str]) -> str:
    """A heading of words, and of the values of all parameters that are not in `but`."""
    values = {name: np.ravel(value)[0] for name, value in parameters.items() if name not in but}
    return ", ".join([*words, *(_equation(n, mathematical(v, 7)) for n, v in values.items())])


def _names(drift: Any) -> str:
    """The name of a drift, or the formula of a sum: c_0 USA + c_1 SA."""
    parts = [type(part).__name__ for _, part in drift.terms]
    terms = [f"${symbol_of(f'factors[{k}]')}$ {part}" for k, part in enumerate(parts)]
    return parts[0] if drift.terms[0][1] is drift else " + ".join(terms)


def _equation(name: str, number: str) -> str:
    return f"${symbol_of(name)} = {number}$"


def symbol_of(name: str) -> str:
    """The TeX symbol of a parameter; in a sum of drifts, factors and parameters have an index."""
    if of_part := OF_A_PART.fullmatch(name):
        number, parameter = of_part.groups()
        return rf"{{{symbol_of(parameter) if parameter else 'c'}_{{{number}}}}}"
    return PARAMETER_SYMBOLS.get(name, rf"\mathrm{{{name}}}".replace("_", r"\ "))


# Ticks of a logarithmic axis ---------------------------------------------------------------------


def label_logarithmic(axes: Iterable[Axes]) -> None:
    """Label the ticks of all logarithmic axes of panels that have not been labelled."""
    for axis in (axis for ax in axes for axis in (ax.xaxis, ax.yaxis)):
        if isinstance(axis.get_minor_formatter(), LogFormatterSciNotation):
            _label_decades(axis)


def _label_decades(axis: Axis) -> None:
    """Label decades; where fewer than three are in view, other ticks too."""
    first, last = np.log10(sorted(axis.get_view_interval()))
    axis.set_minor_formatter(NullFormatter())
    for decades, ticks in TICKS:
        if last - first < decades:
            axis.set_major_locator(LogLocator(subs=ticks) if ticks else MaxNLocator(3))
            axis.set_major_formatter(lambda value, _: f"${mathematical(value, 6)}$")
            return


def label_of_order(space: Any) -> str:
    """The order parameter of densities on a space: over sqrt m for m angles of a torus."""
    squared = round(space.radius**2)  # |x|^2
    share = rf"/\sqrt{{{squared}}}" if squared > 1 else ""
    return rf"$r = |\int x\, d\mu|{share}$"

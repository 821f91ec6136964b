"""Labels of a logarithmic axis of times, which never overlap."""

import numpy as np
from matplotlib.axis import Axis
from matplotlib.textpath import TextPath
from matplotlib.ticker import Formatter, LogFormatterMathtext

from .digits import distinct

__all__ = ["label_logarithmic"]

MANY = 3  # decades with a label each: those in between need none
FIRST = (2, 5)  # times a power of ten: labelled before others
APART = 0.5  # of the size of the letters


def label_logarithmic(axis: Axis) -> None:
    """Label decades; where there are few of them other ticks too, as far as there is room."""
    axis.set_major_formatter(_Decades())
    axis.set_minor_formatter(_Between())


class _Decades(LogFormatterMathtext):
    """Powers of ten, or plain numbers where those between them are labelled too."""

    def format_ticks(self, values) -> list[str]:
        many = _count_decades(self.axis) >= MANY
        return super().format_ticks(values) if many else _texts(values)


class _Between(Formatter):
    """Twice and five times a power of ten; if there are fewer than two labels others, far apart."""

    def __call__(self, x, pos=None) -> str:
        return ""

    def format_ticks(self, values) -> list[str]:
        labels = [""] * len(values)
        if _count_decades(self.axis) >= MANY or not len(values):
            return labels
        row, texts = _Row(self.axis), _texts(values)
        first = [int(f"{value:e}"[0]) in FIRST for value in values]
        middle = np.log(self.axis.get_view_interval()).mean()
        outwards = np.abs(np.log(values) - middle)
        for i in sorted(range(len(values)), key=lambda i: (not first[i], -outwards[i])):
            if (first[i] or len(row.taken) < 2) and row.place(values[i], texts[i]):
                labels[i] = texts[i]
        return labels


class _Row:
    """The labels beneath an axis: which parts of it they take, in points."""

    def __init__(self, axis: Axis):
        self._axis, self._font = axis, axis.majorTicks[0].label1.get_fontproperties()
        self.taken: list[tuple[float, float]] = []
        majors = axis.get_majorticklocs()
        for value, text in zip(majors, _texts(majors), strict=True):
            self.place(value, text)

    def place(self, value: float, text: str) -> bool:
        """Whether the label is in view and has room, which it then takes."""
        first, last = sorted(self._axis.get_view_interval())
        if not first <= value <= last:
            return False
        pixels = self._axis.axes.transData.transform((value, 0.5))[0]
        middle = 72 * pixels / self._axis.axes.figure.dpi
        size = self._font.get_size_in_points()
        half = TextPath((0, 0), text, size=size, prop=self._font).get_extents().width / 2
        low, high = middle - half - APART * size / 2, middle + half + APART * size / 2
        if any(low < end and begin < high for begin, end in self.taken):
            return False
        self.taken.append((low, high))
        return True


def _count_decades(axis: Axis) -> int:
    """How many powers of ten are in view."""
    first, last = np.log10(sorted(axis.get_view_interval()))
    return int(np.floor(last + 1e-9) - np.ceil(first - 1e-9)) + 1


def _texts(values) -> list[str]:
    return [f"${text}$" for text in distinct(values)] if len(values) else []

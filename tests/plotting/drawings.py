"""What tests read from a figure: its panels, its words, what is drawn in it."""

import matplotlib
import numpy as np
from matplotlib.text import Text
from PIL import Image


def panels(figure):
    """The axes of a figure that are not colour bars."""
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def room(figure):
    """The least width or height of its panels, in inches."""
    figure.draw_without_rendering()
    return min(ax.get_window_extent().size.min() for ax in panels(figure)) / figure.dpi


def texts(figure):
    """Everything written in a figure after its layout, without line breaks."""
    figure.draw_without_rendering()
    found = [text.get_text().replace("\n", " ") for text in figure.findobj(Text)]
    return [text for text in found if text]


def words(figure):
    """Everything written in a figure, in one line."""
    return " ".join(texts(figure))


def drawn(ax, kind):
    """The artists of a kind in a panel."""
    return [artist for artist in (*ax.collections, *ax.images) if type(artist) is kind]


def colours_in(colours):
    """Colours as hexadecimal words, without their opacity."""
    return {matplotlib.colors.to_hex(colour).upper() for colour in colours}


def read(path):
    """Pixels of an image file, (height, width, 3)."""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def frames(path):
    """The number of frames of a film."""
    with Image.open(path) as film:
        return film.n_frames

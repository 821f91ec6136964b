"""Movies of examples: .mp4 if there is an ffmpeg, else .gif."""

from collections.abc import Callable
from pathlib import Path

import matplotlib
from matplotlib.animation import FFMpegWriter, PillowWriter
from matplotlib.figure import Figure

import meanfield as mf

__all__ = ["movie_path", "write_movie"]

FPS, DPI = 20, 100


def movie_path(out: Path, name: str) -> Path:
    """The path of the movie of an example."""
    return out / f"{name}{'.mp4' if mf.doctor()['ffmpeg'] else '.gif'}"


def write_movie(figure: Figure, show: Callable[[int], object], count: int, path: Path) -> None:
    """Write `count` frames; show(i) sets the figure to frame i.

    The figure is laid out once, so that nothing moves but what `show` moves.
    """
    figure.set_dpi(DPI)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    if path.suffix == ".mp4":
        writer = FFMpegWriter(FPS, "h264", extra_args=["-pix_fmt", "yuv420p", "-crf", "20"])
    else:
        writer = PillowWriter(FPS)
    program = mf.doctor()["ffmpeg"] or ""
    with (
        matplotlib.rc_context({"animation.ffmpeg_path": program}),
        writer.saving(figure, str(path), DPI),
    ):
        for i in range(count):
            show(i)
            writer.grab_frame()

"""Writing the frames of a figure as .mp4, through ffmpeg, or as .gif, through Pillow."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.animation import FFMpegWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from ..core.checks import path_of
from ..core.errors import MeanfieldError

__all__ = ["Update", "check_movie_path", "ffmpeg_program", "write_movie"]

Update = Callable[[int], object]  # sets a part of a figure to frame i


def check_movie_path(path: str | os.PathLike) -> Path:
    """The path, if a movie can be written there; else ValueError or MeanfieldError."""
    path = path_of("path", path)
    if path.suffix.lower() not in (".mp4", ".gif"):
        raise ValueError(f"A movie is written to a name in .mp4 or .gif; got {str(path)!r}.")
    if not path.parent.is_dir():
        raise ValueError(f"The folder {str(path.parent)!r} does not exist; make it first.")
    if path.suffix.lower() == ".mp4":
        ffmpeg_program()  # refuse before the frames are drawn
    return path


def ffmpeg_program() -> str:
    """Path of an ffmpeg program: the system's, or else the one that imageio-ffmpeg brings.

    Raises
    ------
    MeanfieldError
        If there is neither.
    """
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return get_ffmpeg_exe()
    except (ImportError, RuntimeError) as error:
        raise MeanfieldError(
            "Writing .mp4 needs the program ffmpeg, and none was found. Install it with "
            "`pip install 'meanfield[movie]'`, or write to a name in .gif."
        ) from error


def write_movie(figure: Figure, show: Update, count: int, path: Path, fps: float) -> None:
    """Write `count` frames at `figure.dpi`; `show(i)` sets the figure to frame i."""
    write = _write_mp4 if path.suffix.lower() == ".mp4" else _write_gif
    write(figure, show, count, path, fps)


def _write_mp4(figure, show, count: int, path: Path, fps: float) -> None:
    writer = FFMpegWriter(fps=fps, codec="h264", extra_args=["-pix_fmt", "yuv420p", "-crf", "18"])
    program = ffmpeg_program()
    try:
        with (
            matplotlib.rc_context({"animation.ffmpeg_path": program}),
            writer.saving(figure, str(path), figure.dpi),
        ):
            for i in range(count):
                show(i)
                writer.grab_frame()
    except (OSError, subprocess.CalledProcessError) as error:
        raise MeanfieldError(
            f"{program} failed to write {str(path)!r}: {error}. Write to a name in .gif, or "
            "install another ffmpeg with `pip install 'meanfield[movie]'`."
        ) from error


def _write_gif(figure, show, count: int, path: Path, fps: float) -> None:
    frames = _frames(figure, show, count)
    next(frames).save(
        path,
        format="GIF",
        save_all=True,
        append_images=frames,
        duration=10 * max(2, round(100 / fps)),
        loop=0,
    )


def _frames(figure: Figure, show: Update, count: int) -> Iterator[Image.Image]:
    canvas = FigureCanvasAgg(figure)
    # Without k-means the few pixels of a peak, or of dots, get the colour of something else; it
    # takes a while.
    refine = int(any(ax.images or ax.collections for ax in figure.axes))
    for i in range(count):
        show(i)
        canvas.draw()
        pixels = np.array(canvas.buffer_rgba())[..., :3]
        yield Image.fromarray(pixels).quantize(256, kmeans=refine, dither=Image.Dither.NONE)

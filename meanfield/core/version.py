"""Versions of packages; meanfield has the tag of the commit from which it was installed."""

import shutil
from importlib import metadata

from .namesake import DISTRIBUTION

__all__ = ["LIBRARIES", "__version__", "program_of_ffmpeg", "version_of"]

LIBRARIES = ("numpy", "scipy", "numba", "pyfftw", "xarray", "h5netcdf")  # recorded


def version_of(package: str) -> str | None:
    """The installed version of a package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


__version__ = version_of(DISTRIBUTION) or "not installed"


def program_of_ffmpeg() -> str | None:
    """Path of ffmpeg: the system's, or else the one that imageio-ffmpeg brings; None if neither."""
    if program := shutil.which("ffmpeg"):
        return program
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        return None

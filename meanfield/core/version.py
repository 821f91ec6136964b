"""Versions of packages; meanfield has the tag of the commit from which it was installed."""

from importlib import metadata

__all__ = ["LIBRARIES", "__version__", "version_of"]

LIBRARIES = ("meanfield", "numpy", "scipy", "numba", "pyfftw", "xarray", "h5netcdf")  # recorded


def version_of(package: str) -> str | None:
    """The installed version of a package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


__version__ = version_of("meanfield") or "not installed"

"""Results on disk: NetCDF files with their provenance, and checkpoints."""

from .netcdf import load, save

__all__ = ["load", "save"]

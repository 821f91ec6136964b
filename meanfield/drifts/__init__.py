"""The drifts: how the measure of tokens moves each of them."""

from .contract import Drift, ZonalDrift
from .zonal import SA, USA, Interaction, Kuramoto

__all__ = ["SA", "USA", "Drift", "Interaction", "Kuramoto", "ZonalDrift"]

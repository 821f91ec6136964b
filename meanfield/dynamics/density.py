"""The evolution of a density: d mu/dt = (1/kappa) Lap mu - div(mu v[mu]) by harmonics."""

import numpy as np

from ..models.transformer import Transformer
from ..spaces import Geometry

__all__ = ["DensityEvolution"]


class DensityEvolution:
    """The equation of an ensemble of densities as L c + N(c), L diagonal.

    Parameters
    ----------
    model : Transformer
    geometry : Geometry
    shape : tuple of int
        Ensemble shape, to which the model's own shape broadcasts.

    Attributes
    ----------
    linear : ndarray, (1 or members, modes)
        Eigenvalues of (1/kappa) Lap.
    nonlinear : Transport
        Coefficients of -div(mu v[mu]).
    metric : ndarray, (modes,)
        Weights of the H^-1 norm, with the mass added: sum |c_k|^2 metric_k. It is W2 to
        leading order at the uniform state, and errors are measured in it.
    """

    def __init__(self, model: Transformer, geometry: Geometry, shape: tuple[int, ...] = ()):
        members = int(np.prod(shape))
        degree, dimension = geometry.degree, geometry.dimension

        def rows(table: np.ndarray) -> np.ndarray:
            """Parameters (*own shape, size) as (1, size) or (members, size)."""
            if table.ndim == 1:
                return table[None]
            return np.broadcast_to(table, (*shape, table.shape[-1])).reshape(members, -1)

        normaliser = model.zonal.normaliser(degree, dimension)

        self.geometry, self.shape, self.members = geometry, shape, members
        self.linear = rows(geometry.laplacian / model.kappa[..., None])
        self.nonlinear = geometry.transport(
            rows(model.zonal.attraction(degree, dimension)),
            None if normaliser is None else rows(normaliser),
            members,
        )
        self.metric = geometry.parseval / np.maximum(1.0, -geometry.laplacian)

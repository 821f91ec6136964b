"""The output of one attention layer, alone."""

from typing import overload

import numpy as np

from ..drifts import Drift
from ..errors import MeanfieldError
from ..model import Transformer
from ..normalisation import PreLN
from ..states import Equiangular, Tokens
from .equiangular import EquiangularMotion
from .tokens import TokenMotion

__all__ = ["attend"]


@overload
def attend(drift: Drift, state: Tokens) -> Tokens: ...
@overload
def attend(drift: Drift, state: Equiangular) -> Equiangular: ...


def attend(drift: Drift, state: Tokens | Equiangular) -> Tokens | Equiangular:
    """What one layer of attention answers, without the residual: x_i <- A_i/|A_i|, r_i <- |A_i|.

        A_i = sum_j m_j k(<x_i, x_j>) x_j / Z(x_i)

    Of equiangular tokens the logit grows by 2 log(1 + n k(rho)/(k(1) - k(rho))); where k is
    constant all outputs are the same, and it is infinite.

    Parameters
    ----------
    drift : Drift
        Any, for tokens; `USA`, `SA`, `Kuramoto` or `Interaction` for equiangular ones. Parameters
        that depend on time are those at t = 0.
    state : Tokens or Equiangular
        Tokens of a sphere. Their own radii do not matter: attention sees directions.

    Returns
    -------
    Tokens or Equiangular
        With the lengths of the outputs as radii.

    Raises
    ------
    TypeError
        For other states.
    MeanfieldError
        Where the drift does not keep tokens equiangular, for tokens in R^d, and where an output
        is 0, which has no direction.
    """
    if not isinstance(drift, Drift) or not isinstance(state, Tokens | Equiangular):
        raise TypeError(
            "attend takes a drift and Tokens or Equiangular ones; got "
            f"{type(drift).__name__} and {type(state).__name__}."
        )
    model = Transformer(drift, normalisation=PreLN())
    shape = np.broadcast_shapes(model.shape, state.shape)
    state = state.broadcast(shape)
    return _of_tokens(model, state) if isinstance(state, Tokens) else _of_one(model, state)


def _of_tokens(model: Transformer, tokens: Tokens) -> Tokens:
    motion = TokenMotion(model, tokens)
    y = motion.coordinates(tokens)
    A = motion.attention_update(motion.points(y), motion.masses(y), 0.0).reshape(tokens.x.shape)
    lengths = np.linalg.norm(A, axis=-1)
    if not (lengths > 0).all():
        raise MeanfieldError(
            f"Attention answers 0 to {np.count_nonzero(lengths == 0)} tokens, which has no "
            "direction. Move the tokens off this symmetric position."
        )
    return Tokens(A / lengths[..., None], tokens.masses, lengths)


def _of_one(model: Transformer, state: Equiangular) -> Equiangular:
    motion = EquiangularMotion(model, state)
    pull = motion.pull(motion.coordinates(state), 0.0)
    with np.errstate(divide="ignore"):
        factor = pull.rate / pull.own
        logit = state.logit + np.log1p(factor * (2 + factor)).reshape(state.shape)
    lengths = np.hypot(pull.along, pull.across).reshape(state.shape)
    return Equiangular.computed(state.n, logit, lengths)

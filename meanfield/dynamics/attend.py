"""The output of one attention layer, alone."""

from typing import overload

import numpy as np

from ..core.errors import MeanfieldError
from ..models import Drift
from ..models.normalisation import PreLN
from ..models.transformer import Transformer
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

    In R^d x_i <- A_i. With k(x, y) = e^(-beta |x - y|^2 / 2) normalised, in R^d or on the sphere,
    where that is SA, it is a step of Gaussian blurring mean-shift.

    Of equiangular tokens the logit grows by 2 log(1 + n k(rho)/(k(1) - k(rho))); where k is
    constant all outputs are the same, and it is infinite.

    Parameters
    ----------
    drift : Drift
        Any, for tokens; `USA`, `SA`, `Kuramoto` or `Interaction` for equiangular ones. Parameters
        that depend on time are those at t = 0.
    state : Tokens or Equiangular
        The radii of tokens on a sphere do not matter: attention sees directions.

    Returns
    -------
    Tokens or Equiangular
        On a sphere with the lengths of the outputs as radii.

    Raises
    ------
    TypeError
        For other states.
    ValueError
        For shapes of ensembles that do not broadcast.
    MeanfieldError
        Where the drift does not keep tokens equiangular, for a drift of the sphere and tokens in
        R^d, and on a sphere where an output is 0, which has no direction.

    References
    ----------
    Cheng, "Mean shift, mode seeking, and clustering", IEEE Trans. Pattern Anal. Mach. Intell. 17
    (1995), for blurring mean-shift.
    """
    if not isinstance(drift, Drift) or not isinstance(state, Tokens | Equiangular):
        raise TypeError(
            "attend takes a drift and Tokens or Equiangular ones; got "
            f"{type(drift).__name__} and {type(state).__name__}."
        )
    in_space = isinstance(state, Tokens) and not state.on_sphere
    model = Transformer(drift) if in_space else Transformer(drift, normalisation=PreLN())
    try:
        shape = np.broadcast_shapes(model.shape, state.shape)
    except ValueError:
        raise ValueError(
            f"The drift has ensemble shape {model.shape} and the state {state.shape}: these do not "
            "broadcast. For a table of both give one of them a trailing axis."
        ) from None
    state = state.broadcast(shape)
    return _of_tokens(model, state) if isinstance(state, Tokens) else _of_one(model, state)


def _of_tokens(model: Transformer, tokens: Tokens) -> Tokens:
    motion = TokenMotion(model, tokens)
    y = motion.coordinates(tokens)
    A = motion.attention_update(motion.points(y), motion.masses(y), 0.0).reshape(tokens.x.shape)
    if not tokens.on_sphere:
        return Tokens(A, tokens.masses, on_sphere=False)
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
    logit = state.logit + motion.answered(motion.coordinates(state)).reshape(state.shape)
    lengths = np.hypot(pull.along, pull.across).reshape(state.shape)
    return Equiangular.computed(state.n, logit, lengths)

"""Which tokens a model can move."""

from ..core.errors import MeanfieldError
from ..models import MeanField, ZonalDrift
from ..models.noise import Isotropic
from ..models.normalisation import PostLN
from ..models.transformer import Transformer
from ..states import Tokens

__all__ = ["check_tokens"]


def check_tokens(model: Transformer, tokens: Tokens) -> None:
    """Raise ValueError or MeanfieldError, with the reason, for tokens that it cannot."""
    zonal = isinstance(model.drift, ZonalDrift)
    if not tokens.on_sphere and (zonal or not isinstance(model.normalisation, PostLN)):
        what = type(model.drift).__name__ if zonal else repr(model.normalisation)
        raise MeanfieldError(
            f"{what} is defined on the sphere, and these tokens live in R^d. There, use "
            "Attention(Q, K, V, beta), without a normalisation."
        )
    if isinstance(model.drift, MeanField) and (
        not tokens.on_sphere or tokens.dimension != model.drift.geometry.dimension
    ):
        raise ValueError(
            f"{model.drift!r} is a field on S^{model.drift.geometry.dimension - 1}; got {tokens!r}."
        )
    wanted = getattr(model.feedforward, "dimension", tokens.dimension)
    if wanted != tokens.dimension:
        raise ValueError(
            f"{model.feedforward!r} is for tokens of dimension {wanted}; got tokens of dimension "
            f"{tokens.dimension}."
        )
    if model.reaction and not zonal:
        raise MeanfieldError(
            f"reaction needs the potential of a zonal drift; {type(model.drift).__name__} has "
            "none. Use USA, SA, Kuramoto or Interaction, or reaction=0."
        )
    if not tokens.on_sphere and model.noisy and not isinstance(model.noise, Isotropic):
        raise MeanfieldError(f"{model.noise!r} is defined on the sphere; in R^d use Isotropic().")
    if tokens.radii is not None and not model.normalisation.has_radii:
        raise MeanfieldError(
            f"These tokens have radii, which {model.normalisation!r} does not use: leave them "
            "out, or choose PreLN(), MixLN(tau) or PeriLN()."
        )

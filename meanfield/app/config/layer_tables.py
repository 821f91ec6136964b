"""What a layer does beside attention: normalisation, noise, a perceptron; and attention weights."""

from typing import Annotated, Literal

from pydantic import Field

from .matrices import Matrix
from .values import Finite, Matrices, Natural, Positive, Series, Table

__all__ = ["FeedForward", "Noise", "Normalisation", "Weights"]


class PostLN(Table):
    """Hidden states are put back on the sphere after each layer."""

    kind: Literal["post_ln"]


class PreLN(Table):
    """Attention sees normalised hidden states, whose lengths grow."""

    kind: Literal["pre_ln"]


class MixLN(Table):
    """Post-LN until the time tau, Pre-LN from then on."""

    kind: Literal["mix_ln"]
    tau: Positive = Field(description="the time of the change")


class PeriLN(Table):
    """Pre-LN with the output of attention normalised too."""

    kind: Literal["peri_ln"]


class NGPT(Table):
    """nGPT: both the hidden states and the output of attention are normalised."""

    kind: Literal["ngpt"]
    alpha: Positive = Field(default=1.0, description="the learning rate")


class SqrtScaling(Table):
    """LayerNorm scaling: updates are divided by sqrt(t + 1)."""

    kind: Literal["sqrt_scaling"]


Normalisation = Annotated[
    PostLN | PreLN | MixLN | PeriLN | NGPT | SqrtScaling, Field(discriminator="kind")
]


class Isotropic(Table):
    """An independent Brownian motion for each token."""

    kind: Literal["isotropic"]


class Common(Table):
    """One Brownian rotation that carries all tokens along."""

    kind: Literal["common"]


class Anisotropic(Table):
    """A Brownian motion of covariance sigma in R^d for each token, projected on the sphere."""

    kind: Literal["anisotropic"]
    sigma: Matrices = Field(description="covariance (d, d), symmetric and >= 0")


Noise = Annotated[Isotropic | Common | Anisotropic, Field(discriminator="kind")]


class Softmax(Table):
    """exp(beta <Qx, Ky>), normalised."""

    kind: Literal["softmax"]


class Unnormalised(Table):
    """exp(beta <Qx, Ky>)."""

    kind: Literal["unnormalised"]


class L2(Table):
    """exp(-beta |Qx - Ky|^2), normalised."""

    kind: Literal["l2"]


class Sigmoid(Table):
    """1 / (1 + exp(-beta <Qx, Ky> - bias))."""

    kind: Literal["sigmoid"]
    bias: Finite = Field(default=0.0, description="added to the logits")


class Sinkhorn(Table):
    """Doubly stochastic weights."""

    kind: Literal["sinkhorn"]
    tolerance: Positive = Field(default=1e-12, description="largest error of a marginal")
    most_iterations: Natural = Field(default=10_000, description="iterations until it gives up")


class Linear(Table):
    """beta <Qx, Ky>."""

    kind: Literal["linear"]


Weights = Annotated[
    Softmax | Unnormalised | L2 | Sigmoid | Sinkhorn | Linear, Field(discriminator="kind")
]


class FeedForward(Table):
    """The perceptron outer activation(inner x + bias), added to the output of attention."""

    inner: Matrix = Field(description="matrix (k, d)")
    outer: Matrix = Field(description="matrix (d, k)")
    bias: Series | None = Field(default=None, description="k numbers; by default 0")
    activation: Literal["relu", "tanh"] = Field(default="relu", description="of each entry")

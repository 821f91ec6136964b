"""The chapters of the gallery, in the order of the survey, and their examples.

Every example is in one chapter: `run_all.py` runs them in this order, the documentation shows them
so. What else is in this folder belongs to an example, or to all of them.
"""

from dataclasses import dataclass

__all__ = ["CHAPTERS", "Chapter"]


@dataclass(frozen=True)
class Chapter:
    """A part of the gallery.

    Attributes
    ----------
    title : str
    about : str
        What its examples have in common, in reStructuredText.
    examples : tuple of str
        Names of scripts in this folder, without ``.py``.
    """

    title: str
    about: str
    examples: tuple[str, ...]

    @property
    def folder(self) -> str:
        """The name of its folder in the documentation."""
        return self.title.lower().replace(",", "").replace(" ", "_")


CHAPTERS = (
    Chapter(
        "Attention as a flow",
        "Tokens and densities on the sphere under unnormalised (USA) and softmax attention (SA), "
        "where the motion is known: exact solutions, rates, and limits of large :math:`\\beta`.",
        ("ott_antonsen", "collapse", "opposite_clusters", "limits", "weights", "platonic_solids"),
    ),
    Chapter(
        "Clustering and metastability",
        "From a nearly uniform start several clusters form, which have long lifetimes.",
        (
            "density_and_tokens",
            "metastable",
            "sphere",
            "tokens",
            "five_tokens",
            "polygons",
            "modes",
            "causal",
            "causal_mean_field",
        ),
    ),
    Chapter(
        "Equiangular tokens and normalisation",
        "In high dimension tokens are nearly equiangular, and two numbers describe a layer. The "
        "examples show the effects of the position of normalisation and of random weights.",
        ("high_dimension", "normalisations", "equiangular", "random_weights", "random_matrices"),
    ),
    Chapter(
        "Long contexts",
        "As the number of tokens grows, the growth of :math:`\\beta` with it decides whether "
        "attention averages or copies.",
        ("long_context",),
    ),
    Chapter(
        "Noise and phase transitions",
        "Strong noise keeps tokens spread out; below a critical noise they order. Onsets, "
        "continuous and discontinuous transitions, and the effects of other kinds of noise.",
        (
            "hysteresis_loop",
            "kuramoto_bifurcation",
            "noisy_tokens",
            "fluctuations",
            "bifurcation",
            "close_onsets",
            "hysteresis",
            "sweep",
            "many_pairs",
            "off_axis",
            "phase_diagrams_noise",
            "active_rotators",
            "multiplicative_noise",
            "common_noise",
            "common_noise_phases",
            "waiting_times",
            "over_the_barrier",
            "torus",
            "torus_phases",
            "torus_modes",
        ),
    ),
    Chapter(
        "Beyond the survey",
        "From tokens to their mean field, Gaussians without normalisation, derivatives of runs, "
        "and the hidden states of a real Transformer.",
        (
            "chaos",
            "gaussian",
            "covariances",
            "growing_gaussians",
            "derivatives",
            "minilm",
            "fit_of_layers",
            "advice",
        ),
    ),
)

"""The parameters of the page, and the configurations of the runs that follow from them."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import meanfield as mf
from meanfield.extending import Index, Kind, Leaf, as_given, path_of, real, require

Space = mf.Circle | mf.Sphere | mf.Torus
PAGE_SPACES: dict[str, type[Space]] = {"Circle": mf.Circle, "Sphere": mf.Sphere, "Torus": mf.Torus}
PAGE_DIMENSIONS = {"Circle": 2, "Sphere": 3, "Torus": 4}
INITIAL_DEGREES = {"Circle": 64, "Sphere": 64, "Torus": 48}  # degrees of the initial law
MOST_DEGREE = {"Circle": 1024, "Sphere": 64, "Torus": 64}
FRAME_COUNTS = {"Circle": 301, "Sphere": 151, "Torus": 151}
PAGE_RTOL = 1e-6
MOST_TOKENS = 1000
NOISE_STEPS = 120  # time steps of tokens with noise in the time kappa_1
MOST_STEPS = 100_000  # largest number of steps of a density: 30 times that of a run of the page
LONGEST_TEXT = 200  # largest number of characters of a parameter


def number_between(low: float, high: float, *, integral: bool = False, infinity: str = "") -> Leaf:
    """A parameter that is a number, or a whole number, from `low` to `high`.

    If `infinity` is not empty, inf is accepted too; the text is appended to the expected range.
    """
    expected = f"a {'whole ' if integral else ''}number from {low:g} to {high:g}{infinity}"

    def fits(number: float) -> bool:
        inside = low <= number <= high and (not integral or number == int(number))
        return inside or (bool(infinity) and number == math.inf)

    def accept(name: str, value: Any) -> float:
        number = real(name, value, expected, fits)
        return int(number) if integral else number

    kind = "integer" if integral else "number"
    return Leaf(expected, accept, {"type": kind, "minimum": low, "maximum": high})


class Scene(Kind, family=True):
    """The parameters of the page: a model, a law at the start, and how long it is followed.

    Parameters
    ----------
    space : str
        Where tokens live: the circle, the sphere S^2 or the torus of two angles.
    drift : str
        USA, SA, or Kuramoto's drift, which has no beta.
    beta : float
        Inverse temperature of attention.
    kappa : float
        Noise parameter: 1/kappa is the strength of the noise, inf means none.
    normalisation : str
        Normalisation of the tokens, PostLN on the torus. Densities are those of PostLN.
    start : str
        The law at the start: a mixture of peaks, the uniform law with a mode, or your own file.
    peaks : int
        Number of von Mises peaks of a mixture.
    separation : float
        Angle between neighbouring peaks, in radians.
    concentration : float
        Concentration of every peak: 0 is uniform, large is narrow.
    share : float
        Mass of the first peak; the others share the rest equally.
    mode : int
        Degree of the perturbation: cos(mode theta), on the torus its mean over both angles, on the
        sphere the Legendre polynomial of this degree.
    amplitude : float
        Amplitude of the perturbation.
    tokens : int
        Number of tokens, drawn from the law at the start.
    duration : float
        Length of the runs in units of kappa_1(beta), the time in which attention without noise more
        than doubles a small mode of degree 1.
    rng : int
        Seed of the tokens; the seed of their noise is the next number.
    """

    default_kind = "Scene"

    space: Literal["Circle", "Sphere", "Torus"] = "Circle"
    drift: Literal["USA", "SA", "Kuramoto"] = "USA"
    beta: Annotated[float, number_between(0.25, 6.0)] = 4.0
    kappa: Annotated[float, number_between(0.01, 1000.0, infinity=", or inf")] = 0.6
    normalisation: Literal["PostLN", "PreLN", "PeriLN", "NGPT", "SqrtScaling"] = "PostLN"
    start: Literal["mixture", "mode", "file"] = "mixture"
    peaks: Annotated[int, number_between(1, 6, integral=True)] = 2
    separation: Annotated[float, number_between(0.0, 3.1416)] = 2.0
    concentration: Annotated[float, number_between(0.0, 50.0)] = 8.0
    share: Annotated[float, number_between(0.05, 0.95)] = 0.6
    mode: Annotated[int, number_between(1, 8, integral=True)] = 1
    amplitude: Annotated[float, number_between(0.001, 0.9)] = 0.05
    tokens: Annotated[int, number_between(0, MOST_TOKENS, integral=True)] = 200
    duration: Annotated[float, number_between(1.0, 60.0)] = 20.0
    rng: Index = 1

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> "Scene":
        """The scene of a link, from texts by parameter; missing parameters have their defaults.

        Raises
        ------
        ConfigError
            One line for each problem: the name, what was expected and what came.
        """
        for name, text in texts.items():
            is_short = len(name) <= LONGEST_TEXT and len(text) <= LONGEST_TEXT
            expected = f"of at most {LONGEST_TEXT} characters"
            require(as_given(name, 40), text, expected, is_short, mf.ConfigError)
        return mf.build(cls, {name: _read(text) for name, text in texts.items()})

    @property
    def link(self) -> dict[str, str]:
        """The parameters as texts, without those at their defaults: the inverse of `of_texts`."""
        table = mf.describe(self)
        return {name: str(value) for name, value in table.items() if name != "kind"}

    # The model -----------------------------------------------------------------------------

    @property
    def initial_space(self) -> Space:
        """The space at the initial degree of the runs."""
        return PAGE_SPACES[self.space](INITIAL_DEGREES[self.space])

    @property
    def drift_table(self) -> dict[str, Any]:
        """The drift as a table of a configuration."""
        without_beta = self.drift == mf.Kuramoto.__name__
        return {"kind": self.drift} | ({} if without_beta else {"beta": self.beta})

    @property
    def zonal(self) -> mf.ZonalDrift:
        """The drift."""
        return mf.build(mf.Drift, self.drift_table)

    @property
    def onset(self) -> float:
        """kappa_1, at which the uniform state becomes unstable to degree 1."""
        return float(1 / PAGE_SPACES[self.space](1).attraction(self.zonal)[1])

    @property
    def t_end(self) -> float:
        """The time at which runs end."""
        return self.duration * self.onset

    # The runs ------------------------------------------------------------------------------

    def law(self, file: "UserFile | None" = None) -> dict[str, Any]:
        """The law at the start as a table of a configuration.

        Raises
        ------
        MeanfieldError
            If the law is that of a file, but there is no file, or its space is another one.
        """
        if self.start == "file":
            if file is None:
                raise mf.MeanfieldError(
                    "start: there is no file: start with `meanfield explore FILE`."
                )
            require(
                "space", self.space, f"{file.space}, that of {file.name}", self.space == file.space
            )
            return file.law
        if self.start == "mode":
            series = [0.0] * (self.mode - 1) + [self.amplitude]
            if self.space == "Sphere":
                return {"kind": "Legendre", "coefficients": series, "axis": [1.0, 0.0, 0.0]}
            return {"kind": "Fourier", "cos": series}
        laws = [self._peak((i - (self.peaks - 1) / 2) * self.separation) for i in range(self.peaks)]
        if self.peaks == 1:
            return laws[0]
        other_share = (1 - self.share) / (self.peaks - 1)
        shares = [self.share] + [other_share] * (self.peaks - 1)
        parts = [{"weight": w, "law": law} for w, law in zip(shares, laws, strict=True)]
        return {"kind": "Mixture", "components": parts}

    def _peak(self, angle: float) -> dict[str, Any]:
        """The law of one peak as a table: at an angle, on the torus at twice the same angle.

        On the sphere it lies on the equator.
        """
        if self.space != "Sphere":
            return {"kind": "VonMises", "mean": angle, "concentration": self.concentration}
        mean = [math.cos(angle), math.sin(angle), 0.0]  # on the equator
        return {"kind": "VonMisesFisher", "mean": mean, "concentration": self.concentration}

    def tables(self, file: "UserFile | None" = None) -> dict[str, dict[str, Any]]:
        """The configurations of the density and of the tokens, as plain data.

        Without noise a density concentrates at points and needs ever more modes: on the circle it
        is followed along characteristics, elsewhere, where those are expensive, as long as
        `max_degree` resolves it. A file of tokens has no density; 0 tokens are left out.
        """
        law, space = self.law(file), {"kind": self.space, "degree": INITIAL_DEGREES[self.space]}
        of_tokens = law_of_tokens(law)
        model = {"drift": self.drift_table, "kappa": self.kappa}
        times = {"kind": "Linspace", "count": FRAME_COUNTS[self.space]}
        solve: dict[str, Any] = {"t_span": [0.0, self.t_end], "t_eval": times}
        noisy = self.kappa < math.inf
        nodes = not noisy and self.space == "Circle"
        tables: dict[str, dict[str, Any]] = {}
        if not of_tokens:
            initial = {"kind": "AlongCharacteristics", "law": law} if nodes else law
            modes = {} if nodes else {"max_degree": MOST_DEGREE[self.space]}
            steps = {"rtol": PAGE_RTOL, "max_steps": MOST_STEPS, **modes}
            tables["density"] = {"model": model, "space": space, "initial": initial}
            tables["density"]["solve"] = solve | steps
        if self.tokens or of_tokens:
            sample = {"kind": "SampledTokens", "law": law, "n": self.tokens, "rng": self.rng}
            noise = {"dt": self.onset / NOISE_STEPS, "rng": self.rng + 1}
            tables["tokens"] = {
                "model": model | {"normalisation": self.normalisation},
                **({} if of_tokens else {"space": space}),
                "initial": law if of_tokens else sample,
                "solve": solve | (noise if noisy else {"rtol": PAGE_RTOL}),
            }
        return tables

    def configurations(self, file: "UserFile | None" = None) -> dict[str, mf.Configuration]:
        """The configurations by the names of their layers, "density" and "tokens"."""
        return {name: mf.parse_config(table) for name, table in self.tables(file).items()}


def law_of_tokens(law: Mapping[str, Any]) -> bool:
    """True for the law, in a file, of tokens rather than of a density."""
    return law["kind"] in (mf.Tokens.__name__, mf.TorusTokens.__name__)


def _read(text: str) -> Any:
    """The number in a text, or the text; 1e999 remains a text, as it would overflow to inf."""
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        number = float(text)
        return text if math.isinf(number) and "inf" not in text.lower() else number
    return text


# Files of the user -------------------------------------------------------------------------------


@dataclass(frozen=True)
class UserFile:
    """The initial law in a file of the user, and the scene with which the page begins.

    Attributes
    ----------
    name : str
        Name of the file.
    space : str
        "Circle", "Sphere" or "Torus".
    law : dict
        The initial law as a table of a configuration.
    scene : Scene
    """

    name: str
    space: str
    law: dict[str, Any]
    scene: Scene

    @classmethod
    def of_file(cls, path: str | Path) -> "UserFile":
        """The law of a configuration, *.toml, or of the last state of a result, *.nc.

        Raises
        ------
        MeanfieldError
            If the file cannot be read, or holds what the page cannot show.
        """
        path = path_of("the file", path).absolute()
        if path.suffix == ".nc":
            run = mf.load(path)
            state = run.final if isinstance(run, mf.Solution) else run
            model: Any = getattr(run, "model", None)
            initial: Any = {"kind": "LastState", "file": str(path)}
        elif path.suffix == ".toml":
            config = mf.read_config(path)
            if config.work != "solve":
                raise mf.MeanfieldError(
                    f"{path}: expected the configuration of a run, with [solve]."
                )
            state, model = config.begin(), config.tables["model"]
            initial = mf.describe(config.tables["initial"])
        else:
            raise mf.MeanfieldError(f"{path}: expected a configuration *.toml or a result *.nc.")
        expected = "an initial law or a run of a density on Circle, Sphere or Torus of two angles, "
        require(f"{path}: it", state, f"{expected}or of at most {MOST_TOKENS} tokens there",
                _fits(state), mf.MeanfieldError)  # fmt: skip
        law = initial if isinstance(state, mf.Density) else mf.describe(state)
        space = next(name for name, d in PAGE_DIMENSIONS.items() if d == state.dimension)
        values = {"drift": mf.describe(model.drift)["kind"]} | {
            name: float(value) for name, value in model.parameters.items() if value.ndim == 0
        }
        parameters = {name: values[name] for name in ("drift", "beta", "kappa") if name in values}
        if isinstance(state, mf.Tokens):
            parameters["normalisation"] = mf.describe(model.normalisation)["kind"]
        try:
            scene = mf.build(Scene, {"space": space, "start": "file", **parameters})
        except mf.ConfigError as error:
            raise mf.MeanfieldError(f"{path}: the page cannot show its model: {error}") from error
        shown = mf.Transformer(
            scene.zonal, scene.kappa, normalisation=mf.build(mf.Normalisation, scene.normalisation)
        )
        expected = f"{shown!r}, all that the page can show of it. To start at the end of its run, "
        expected += 'write a configuration with initial = {kind = "LastState", file = "..."}'
        require(f"{path}: its model", model, expected, shown == model, mf.MeanfieldError)
        return cls(path.name, space, law, scene)


def _fits(state: Any) -> bool:
    """True for a single density, or at most `MOST_TOKENS` tokens, on a space of the page."""
    if isinstance(state, mf.Tokens):
        fits = state.on_sphere and state.dimension in (2, 3) and len(state) <= MOST_TOKENS
    elif isinstance(state, mf.TorusTokens):
        fits = state.dimension == 4 and len(state) <= MOST_TOKENS
    else:
        fits = isinstance(state, mf.Density) and type(state.space) in PAGE_SPACES.values()
        fits = fits and state.dimension in PAGE_DIMENSIONS.values()
    return fits and not state.shape

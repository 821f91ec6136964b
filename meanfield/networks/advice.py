"""Advice on a Transformer before training: where its tokens collapse, and what changes that."""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.extending import (
    PassedOn,
    RandomSource,
    Values,
    generator,
    real,
    require,
    whole_number,
)
from meanfield.steppers import Layers

from .contexts import critical_equiangular, critical_gaussian, critical_uniform_keys
from .initialisation import NORMAL_RULE, Overlaps, layers_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEARCHED_DEPTHS = 100  # a collapse is searched up to this multiple of the depth
PLACEMENTS = {"Post-LN": mf.PostLN(), "Pre-LN": mf.PreLN(), "Peri-LN": mf.PeriLN()}
FEWEST_ADVISED_TOKENS = 8  # critical contexts: at fewer tokens nothing is critical
LARGEST_LOGITS = 30.0  # about four times the critical logits of a million tokens
LARGEST_LENGTH = 1e50  # products of two squares of such lengths do not overflow


def _length(name: str, value: float, or_0: bool) -> float:
    """Return a length after checking that it is between 1e-50 and 1e50, or 0 if `or_0`."""
    low, high = 1 / LARGEST_LENGTH, LARGEST_LENGTH
    expected = f"{'0 or ' if or_0 else ''}between {low:g} and {high:g}"
    return real(name, value, expected, lambda x: low <= x <= high or (or_0 and x == 0))


def crossing(gaps: Values, threshold: float) -> float:
    """The layer at which the mean cosine reaches the threshold; inf if it never does.

    log(1 - rho) is interpolated linearly between two layers.

    Parameters
    ----------
    gaps : iterable of float
        1 - rho before the first layer and after each layer.
    threshold : float
    """
    limit, last = 1 - threshold, None
    for layer, gap in enumerate(gaps):
        if gap <= limit:
            if last is None:
                return 0.0
            return layer - 1 + float(np.log(last / limit) / np.log(last / gap))
        last = gap
    return float("inf")


@dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """Prediction of the layer at which tokens of a Transformer with random weights collapse.

    Normalised vectors have length 1: for a network whose norms return vectors of length sqrt(d),
    `radius` is |h|/sqrt(d). If all weights are independent with standard deviation s, as networks
    are initialised, `logits` and `values` are s^2 d, and `feed_forward` is s sqrt(m) times the root
    mean square of the activation for `inner` = s sqrt(d), m the width of the map.

    ``print(advice)`` writes it in sentences; `collapse`, `layers` and `critical` are its numbers,
    and `measure` compares it with networks.

    Parameters
    ----------
    n : int
        Number of tokens, >= 8.
    d : int
        Dimension of hidden states, a multiple of `heads`.
    depth : int
        Number of layers.
    heads : int
        Number of heads, each of dimension d/heads >= 4.
    normalisation : Normalisation
        `PreLN()`, `PostLN()`, `PeriLN()` or another one without gains.
    logits : float
        Standard deviation, over random weights, of the logits of two unit vectors, from 0 to 30:
        inverse temperature times the norms of query and key matrices. At 30 a token attends to
        hardly more than one token for any n.
    values : float
        Length of the output of attention with random matrices O V if all tokens coincide.
    identity : float
        Coefficient of an identity matrix that is added to O V.
    feed_forward : float
        Length of the output of a feed-forward map with random matrices; 0 for no such map. Peri-LN
        normalises this output too.
    inner : float
        Standard deviation of the inputs of the activation of the feed-forward map.
    activation : str
        Name of this activation, a key of `activations.ACTIVATIONS`.
    rho : float
        Mean cosine of pairs of tokens before the first layer, -1/(n - 1) < rho < 1.
    radius : float
        Length of hidden states before the first layer; matters only if lengths grow.
    step : float
        Factor of the update that a layer adds.
    threshold : float
        Mean cosine from which on tokens count as collapsed.

    Raises
    ------
    TypeError, ValueError
        For numbers out of these ranges, norms with gains, and unknown names of activations; for
        lengths above 1e50 and positive ones below 1e-50.

    Notes
    -----
    The recursion is that of `meanfield.networks.initialisation`. It holds for wide networks, whose
    tokens are nearly equiangular: a single network differs from it by random lengths of outputs, of
    relative size (2/d)^(1/2) in each layer. Not modelled: trained weights, causal masks, positions,
    gated maps, biases, and logits in which a token prefers itself (Q^T K with a nonzero mean).

    Cost: some milliseconds a layer with a feed-forward map, 0.1 ms without; at least 0.2 s in all.
    For large logits it grows as their square, 2 s for 10 and 8 s for 20.

    References
    ----------
    Karagodin, Ge, Polyanskiy and Rigollet, arXiv:2510.22026 (normalisations); Chen, Lin, Polyanskiy
    and Rigollet, arXiv:2510.05554 (long contexts). The recursion is derived here.
    """

    n: int
    d: int
    depth: int
    heads: int = 1
    normalisation: mf.Normalisation = PLACEMENTS["Pre-LN"]
    _: KW_ONLY
    logits: float = 1.0
    values: float = 1.0
    identity: float = 0.0
    feed_forward: float = 0.0
    inner: float = 1.0
    activation: str = "gelu"
    rho: float = 0.0
    radius: float = 1.0
    step: float = 1.0
    threshold: float = 0.9

    def __post_init__(self) -> None:
        """Check the numbers; TypeError or ValueError names the first that does not fit."""
        least = {"n": FEWEST_ADVISED_TOKENS, "d": 4, "depth": 1, "heads": 1}
        for name, number in least.items():
            self._set(name, whole_number(name, getattr(self, name), least=number))
        divides = self.d % self.heads == 0 and self.d >= 4 * self.heads
        require("heads", self.heads, "a divisor of d with d/heads >= 4", divides)
        norm = self.normalisation
        expected = "a Normalisation without norms that have gains, as mf.PreLN()"
        require("normalisation", norm, expected, isinstance(norm, mf.Normalisation), TypeError)
        require("normalisation", norm, expected, not norm.norms)
        expected, most = f"between 0 and {LARGEST_LOGITS:g}", LARGEST_LOGITS
        self._set("logits", real("logits", self.logits, expected, lambda x: 0 <= x <= most))
        for name in ("values", "identity", "feed_forward", "inner", "step", "radius"):
            may_be_0 = name in ("values", "identity", "feed_forward")
            self._set(name, _length(name, getattr(self, name), may_be_0))
        both = self.values, self.identity
        require("values and identity", both, "not both 0", any(both))
        known = mf.activations.ACTIVATIONS
        is_known = isinstance(self.activation, str) and self.activation in known
        require("activation", self.activation, f"one of {', '.join(known)}", is_known)
        low = -1 / (self.n - 1)
        expected = f"between {low:.6g} = -1/(n - 1) and 1"
        self._set("rho", real("rho", self.rho, expected, lambda x: low < x < 1))
        self._set("threshold", real("threshold", self.threshold, "above rho, and below 1",
                                    lambda x: self.rho < x < 1))  # fmt: skip

    def _set(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)

    # Predicted -----------------------------------------------------------------------------

    @cached_property
    def _overlaps(self) -> Overlaps:
        """Overlaps of the attention weights at the advised sizes."""
        return Overlaps(self.n, self.d / self.heads, self.logits)

    def _layers(self, normalisation: mf.Normalisation) -> Iterator[tuple[float, float, float]]:
        """Endless iterator of (1 - rho, r, own) by layer, as `layers_of`."""
        return layers_of(self, self._overlaps, normalisation)

    @property
    def placements(self) -> Mapping[str, mf.Normalisation]:
        """The advised normalisation, and Post-, Pre- and Peri-LN, by name."""
        name = next((k for k, v in PLACEMENTS.items() if v == self.normalisation), None)
        return PLACEMENTS if name else {repr(self.normalisation): self.normalisation} | PLACEMENTS

    @property
    def name(self) -> str:
        """The name of the normalisation among `placements`."""
        return next(k for k, v in self.placements.items() if v == self.normalisation)

    @cached_property
    def collapses(self) -> dict[str, float]:
        """The layer at which the mean cosine crosses the threshold, by placement of the norms.

        Interpolated between layers; inf if the threshold is not reached within 100 times the depth.
        """
        searched = SEARCHED_DEPTHS * self.depth + 1
        gaps = {name: (gap for gap, *_ in self._layers(n)) for name, n in self.placements.items()}
        return {name: crossing(islice(g, searched), self.threshold) for name, g in gaps.items()}

    @property
    def collapse(self) -> float:
        """The layer of collapse under the advised normalisation, as in `collapses`."""
        return self.collapses[self.name]

    @cached_property
    def layers(self) -> xr.Dataset:
        """Predictions by (normalisation, layer).

        `mean_cosine`; `gap`, 1 - `mean_cosine`; `radius`; and `attended`, the effective number
        1/sum_j w_ij^2 of tokens that a token attends to in the next layer.
        """
        rows = [[*islice(self._layers(norm), self.depth + 1)] for norm in self.placements.values()]
        gap, radius, squares = np.moveaxis(np.array(rows), -1, 0)
        columns = {"mean_cosine": 1 - gap, "gap": gap, "radius": radius, "attended": 1 / squares}
        dims = "normalisation", "layer"
        return xr.Dataset(
            {name: (dims, values) for name, values in columns.items()},
            {"normalisation": list(self.placements), "layer": np.arange(self.depth + 1)},
        )

    @cached_property
    def critical(self) -> xr.Dataset:
        """Logits at which attention begins to concentrate on few of n tokens, by `arrangement`.

        `predicted` is the strength at which E sum_j w_j^2 = 1/4, computed exactly at this n; `law`
        is its asymptotic form for large n. By arrangement of the tokens:

        - "random weights": standard deviation of logits of tokens with the mean cosine rho,
          ~ (4/3) (2 log n/(1 - rho))^(1/2);
        - "equiangular": beta of logits beta <x_i, x_j>, ~ log n/(1 - rho);
        - "uniform keys": beta of a query among independent uniform keys on the sphere of a head,
          S^(d/heads - 1); the law is c n^{2/(d/heads - 1)}, with the c at which it is exact for
          2 n keys.
        """
        n, rho, k = self.n, max(self.rho, 0.0), self.d // self.heads
        gaussian, equiangular = critical_gaussian(n, rho), critical_equiangular(n, rho)
        keys, more_keys = (critical_uniform_keys(count, k) for count in (n, 2 * n))
        laws = np.sqrt(32 / 9 * np.log(n) / (1 - rho)), np.log(n) / (1 - rho)
        predicted = [gaussian, equiangular, keys]
        return xr.Dataset(
            {
                "predicted": ("arrangement", predicted),
                "law": ("arrangement", [*laws, more_keys / 2 ** (2 / (k - 1))]),
            },
            {"arrangement": ["random weights", "equiangular", "uniform keys"]},
        )

    # Measured ------------------------------------------------------------------------------

    def model(self, rng: RandomSource) -> mf.Transformer:
        """A model with random weights of the advised sizes, for `solve` with `steppers.Layers`.

        Entries are independent and normal. A layer takes the time `step`:
        ``solve(model, tokens, (0, depth * step), dt=step, scheme=steppers.Layers)``.

        Parameters
        ----------
        rng : numpy.random.Generator or seed
        """
        random = generator(rng)
        k = self.d // self.heads

        def drawn(*shape: int, size: float) -> np.ndarray:
            return size * random.standard_normal((self.depth, *shape))

        def by_layer(matrices: np.ndarray) -> mf.PerLayer:
            return mf.PerLayer(matrices, duration=self.step)

        Q, K = (drawn(self.heads, k, self.d, size=self.d**-0.5) for _ in range(2))
        V = drawn(self.heads, k, self.d, size=self.d**-0.5)
        output = drawn(self.heads, self.d, k, size=self.values * self.d**-0.5)
        options: dict[str, PassedOn] = {"V": by_layer(V), "output": by_layer(output)}
        if self.identity:
            options = {"V": by_layer(output @ V + self.identity / self.heads * np.eye(self.d))}
        beta = self.logits * self.d / np.sqrt(k)
        drift = mf.Attention(by_layer(Q), by_layer(K), beta=beta, **options)
        forward = None
        if self.feed_forward:
            m, (x, mass) = 4 * self.d, NORMAL_RULE
            phi = mf.activations.ACTIVATIONS[self.activation]
            square = np.average(phi(self.inner * x) ** 2, weights=mass)
            outer = drawn(self.d, m, size=self.feed_forward / np.sqrt(self.d * m * square))
            inner = drawn(m, self.d, size=self.inner)
            forward = mf.FeedForward(by_layer(inner), by_layer(outer), activation=phi)
        return mf.Transformer(drift, normalisation=self.normalisation, feedforward=forward)

    def tokens(self, rng: RandomSource) -> mf.Tokens:
        """Random tokens with mean cosine rho >= 0 and, if the normalisation has radii, `radius`.

        Raises
        ------
        ValueError
            For a rho < 0.
        """
        if self.rho < 0:
            raise ValueError(f"Random tokens have rho >= 0; got rho = {self.rho:g}.")
        random = generator(rng)
        x = np.sqrt(1 - self.rho) * mf.Tokens.uniform(self.n, self.d, rng=random).x
        x = x + np.sqrt(self.rho) * mf.Tokens.uniform(1, self.d, rng=random).x
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        radii = np.full(self.n, self.radius) if self.normalisation.has_radii else None
        return mf.Tokens(x, radii=radii)

    def measure(self, networks: int = 1, *, rng: RandomSource = 0) -> xr.Dataset:
        """Draw random networks and run them: `mean_cosine` (network, layer), `collapse` (network).

        Parameters
        ----------
        networks : int
            Number of networks.
        rng : numpy.random.Generator or seed

        Notes
        -----
        Each network costs depth * n * d * (n + 4 d) operations, and 4 depth d^2 numbers of memory.
        """
        networks, random = whole_number("networks", networks), generator(rng)
        step, rows = self.step, []
        for _ in range(networks):
            model, start = self.model(random), self.tokens(random)
            times = step * np.arange(self.depth + 1)
            options: dict[str, PassedOn] = {"dt": step, "scheme": Layers, "progress": False}
            run = mf.solve(model, start, (0, times[-1]), t_eval=times, **options)
            rows.append(run.observables["mean_cosine"].values)
        cosines = np.array(rows)
        collapse = [crossing(1 - row, self.threshold) for row in cosines]
        return xr.Dataset(
            {"mean_cosine": (("network", "layer"), cosines), "collapse": ("network", collapse)},
            {"network": np.arange(networks), "layer": np.arange(self.depth + 1)},
        )

    # Words ---------------------------------------------------------------------------------

    @property
    def words(self) -> tuple[str, ...]:
        """The predictions in sentences."""
        layers = self.layers.sel(normalisation=self.name)
        last, attended = float(layers.mean_cosine[-1]), float(layers.attended[0])
        k = self.d // self.heads
        rivals = {name: k for name, k in self.collapses.items() if name != self.name}
        edge, by_log, keys = self.critical.predicted.values
        side = "above" if self.logits > edge else "below"
        return (
            f"{self.name}: the mean cosine crosses {self.threshold:g} {_layer(self.collapse)}; "
            f"after {self.depth} layers it is {last:.3g}, from {self.rho:.3g}.",
            f"With other placements: {'; '.join(f'{n} {_layer(k)}' for n, k in rivals.items())}.",
            f"A token looks at {attended:.3g} of {self.n} tokens in the first layer: logits of "
            f"{self.logits:.3g} are {side} the critical {edge:.3g}, which grows like "
            "(log n)^(1/2).",
            f"Critical beta for {self.n} tokens that attend by their cosines: {by_log:.4g} if "
            f"equiangular (log n), {keys:.4g} among uniform keys in d = {k} (n^{2 / (k - 1):.3g}).",
            "Single networks differ from this by random lengths of outputs, "
            f"{np.sqrt(2 / self.d):.2g} of them in each layer. Trained weights, causal masks and "
            "positions are not in it.",
        )

    def __repr__(self) -> str:
        layers = f"{self.depth} layers of {self.heads} heads"
        title = f"Advice: n = {self.n}, d = {self.d}, {layers}, {self.name}"
        return "\n".join([title, *(f"  {sentence}" for sentence in self.words)])

    def _repr_html_(self) -> str:
        from meanfield.plotting import result_card

        return result_card(self)

    def plot(self) -> "Figure":
        """Draw mean cosines and numbers of attended tokens by layer, for each placement."""
        from .pictures import of_advice

        return of_advice(self)


def _layer(layer: float) -> str:
    """The layer of a collapse in words; inf means none within 100 times the depth."""
    return f"at layer {layer:.3g}" if layer < np.inf else "at no layer within 100 times the depth"

"""Fit of a flow to the layers of a network, with attempts to falsify it."""

import warnings
from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np

from meanfield import SA, UnresolvedWarning
from meanfield.extending import Progress, RandomSource, boolean, fitting, generator, whole_number

from .equations import Equations
from .families import ParameterFamily
from .fitted import Fit
from .least_squares import LeastSquares
from .predictions import Prediction, predictions, split
from .replicas import ReplicaEquations
from .transitions import transitions_of
from .wide import WideEquations

USUAL_EVALUATIONS = 40  # that a fit takes, about
# Mean cosines of a layer and the next from which a kappa is guessed
GUESSED_COSINES = 0.05, 1 - 1e-6
# Mean cosine of a layer and the next: standard errors, and enough of it
CHANCE_ERRORS, RELATED_COSINE = 4.0, 0.5


def fit(
    layers: Any,
    family: Any = SA,
    *,
    start: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
    noise: bool = True,
    replicas: int = 8,
    steps: int = 5,
    test_replicas: int = 32,
    verdict: bool = True,
    hold: bool = True,
    wide: bool = False,
    rng: RandomSource = 0,
    progress: bool | None = None,
) -> Fit:
    """Infer the parameters of a flow from the tokens of consecutive layers.

    Layer l + 1 is the model's state at the time T from layer l. With noise, estimating equations
    are solved whose mean is that of the model's own replicas: a score of a simpler model, less its
    mean. Without noise, the sum of the squared angles between the model's tokens and the real ones
    is least.

    Parameters
    ----------
    layers : array (L + 1, n, d), list of such arrays, or trace
        Hidden states of the tokens before the first layer and after each, of one text or several.
        Of a trace its `hidden`. Their directions are used, their lengths are not.
    family : class of drifts or function
        `mf.SA`, `mf.USA`, any class of drifts with parameters, or a function of numbers that gives
        a drift or a model without noise, as ``lambda beta, a: mf.SA(beta) + a * field``. Parameters
        with a default are not fitted. A factor of the whole drift, as a scalar value matrix, and
        the time enter only as their product: hold the time.
    start : dict, optional
        Where the search begins; 1 for parameters of the family, 0.5 for "time", 100 for "kappa",
        but with `wide` the kappa that the mean cosine of layers would have without a drift.
        Arrays are fitted entry by entry.
    fixed : dict, optional
        Parameters with fixed values: of the family, "time" or "kappa".
    noise : bool
        Whether tokens have noise, with a kappa that is fitted.
    replicas : int
        Of each layer, even, >= 4. They add a part of about 1/replicas to variances, or less.
    steps : int
        Of replicas in each layer; their bias falls as its square.
    test_replicas : int
        Of each layer, >= 16 and twice the number of parameters, for variances and the test of fit.
    verdict : bool
        Whether to test the fit.
    hold : bool
        Whether to fit again without the last third of the layers, and of the texts, and to predict
        them. Without a verdict they are not.
    wide : bool
        Whether to find the root in the limit of many dimensions, for zonal drifts with noise: means
        are then those of `wide.WideEquations`, and replicas are drawn at the root alone, for its
        variance and the rest of its mean. 250 tokens of 6 layers in d = 384 take half a minute
        instead of some minutes.
    rng : numpy.random.Generator or seed
        Of replicas and bootstrap.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    Fit
        `parameters`, `interval`, `profile`, `rejected`, `verdict`, `model`.

    Raises
    ------
    TypeError, ValueError
        For layers that are none, and parameters that the family has not.
    MeanfieldError
        For models that tokens on the sphere cannot follow.

    Warns
    -----
    UnresolvedWarning
        If the layers do not identify some combination of parameters, which it names, or if the
        search for a root of the estimating equations fails.
    """
    random = generator(rng)
    start, fixed = start or {}, fixed or {}
    chosen = ParameterFamily(family, start, fixed, boolean("noise", noise))
    replicas = whole_number("replicas", replicas, least=4)
    fitting("replicas", replicas, "even: they come in pairs", replicas % 2 == 0)
    steps = whole_number("steps", steps)
    test_replicas = whole_number("test_replicas", test_replicas, least=16)
    hold = boolean("verdict", verdict) and boolean("hold", hold)
    free = len(chosen.start)
    many = f"at least twice the {free} parameters"
    fitting("test_replicas", test_replicas, many, not noise or test_replicas >= 2 * free)
    fitting("wide", wide, "False for a fit without noise", not boolean("wide", wide) or noise)
    transitions = transitions_of(layers, random)
    if all(np.array_equal(one.x, one.y) for one in transitions):
        raise ValueError("layers has tokens that do not move: there is nothing to fit.")
    cosines = np.concatenate([(one.x * one.y).sum(axis=-1) for one in transitions])
    chance = CHANCE_ERRORS / np.sqrt(cosines.size * transitions[0].x.shape[1])
    unrelated = abs(cosines.mean()) < min(chance, RELATED_COSINE)
    if wide and not {"kappa"} & {*start, *fixed} and not unrelated:
        # from noise that is too strong by far the search ends before the root
        spread = -np.log(np.clip(cosines.mean(), *GUESSED_COSINES))  # (d - 1) time/kappa
        kappa = (transitions[0].x.shape[1] - 1) * chosen.at(chosen.start).time / spread
        chosen = ParameterFamily(family, {**start, "kappa": kappa}, fixed, noise)
    done = count(1)
    with Progress("fitting", progress) as bar:

        def evaluated() -> None:
            evaluations = next(done)
            bar.show(
                min(0.99, evaluations / USUAL_EVALUATIONS), f"fitting, {evaluations} evaluations"
            )

        of_replicas = {"test_replicas": test_replicas, "steps": steps}
        equations: Equations
        if not noise:
            equations = LeastSquares(chosen, transitions, evaluated)
        elif wide:
            equations = WideEquations(chosen, transitions, evaluated, **of_replicas)
        else:
            equations = ReplicaEquations(
                chosen, transitions, evaluated, replicas=replicas, **of_replicas
            )
        estimate, goodness = equations.judged(equations.estimate(), random)
        ahead: list[Prediction] = []
        train, held_out = split(transitions)
        if hold and train and held_out and not unrelated:
            training = equations.of(train)
            ahead = predictions(training, training.estimate(estimate.point).point, held_out, random)
    goodness = goodness if verdict else None
    result = Fit(estimate, equations.quiet(), goodness, tuple(ahead), bool(unrelated))
    if result.warning:
        warnings.warn(result.warning, UnresolvedWarning, stacklevel=2)
    return result

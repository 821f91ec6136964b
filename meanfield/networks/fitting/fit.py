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

USUAL_EVALUATIONS = 40  # approximate number of evaluations of a fit, for the progress bar
# Range to which the mean cosine of consecutive layers is clipped before kappa is guessed from it
GUESSED_COSINES = 0.05, 1 - 1e-6
# Layers are unrelated if their mean cosine is below both: so many standard errors, and this cosine
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

    Layer l + 1 is modelled as the state at time T of the flow that starts from layer l. With noise
    the estimate solves estimating equations: the score of a simpler model equals its mean over
    replicas of the flow. Without noise it minimises the sum of the squared angles between the
    model's tokens and the real ones.

    Parameters
    ----------
    layers : array (L + 1, n, d), list of such arrays, or trace
        Hidden states of the tokens before the first layer and after each, of one text or several.
        For a trace these are its `hidden`. Only their directions are used.
    family : class of drifts or function
        `mf.SA`, `mf.USA`, any class of drifts with parameters, or a function of numbers that gives
        a drift or a model without noise, as ``lambda beta, a: mf.SA(beta) + a * field``. Parameters
        of a function that have a default are not fitted. A factor of the whole drift, such as a
        scalar value matrix, and the time enter only as their product: fix the time.
    start : dict, optional
        Where the search begins; 1 for parameters of the family, 0.5 for "time", 100 for "kappa",
        but with `wide` the kappa that the mean cosine of layers would have without a drift.
        Arrays are fitted entry by entry.
    fixed : dict, optional
        Parameters with fixed values: of the family, "time" or "kappa".
    noise : bool
        Whether tokens have noise, with a kappa that is fitted.
    replicas : int
        Number of replicas of each layer, even, >= 4. They increase variances by a relative amount
        of at most about 1/replicas.
    steps : int
        Number of time steps of replicas in each layer; the bias falls as 1/steps^2.
    test_replicas : int
        Number of replicas of each layer for variances and the test of fit, >= 16 and at least twice
        the number of parameters.
    verdict : bool
        Whether to test the fit.
    hold : bool
        Whether to fit again without the last third of the layers, and of the texts, and to predict
        them. Not done if `verdict` is False.
    wide : bool
        Whether to find the root in the limit of many dimensions, for zonal drifts with noise. Means
        follow from ordinary differential equations, and replicas are drawn at the root only, to
        correct it and for its variance. 250 tokens of 6 layers in d = 384 take half a minute
        instead of some minutes.
    rng : numpy.random.Generator or seed
        Random numbers of replicas and bootstrap.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    Fit
        `parameters`, `interval`, `profile`, `rejected`, `verdict`, `model`.

    Raises
    ------
    TypeError, ValueError
        For layers of another type or shape, and unknown parameters.
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
        # a search that starts from much too strong noise ends before the root
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

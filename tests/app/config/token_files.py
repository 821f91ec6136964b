"""Small configurations with tokens, as plain data, for the tests of this folder."""

import pytest
from meanfield.app.config import parse_config
from meanfield.app.config.build import build_model, build_state

import meanfield as mf

UNIFORM = {"n": 6, "dimension": 3, "initial": "uniform", "seed": 1}
TRIANGLE = {"angles": [0.0, 1.0, 2.0]}
SA = {"drift": "SA", "beta": 1.0}
NOISY = {**SA, "kappa": 3.0}
DENSITY = {"geometry": {"degree": 8}, "initial": {"kind": "fourier", "cos": [0.5]}}
GOE = {"ensemble": "goe", "seed": 3}


def valid(model=None, tokens=None, solve=None, **tables):
    """A small valid configuration as plain data."""
    return {
        "model": SA if model is None else model,
        "tokens": UNIFORM if tokens is None else tokens,
        "solve": {"t_end": 0.1, "outputs": 3, **(solve or {})},
        **tables,
    }


def attention(**keys):
    """A valid configuration with such a table [model]."""
    return valid({"drift": "Attention", **keys})


def refusal(data, source=None):
    """The message with which a configuration is refused, when it is read or built."""
    with pytest.raises(mf.ConfigError) as caught:
        config = parse_config(data, source=source)
        build_state(config)
        build_model(config)
    return str(caught.value)

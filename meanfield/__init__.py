"""Mean-field dynamics of attention: densities and tokens under the noisy Transformer.

A model says how measures move, a state is a measure in some representation, and `solve` moves
a state under a model:

    import numpy as np
    import meanfield as mf

    model = mf.Transformer(mf.USA(beta=4.0), kappa=6.0)
    mu0 = mf.Circle(degree=128).density(lambda theta: 1 + 0.3 * np.cos(theta))
    run = mf.solve(model, mu0, t_span=(0, 5))
"""

import lazy_loader

from .core.namesake import warn_of_namesakes
from .core.public_names import with_hint

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
warn_of_namesakes()
_PUBLIC_MODULES = (
    "activations", "engines", "ensembles", "extending", "networks", "noise", "normalisation",
    "plotting", "scalings", "steppers", "testing",
)  # fmt: skip
__getattr__ = with_hint(__name__, __all__, __getattr__, _PUBLIC_MODULES)

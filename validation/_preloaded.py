"""What most scripts import, for the process that they are forks of: see _pool.py."""

import gc
from importlib import import_module

import xarray
from numba.core.registry import cpu_target

import meanfield as mf

OTHERS = (
    "_pool", "matplotlib.backends.backend_agg", "meanfield.plotting.theme", "scipy.integrate",
    "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats",
)  # fmt: skip

for name in mf.__all__:
    getattr(mf, name)
for name in OTHERS:
    import_module(name)
cpu_target.target_context.refresh()  # once, before any compiled code is read: 0.3 s
xarray.Dataset(coords={"t": [0.0]})  # it looks once for arrays of other packages: 0.4 s
gc.freeze()  # these objects stay: a search for garbage in a fork would copy their memory

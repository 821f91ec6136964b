"""The state of the installation: versions, FFTW, compiled code, threads, licences."""

import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.namesake import namesakes
from ..core.system import pyshtools_has_wheel, usable_cores
from ..core.version import __version__, program_of_ffmpeg, version_of

if TYPE_CHECKING:
    from ..models import Transformer

# Name of the package and licence of its binary wheel.
REQUIRED_PACKAGES = {
    "numpy": "BSD-3-Clause",
    "scipy": "BSD-3-Clause",
    "numba": "BSD-2-Clause",
    "llvmlite": "BSD-2-Clause AND Apache-2.0 WITH LLVM-exception",
    "pyfftw": "BSD-3-Clause; its wheels contain FFTW, GPL-2.0-or-later",
    "ducc0": "GPL-2.0-or-later",
    "pyshtools": "BSD-3-Clause",
    "POT": "MIT",
    "xarray": "Apache-2.0",
    "h5netcdf": "BSD-3-Clause",
    "h5py": "BSD-3-Clause",
    "matplotlib": "Matplotlib licence (PSF-based)",
    "tqdm": "MPL-2.0 AND MIT",
    "threadpoolctl": "BSD-3-Clause",
    "click": "BSD-3-Clause",
    "lazy_loader": "BSD-3-Clause",
}
OPTIONAL_PACKAGES = {"imageio-ffmpeg": "BSD-2-Clause; its wheels contain ffmpeg, GPL-3.0-or-later"}
MODULE_NAMES = {"POT": "ot", "imageio-ffmpeg": "imageio_ffmpeg"}  # where the name differs
WITHOUT_WHEEL = () if pyshtools_has_wheel() else ("pyshtools",)
THREADED_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA", "DUCC0")
THREAD_VARIABLES = tuple(f"{name}_NUM_THREADS" for name in THREADED_LIBRARIES)
LICENCE_NOTE = """\
FFTW, inside the wheels of pyfftw, and ducc0 are under the GNU General Public License, version 2
or later. They are installed beside meanfield, which is BSD-3-Clause, and are not part of it.
Whoever redistributes a bundle that contains them has to meet the terms of the GPL."""


def doctor() -> dict[str, Any]:
    """The state of this installation as plain data; `in_words` formats it as text.

    Returns
    -------
    dict
        ``meanfield``, ``python``, ``platform`` and ``ffmpeg`` (where it is, or None);
        ``packages``, for each its version (None if missing), licence, whether it is required,
        and why it cannot be imported (None if it can); ``problems``, one line for each required
        package that is missing or broken, and one if no folder for compiled code is writable;
        ``fftw``, ``numba``, ``threads`` and ``licences``.
    """
    licences = {**REQUIRED_PACKAGES, **OPTIONAL_PACKAGES}
    packages = {name: _package(name, licence) for name, licence in licences.items()}
    numba = _numba() if not packages["numba"]["broken"] else None
    problems = [
        f"{name} {package['broken'] or 'is not installed'}: pip install {name}"
        for name, package in packages.items()
        if package["required"] and (package["broken"] or not package["version"])
    ]
    problems += namesakes()
    if numba and not numba["cache"]:
        from ..lowlevel.code_cache import NO_FOLDER

        problems.append(NO_FOLDER)
    return {
        "meanfield": __version__,
        "python": f"{platform.python_version()} ({sys.implementation.name})",
        "platform": platform.platform(),
        "packages": packages,
        "problems": problems,
        "fftw": _fftw() if not packages["pyfftw"]["broken"] else None,
        "numba": numba,
        "threads": _threads(),
        "ffmpeg": program_of_ffmpeg(),
        "licences": LICENCE_NOTE,
    }


def _package(name: str, licence: str) -> dict[str, Any]:
    """Version, licence and fault of a package, and whether it is required."""
    broken = None
    try:
        with warnings.catch_warnings(action="ignore"):  # of tqdm without widgets, for instance
            import_module(MODULE_NAMES.get(name, name))
    except Exception as error:  # the report includes any error of a broken installation
        broken = f"cannot be imported ({type(error).__name__}: {error})"
    report = {"version": version_of(name), "licence": licence, "broken": broken}
    return {**report, "required": name in REQUIRED_PACKAGES and name not in WITHOUT_WHEEL}


def _fftw() -> str | None:
    """Version of FFTW; None if it cannot be loaded."""
    from ..core.errors import MeanfieldError

    try:
        from ..lowlevel.fourier import fftw_version

        return fftw_version()
    except (MeanfieldError, ImportError, OSError):
        return None


def _numba() -> dict[str, Any]:
    """The folder of compiled code, the threading layer, and the number of threads."""
    from numba import config

    from ..lowlevel.code_cache import cache_folder

    folder = cache_folder()
    return {
        "cache": None if folder is None else str(folder),
        "threading_layer": config.THREADING_LAYER,
        "threads": config.NUMBA_NUM_THREADS,
    }


def _threads() -> dict[str, Any]:
    set_here = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
    return {"cores": os.cpu_count(), "usable": usable_cores(), "environment": set_here}


def in_words(report: dict[str, Any]) -> str:
    """The report of `doctor` as text, for a terminal or a bug report."""
    numba, threads = report["numba"], report["threads"]
    variables = ", ".join(f"{name}={value}" for name, value in threads["environment"].items())
    lines = [
        f"meanfield    {report['meanfield']}",
        f"python       {report['python']}",
        f"platform     {report['platform']}",
        f"cores        {threads['usable']} usable of {threads['cores']}",
        f"threads      {variables or 'no variable set; each library uses its default'}",
        f"fftw         {report['fftw'] or 'not found'}",
    ]
    if numba:
        folder = numba["cache"] or "nowhere, see below"
        lines += [
            f"numba        {numba['threads']} threads, layer {numba['threading_layer']}",
            f"             compiled code is cached in {folder}",
        ]
    lines += [f"ffmpeg       {report['ffmpeg'] or 'none: movies are written as .gif only'}", ""]
    lines += [f"{'package':<16}{'version':<16}licence"]
    for name, package in report["packages"].items():
        version = package["version"] or ("MISSING" if package["required"] else "not installed")
        lines.append(f"{name:<16}{version:<16}{package['licence']}")
    lines += ["", report["licences"], ""]
    lines += report["problems"] or ["Everything that is required is installed."]
    return "\n".join(lines)


# Compilation -------------------------------------------------------------------------------------


def compile_everything(report: Callable[[str, float], object]) -> float:
    """Solve one small problem of every kind, which fills the cache of compiled code.

    Parameters
    ----------
    report : callable
        Called with the name and the seconds of every kind; these are short if its code was
        cached.

    Returns
    -------
    float
        Total seconds.
    """
    from ..solving import solve

    begin = time.perf_counter()
    for kind, model, state in _problems():
        start = time.perf_counter()
        options: dict[str, Any] = {"rng": 0} if kind.startswith("noisy") else {}
        solve(model, state, t_span=(0, 0.01), progress=False, **options)
        report(kind, time.perf_counter() - start)
    return time.perf_counter() - begin


def _problems() -> Iterator[tuple[str, "Transformer", Any]]:
    """Yield name, model and state of a problem for each group of compiled functions."""
    import numpy as np

    from ..models import SA, USA, Attention
    from ..models.transformer import Transformer
    from ..spaces import Circle, Sphere, Zonal
    from ..spaces.characteristics import Characteristics
    from ..states import Equiangular, Gaussian, Gram, Tokens

    model, noisy = Transformer(SA(beta=1.0)), Transformer(USA(beta=1.0), kappa=4.0)
    densities: dict[str, Any] = {
        "the circle": Circle(16).von_mises(0.0, 1.0),
        "the sphere": Sphere(16).von_mises_fisher([0.0, 0.0, 1.0], 1.0),
        "axisymmetric": Zonal(8, 16).von_mises_fisher(1.0),
    }
    for space, density in densities.items():
        yield f"density, {space}", noisy, density
        yield f"characteristics, {space}", model, Characteristics(density)
    for d in (2, 3, 5):
        tokens = Tokens.uniform(20, d, rng=0)
        yield f"tokens in R^{d}", model, tokens
        yield f"noisy tokens in R^{d}", noisy, tokens
    yield "inner products of tokens", model, Gram(tokens.x @ tokens.x.T)
    yield "equiangular tokens", model, Equiangular(n=8, rho=0.0)
    eye = np.eye(2)
    yield "Gaussian", Transformer(Attention(Q=-eye, K=eye)), Gaussian(np.zeros(2), eye)

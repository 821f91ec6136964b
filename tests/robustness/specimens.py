"""Small results of every kind, files of them, and all that they give, to be compared.

As a program it loads files in a process of its own, which damaged ones may hang or crash.
"""

import json
import os
import resource
import select
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

import meanfield as mf
from meanfield.core.identity import digest

LIMIT = 10.0  # seconds; a file that takes longer hangs
FIRST = 200.0  # seconds for the first file of a kind, for which loops are compiled
MEMORY = 6 * 2**30  # bytes of address space; what asks for more is refused by the system
CIRCLE = mf.Circle(12)
TIMES = [0.0, 0.1, 0.3]
BY_THE_CLOCK = ("seconds", "written", "command_line", "versions", "machine")


# Results -----------------------------------------------------------------------------------------


def bump(angles):
    return 1 + 0.4 * np.cos(angles) + 0.1 * np.sin(2 * angles)


def run(state, drift=None, kappa=np.inf, **options):
    """A short run."""
    model = mf.Transformer(mf.USA(1.0) if drift is None else drift, kappa)
    return mf.solve(model, state, (0, 0.3), t_eval=TIMES, progress=False, **options)


def tokens(n=5, d=3):
    x = np.random.default_rng(1).standard_normal((n, d))
    return mf.Tokens(x / np.linalg.norm(x, axis=-1, keepdims=True))


def matrices():
    """Attention with matrices so long that files keep them as variables."""
    rng = np.random.default_rng(2)
    q, k, v = rng.standard_normal((3, 6, 6)) / 6
    return mf.Attention(Q=q, K=k, V=v)


def crossing(_t, density):
    return abs(density.moment(1)) - 0.21


def growing(t):
    """A matrix by a function, which no file can hold: such files keep the observables."""
    return (1 + t) * np.eye(3)


def gram():
    x = tokens().x
    return mf.Gram(x @ x.T)


RUNS = {
    "circle": lambda: run(CIRCLE.density(bump), kappa=3.0, events=crossing),
    "ensemble": lambda: run(CIRCLE.density(bump), mf.USA([0.5, 1.0, 2.0]), 3.0),
    "observed": lambda: run(CIRCLE.density(bump), kappa=3.0, observe={"own": lambda s: s.mass}),
    "sphere": lambda: run(mf.Sphere(6).perturbed(0.01, rng=0), kappa=3.0, max_degree=16),
    "zonal": lambda: run(mf.Zonal(4, 8).density(lambda x: 1 + 0.3 * x), kappa=3.0),
    "characteristics": lambda: run(mf.Characteristics(CIRCLE.density(bump))),
    "tokens": lambda: run(tokens(), mf.SA(2.0)),
    "noisy tokens": lambda: run(tokens(), kappa=5.0, rng=3, dt=0.1),
    "matrices": lambda: run(tokens(4, 6), matrices()),
    "function": lambda: run(tokens(4, 3), mf.Attention(V=growing)),
    "gram": lambda: run(gram()),
    "gaussian": lambda: run(mf.Gaussian([0.5, -0.2], [[1.0, 0.3], [0.3, 0.5]]), plane()),
    "equiangular": lambda: run(mf.Equiangular(n=[8, 1e6], rho=0.1), mf.SA(1.0)),
}


def plane():
    return mf.Attention(Q=[[0.6, 0.8]], K=[[-0.6, -0.8]])


def study(**options):
    return mf.propagation_of_chaos(
        mf.Transformer(mf.Kuramoto(), 1.0), CIRCLE.density(bump), [4, 8], [0.0, 0.2],
        replicas=3, rng=3, dt=0.1, progress=False, **options,
    )  # fmt: skip


def diagram(**options):
    ends = {"save_at": [2.5], "progress": False, **options}
    return mf.branches(mf.Kuramoto(), mf.Circle(12), kappa=(1.5, 3.0), **ends)


def phase_diagram(**options):
    return mf.phase_diagram(
        mf.USA, mf.Circle(12), (1.5, 2.5), degrees=(1,), progress=False, **options
    )


RESULTS = {**RUNS, "study": study, "diagram": diagram, "phase diagram": phase_diagram}


# Checkpoints: what is loaded is the run that goes on from there ----------------------------------


def resumed(path, **options):
    """A run that goes on from its checkpoint, if that is there."""
    return run(CIRCLE.density(bump), kappa=3.0, checkpoint=path, resume=True, **options)


def resumed_tokens(path, **options):
    kept = {"checkpoint": path, "checkpoint_every": 0, "resume": True, **options}
    return run(tokens(), mf.SA(2.0), dt=0.05, **kept)


CHECKPOINTS = {
    "checkpoint": (resumed, {"max_steps": 3}),
    "checkpoint of tokens": (resumed_tokens, {"max_steps": 3}),
}


# Arrays of numbers, which configurations read ----------------------------------------------------


def numbers(path):
    """The points that a configuration reads from a file."""
    read = mf.read_config(path.with_name("numbers.toml"))
    return read.begin()


def write_numbers(path):
    x = tokens(20).x
    config = path.with_name("numbers.toml")
    if path.suffix == ".npy":
        np.save(path, x)
    elif path.suffix == ".npz":
        np.savez(path, x=x)
    else:
        np.savetxt(path, x, delimiter=",")
    config.write_text(
        "[model]\ndrift = { kind = 'SA', beta = 1.0 }\n[solve]\nt_span = [0, 1]\n"
        f"[initial]\nkind = 'Tokens'\nx = {{ kind = 'File', file = '{path.name}' }}\n"
    )


# Files -------------------------------------------------------------------------------------------


def write(kind, folder):
    """An intact file of this kind."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind in RESULTS:
        return RESULTS[kind]().save(folder / "result.nc")
    if kind in CHECKPOINTS:
        make, options = CHECKPOINTS[kind]
        make(folder / "run.checkpoint", **options)
        return folder / "run.checkpoint"
    path = folder / f"numbers.{kind}"
    write_numbers(path)
    return path


def load(kind, path):
    """What a file of this kind gives."""
    if kind in CHECKPOINTS:
        return contents(CHECKPOINTS[kind][0](path), BY_THE_CLOCK)
    if kind in RESULTS:
        return contents(mf.load(path))
    return {"points": digest(numbers(path))}


def contents(result, without=()):
    """Digests of all that a result gives, by name; `without` what differs from run to run."""
    if isinstance(result, mf.Solution):
        found = _of_solution(result)
    elif isinstance(result, mf.Study):
        law = {f"law.{name}": value for name, value in _of_solution(result.law).items()}
        found = _of_dataset(result.data) | law
    elif isinstance(result, mf.Diagram):
        kept = {name: value for name, value in vars(result).items() if name not in SPECIAL}
        found = _of_dataset(result.data) | kept
        found["specials"] = [[_of_special(s), _of_state(s.state)] for s in result.special_points]
        found["saved"] = [[number, _of_state(state)] for number, state in result.saved]
    else:
        loci = {n: [v.max_step, v.borders, v.points] for n, v in result.loci.items()}
        family = [mf.describe(result.family.drift), result.family.name, result.family.span]
        found = _of_dataset(result.data) | {"loci": loci, "family": family}
        found |= {"tricritical": result.tricritical, "ends": result.ends}
    return {name: digest(_without(value, without)) for name, value in found.items()}


def differences(one, other):
    """The names of what differs between two `contents`."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


SPECIAL = ("data", "special_points", "saved")


def _of_solution(run):
    kept = ("t", "states", "model", "status", "message", "stats", "t_events", "options", "rtol")
    found = {name: getattr(run, name) for name in kept} | {"provenance": run.provenance}
    return found | {f"observable {n}": v for n, v in _of_dataset(run.observables).items()}


def _of_dataset(data):
    attributes = {f"attribute {name}": _plain(value) for name, value in data.attrs.items()}
    return attributes | {str(n): [array.dims, array.values] for n, array in data.variables.items()}


def _of_special(special):
    return {name: value for name, value in vars(special).items() if name != "state"}


def _of_state(state):
    return [mf.describe(state.model), state.equation.degree, state.legendre_moments, state.kappa]


def _plain(value):
    """An attribute: JSON is read, and arrays are lists."""
    if isinstance(value, str) and value.startswith("{"):
        return json.loads(value)
    return np.asarray(value).tolist()


def _without(value, names):
    if isinstance(value, dict) and names:
        return {k: _without(v, names) for k, v in value.items() if k not in names}
    return value


# A process that loads ----------------------------------------------------------------------------


class Loader:
    """A process that loads files; one that hangs or crashes is replaced.

    `load` returns an outcome, and what was loaded or what was said: "loaded" and the contents,
    "refused" and the message, "foreign exception", "hang" or "crash".
    """

    def __init__(self):
        self._process = None

    def load(self, kind, path, limit=LIMIT):
        process = self._process = self._process or self._started()
        process.stdin.write(json.dumps([kind, str(path)]) + "\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], limit)[0]:
            self.close()
            return "hang", f"over {limit:g} s"
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            self.close()
            return "crash", f"exit code {code}"
        return tuple(json.loads(line))

    def close(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process.stdin.close()
            self._process.stdout.close()
            self._process = None

    @staticmethod
    def _started():
        command = [sys.executable, __file__]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, **pipes)
        assert process.stdout.readline() == "ready\n"
        return process


def serve():
    """Load what is asked for on standard input, and answer on standard output."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    resumed_tokens(None, resume=False)  # what is compiled or imported late, is so before
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        kind, path = json.loads(line)
        print(json.dumps(_tried(kind, Path(path))), file=answers, flush=True)


def _tried(kind, path):
    try:
        return "loaded", load(kind, path)
    except (mf.StorageError, mf.ConfigError) as error:
        said = str(error)
        return ("refused", said) if "\n" not in said else ("refused in several lines", said)
    except BaseException as error:
        return "foreign exception", f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    serve()

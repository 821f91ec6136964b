"""Tasks of configuration files: a run, a sweep, a study, a bifurcation diagram, ...

Each task is a class: the tables of its file, the computation, and the report and figure of the
result.
"""

import json
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..core.descriptions import KindOf, call_json, located, read_arguments
from ..core.errors import CheckpointError, ConfigError, MeanfieldError
from ..core.files import checksum
from ..core.forms import INVALID, TEXT, Form, Many, Plain, Reading, Schema, choice, toml
from ..core.parameters import parameters_of
from ..dynamics.observables import measure
from ..models import Drift
from ..models.parameters import StateSizes
from ..models.transformer import Transformer
from ..results.solution import SUCCESSFUL
from ..solving.checkpoint import is_checkpoint
from ..spaces import Space
from ..spaces.laws import DensityLaw
from ..states import Start, State
from ..sweeps.outcomes import NOT_RUN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..bifurcation import Diagram, PhaseDiagram
    from ..chaos import Study
    from ..results.solution import Solution
    from ..sweeps import Sweep

PROGRAM_ONLY = {
    *("model", "state", "mu0", "drift", "space", "events", "callback", "observe", "tangents"),
    *("observables", "functionals", "progress", "checkpoint", "resume", "provenance"),
    *("f", "store", "executor", "starts"),
}  # arguments that a table cannot give
PRINTED_OBSERVABLES = (
    "order_parameter", "entropy", "interaction_energy", "free_energy", "dissipation", "minimum",
    "spectral_tail", "w2_to_dirac", "cluster_count", "quadrature_error", "mean_cosine",
    "effective_rank", "mean_radius", "rho", "gap", "radius", "spread", "covariance_rank", "speed",
)  # fmt: skip
MAX_TABLE_ROWS = 20
PHASE_TABLE_ROWS = 6  # values of beta


def printable(name: object) -> str:
    """The name of a file as text, with bytes that are not UTF-8 escaped."""
    return str(name).encode(errors="backslashreplace").decode()


def checkpoint_of(out: Path) -> Path:
    """The file of the checkpoint, in the same folder as the result."""
    return Path(f"{out}.checkpoint")


# Tables of a file --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ArgumentTable(Form):
    """The table of the arguments of a function."""

    function: Callable[..., Any]

    @property
    def keys(self) -> list[str]:
        return [name for name in parameters_of(self.function) if name not in PROGRAM_ONLY]

    def read(self, data: Plain, where: str, reading: Reading) -> Any:
        if not isinstance(data, Mapping):
            return reading.refuse(where, f"expected a table; got {toml(data)}")
        return read_arguments(self.function, data, where, reading, self.keys)

    def json(self, definitions: Schema) -> Schema:
        return call_json(self.function, definitions, names=self.keys)


class DriftToFollow(KindOf):
    """A drift, or only its name if the parameter that it requires is followed."""

    def read(self, data: Plain, where: str, reading: Reading) -> Any:
        """A drift, or its class if a required parameter is followed."""
        kind = self.base.kinds.get(data) if isinstance(data, str) else None
        if kind is not None and any(p.required for p in parameters_of(kind).values()):
            return kind
        return super().read(data, where, reading)

    def json(self, definitions: Schema) -> Schema:
        return {"anyOf": [*super().json(definitions)["anyOf"], {"enum": self.names}]}


class NamesOfDrifts(Form):
    """Names of kinds of drifts, each at most once."""

    @property
    def array(self) -> Many:
        return Many(choice({name: Drift.kinds[name] for name in KindOf(Drift).names}))

    def read(self, data: Plain, where: str, reading: Reading) -> Any:
        """Names of drifts; a problem if one occurs twice."""
        drifts = self.array.read(data, where, reading)
        if drifts is INVALID or 0 < len(set(drifts)) == len(drifts):
            return drifts
        words = "expected an array of names of drifts, each at most once"
        return reading.refuse(where, f"{words}; got {toml(data)}")

    def json(self, definitions: Schema) -> Schema:
        return {**self.array.json(definitions), "minItems": 1, "uniqueItems": True}


# Tasks -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Configuration:
    """The task that a configuration file describes, read and checked.

    Attributes
    ----------
    data : dict
        The contents of the file as plain data that JSON can write; see `parse_config`.
    source : Path or None
        The file.
    tables : dict
        The tables by name: kinds, and arguments of functions.
    files : dict of Path
        The data files that it names, by dotted key.
    imports : dict
        The SHA-256 of each module imported for its kinds, by name.
    """

    data: dict[str, Any]
    source: Path | None
    tables: dict[str, Any]
    files: Mapping[str, Path] = field(default_factory=dict)
    imports: Mapping[str, str] = field(default_factory=dict)

    work: ClassVar[str] = ""  # the table that identifies the task
    calls: ClassVar[str] = ""  # room and name of the function whose arguments it gives
    objects: ClassVar[dict[str, Form]] = {}  # the other tables it requires
    optional: ClassVar[dict[str, Form]] = {}
    drawn: ClassVar[bool] = True  # whether a figure is written with the result

    @classmethod
    def function(cls) -> Callable[..., Any]:
        """The function whose arguments the table `work` gives, imported on demand."""
        room, name = cls.calls.split(".")
        return getattr(import_module(f"meanfield.{room}"), name)

    @classmethod
    def required(cls) -> dict[str, Form]:
        """The tables that a file of this kind must have."""
        return {**cls.objects, cls.work: ArgumentTable(cls.function())}

    @classmethod
    def forms(cls) -> dict[str, Form]:
        """All tables and keys that a file of this kind may have."""
        return {**cls.required(), **cls.optional, "title": TEXT, "description": TEXT}

    @abstractmethod
    def run(self, **options: Any) -> Any:
        """Run the task; `options` are progress, resume and out, the file of the result or None."""

    def outputs(self, out: Path) -> list[Path]:
        """The files of a result."""
        return [out]

    @abstractmethod
    def report(self, result: Any, wrote: str) -> str:
        """The printed report of a result; `wrote` names its files."""

    @abstractmethod
    def problems(self, result: Any) -> list[str]:
        """The reasons why a result is incomplete; [] if it is complete."""

    def figure(self, result: Any) -> "Figure | None":
        """The figure written with a result, or None if there is nothing to draw."""
        return None

    @property
    def provenance(self) -> dict[str, Any]:
        """Plain data, saved with a result, from which it can be recomputed."""
        return {
            "config": self.data,
            "config_file": None if self.source is None else printable(self.source),
            "data_files": {printable(p): {"sha256": checksum(p)} for p in self.files.values()},
            "imports": dict(self.imports),
            "command_line": list(map(printable, sys.argv)),
        }

    @contextmanager
    def locating_errors(self, table: str, names: Iterable[str] = ()) -> Iterator[None]:
        """Turn errors of the package into errors that name the file and the key.

        The key is the table, or one of `names` in it if the message begins with that name; data
        files of the table are named too.
        """
        try:
            yield
        except (ConfigError, CheckpointError):
            raise  # these name the file
        except (MeanfieldError, ValueError, TypeError, MemoryError) as error:
            key, text = located(str(error), table, names, self.files)
            if isinstance(error, MemoryError):
                text = f"it needs more memory than is available. {error}".strip()
            raise self.error(f"{key}: {text}") from error

    def error(self, text: str) -> ConfigError:
        """An error that names the file."""
        return ConfigError(text if self.source is None else f"{self.source}: {text}")

    def begin(self) -> Any:
        """The state or density that [initial] describes on [space]."""
        law = self.tables["initial"]
        kind: Callable[..., Any] = type(law)
        with self.locating_errors("initial", parameters_of(kind)):
            return law.begin(self.tables.get("space"))

    def call(self, *objects: Any, out: Path | None, **options: Any) -> Any:
        """Call the function of the table `work`, with a checkpoint for `out`."""
        function, options = self.function(), self.tables[self.work] | options
        checkpoint = None if out is None else checkpoint_of(out)
        if checkpoint and not options.get("resume"):
            if checkpoint.is_file() and is_checkpoint(checkpoint):
                checkpoint.unlink()
        with self.locating_errors(self.work, parameters_of(function)):
            return function(*objects, checkpoint=checkpoint, **options)

    def recorded(self, result: Any) -> Any:
        """The result, with its provenance recorded in its data."""
        result.data.attrs["provenance"] = json.dumps(self.provenance)
        return result


class Run(Configuration):
    """One run: a model, an initial state, and options of `solve`."""

    work, calls, drawn = "solve", "solving.solve", False
    objects: ClassVar = {"model": KindOf(Transformer), "initial": KindOf(Start)}
    optional: ClassVar = {"space": KindOf(Space)}

    def run(self, **options: Any) -> "Solution":
        return self.solved(*self.posed(self.begin()), **options)

    def posed(self, state: State) -> tuple[Transformer, State]:
        """The model, and the state with axes for members after those of replicas."""
        sizes, model = StateSizes(state.dimension, state.tokens), self.tables["model"]
        with self.locating_errors("model"):
            axes = len(model.resolve(sizes).shape)
            state = state.with_members(axes)
            return model.resolve(sizes._replace(shape=state.shape)), state

    @staticmethod
    def draws(model: Transformer, state: State) -> bool:
        """Whether a run draws random numbers."""
        return model.common is not None or (state.takes_noise and model.noisy)

    def solved(self, model: Transformer, state: State, **options: Any) -> "Solution":
        """The solution of a model from a state."""
        if self.draws(model, state) and "rng" not in self.tables["solve"]:
            raise self.error(
                "solve.rng: this key is required and is missing: with it a run that draws random "
                "numbers can be repeated"
            )
        return self.call(model, state, **options, provenance=self.provenance)

    @staticmethod
    def problems(run: "Solution", again: str = "--resume") -> list[str]:
        goes_on = f" {again} continues the run." * (run.status == "interrupted")
        return [] if run.success else [f"{run.status}: {run.message}{goes_on}"]

    @staticmethod
    def report(run: "Solution", wrote: str) -> str:
        """Status, message, file of the result, and the observables at the last time.

        There is one row for each member; replicas come before the axes of the model.
        """
        head = f"{run.status}: {run.message}" if run.success else f"NOT COMPLETE: {run.status}"
        steps = int(np.sum(run.stats["steps"]))
        seconds = f"{run.stats['seconds']:.3g} s, {steps} steps"
        lines = [head, f"{wrote} ({len(run)} times, {seconds})"]
        if not run.resolved_after_start:
            lines.append("NOT RESOLVED: the last states are not accurate to rtol")
        elif not run.resolved:
            lines.append(
                "INITIAL DENSITY CUT OFF: accurate for the density without these harmonics"
            )
        shapes, columns = [values.shape for values in run.model.parameters.values()], {}
        axes = len(np.broadcast_shapes(*shapes))
        if run.final.replicated and len(run.shape) == axes + 1:
            columns["replica"] = np.arange(run.shape[0]).reshape(-1, *(1,) * axes)
        columns |= {name: values for name, values in run.parameters.items() if values.ndim}
        last = measure(run.model, run.final, float(run.t[-1]))
        names = (name for name in PRINTED_OBSERVABLES if name in last)
        columns |= {name: last[name] for name in names if not np.isnan(last[name]).all()}
        lines += ["", f"at t = {run.t[-1]:g}, {run.final.size_in_words}:"]
        return "\n".join([*lines, *_shortened(columns, run.shape, "more members")])


@dataclass(frozen=True, eq=False)
class OnWorkers(Configuration):
    """A task for many workers, whose results are collected in a store.

    Attributes
    ----------
    scheduler : str or None
        The address of a dask scheduler, whose workers are used.
    workers : int or None
        Number of processes; by default this one only.
    """

    scheduler: str | None = None
    workers: int | None = None

    def call(self, *objects: Any, out: Path | None, resume: bool = False, **options: Any) -> Any:
        """Call the function of the table `work` on the workers, with a store for `out`."""
        from ..sweeps.executors import processes

        store = None if out is None else checkpoint_of(out)
        if store is not None and not resume:
            store.unlink(missing_ok=True)
        function, options = self.function(), {**self.tables[self.work], "store": store, **options}
        pool = nullcontext(self.scheduler) if self.workers is None else processes(self.workers)
        with self.locating_errors(self.work, parameters_of(function)), pool as executor:
            return function(*objects, executor=executor, **options)


class ParameterSweep(OnWorkers):
    """A sweep: the tables of a run and values of some of their keys."""

    work, calls, drawn = "sweep", "sweeps.sweep", False
    optional: ClassVar = Run.optional

    @classmethod
    def required(cls) -> dict[str, Form]:
        return {**Run.required(), cls.work: ArgumentTable(cls.function())}

    def run(self, **options: Any) -> "Sweep":
        """Sweep of the runs that the tables describe over the axes of the configuration."""
        from ..sweeps import Sweep
        from .configured_runs import Runs, flattened

        tables = {name: table for name, table in self.data.items() if name != self.work}
        runs = Runs(tables, self.source and self.source.absolute(), self.imports)
        axes = flattened(self.tables[self.work]["parameters"])
        return self.recorded(Sweep(self.call(runs, parameters=axes, **options)))

    def problems(self, sweep: "Sweep") -> list[str]:
        """Sentences on the points that failed, the runs that ended early, and an interruption."""
        messages = {"error": "points failed: the variable error says why"}
        messages["status"] = "runs ended early: the variable status says why"
        fine = {"error": ("", NOT_RUN), "status": ("", *SUCCESSFUL)}
        problems = []
        for name, words in messages.items():
            texts = sweep.data[name].values if name in sweep.data else np.array([""])
            if count := int((~np.isin(texts, fine[name])).sum()):
                problems.append(f"{count} of {texts.size} {words}")
        return problems + ([] if sweep.success else ["interrupted: --resume continues the sweep"])

    def report(self, sweep: "Sweep", wrote: str) -> str:
        """The observables of every point at the end of its run."""
        data, axes = sweep.data, sweep.data.attrs["axes"]
        grid = np.meshgrid(*(data[axis].values for axis in axes), indexing="ij")
        shown = [name for name in PRINTED_OBSERVABLES if name in data and sweep.is_scalar(name)]
        columns = dict(zip(axes, grid, strict=True))
        columns |= {name: sweep.at_the_end(name).values for name in shown}
        for name in ("status", "error"):
            if name in data and len(np.unique(data[name])) > 1:
                columns[name] = data[name].values
        lines = [f"{wrote} ({grid[0].size} runs)", "", "at the end of each run:"]
        return "\n".join([*lines, *_shortened(columns, grid[0].shape, "more")])


class ChaosStudy(OnWorkers):
    """A study of propagation of chaos: a model, the initial law of the tokens, and sizes."""

    work, calls = "chaos", "chaos.propagation_of_chaos"
    objects: ClassVar = {
        "model": KindOf(Transformer),
        "space": KindOf(Space),
        "initial": KindOf(DensityLaw),
    }

    def run(self, **options: Any) -> "Study":
        return self.recorded(self.call(self.tables["model"], self.begin(), **options))

    def problems(self, study: "Study") -> list[str]:
        return [] if study.success else ["interrupted: --resume continues the study"]

    def figure(self, study: "Study") -> "Figure | None":
        has_distances = study.data.attrs["distances"] or "coupling" in study.data
        return study.plot() if study.success and has_distances else None

    def report(self, study: "Study", wrote: str) -> str:
        """Means of distances at the last time against n, their rates, and weak errors."""
        data = study.data.isel(t=-1)
        rows = [["", *(f"n = {n}" for n in data.n.values), ""]]
        for name in [*data.attrs["distances"], *(["coupling"] if "coupling" in data else [])]:
            rate = study.rate(name)
            low, high = rate.interval
            power = f"~ n^{rate.exponent:.3f} [{low:.3f}, {high:.3f}]"
            power = power if len(data.n) > 1 else "(a rate needs two sizes)"
            rows.append([name, *(f"{x:.5g}" for x in data[name].mean("replica").values), power])
        for name in data.attrs["functionals"]:
            limit = float(data[f"limit of {name}"])
            errors = data[name].mean("replica").values - limit
            rows.append([f"{name} - {limit:.5g}", *(f"{error:.3g}" for error in errors), ""])
        count = f"{'' if study.success else 'up to '}{data.sizes['replica']}"
        head = f"at t = {float(data.t):g}, means over {count} replicas:"
        return "\n".join([head, *_aligned(rows), wrote])


class BifurcationDiagram(Configuration):
    """A bifurcation diagram: a drift, a space, and a range of kappa or of another parameter."""

    work, calls = "bifurcation", "bifurcation.branches"
    objects: ClassVar = {"drift": DriftToFollow(Drift), "space": KindOf(Space)}

    def run(self, **options: Any) -> "Diagram":
        return self.recorded(self.call(self.tables["drift"], self.tables["space"], **options))

    def problems(self, diagram: "Diagram") -> list[str]:
        return diagram.warnings

    def figure(self, diagram: "Diagram") -> "Figure":
        """The diagram; the free energy distinguishes branches whose order parameter is 0."""
        first = int(diagram.data.degree[0])
        shown = ["order_parameter" if first == 1 else f"moment {first}"]
        return diagram.plot(y=[*shown, *(["free_energy"] if diagram.drift.gradient_flow else [])])

    def report(self, diagram: "Diagram", wrote: str) -> str:
        """The special points, and the reason why each branch ends."""
        data, name = diagram.data, diagram.parameter
        title = f"{data.attrs['drift']} on {data.attrs['space']}"
        if not diagram.special_points:
            low, high = data.attrs[name]
            return (
                f"{title}: no onset of the uniform state for {low:g} < {name} < {high:g}\n{wrote}"
            )
        rows = [["", "branch", "degree", name, "r", "F - F(unif)", ""]]
        for point in sorted(diagram.special_points, key=lambda s: (s.branch, s.value)):
            state = point.state
            energy = f"{state.free_energy:.3g}" if diagram.drift.gradient_flow else "-"
            rows.append([
                f"{point.character} {point.kind}".strip(), f"{point.branch}",
                f"{point.degree}", f"{point.value:.10g}", f"{state.order_parameter:.6g}",
                energy, point.status,
            ])  # fmt: skip
        lines = [f"{title}, special points:", *_aligned(rows)]
        for number, end in enumerate(diagram.ends, start=1):
            places = data[name].values[data.branch.values == number]
            lines.append(
                f"branch {number}: {len(places)} points, {name} from {places.min():.6g} to "
                f"{places.max():.6g}; ends: {end}"
            )
        return "\n".join([*lines, wrote])


class PhaseDiagrams(Configuration):
    """Phase diagrams of several drifts: a space and a range of beta."""

    work, calls = "phase_diagram", "bifurcation.phase_diagram"
    objects: ClassVar = {"drifts": NamesOfDrifts(), "space": KindOf(Space)}

    def run(self, **options: Any) -> tuple["PhaseDiagram", ...]:
        """A diagram for each drift, until one is interrupted."""
        diagrams: list[PhaseDiagram] = []
        out, space = options.pop("out"), self.tables["space"]
        files = repeat(None) if out is None else self.outputs(out)
        for drift, file in zip(self.tables["drifts"], files, strict=False):
            diagrams.append(self.recorded(self.call(drift, space, out=file, **options)))
            if any("interrupted" in ends for ends in diagrams[-1].ends.values()):
                break
        return tuple(diagrams)

    def outputs(self, out: Path) -> list[Path]:
        """The file of each drift: `out`, or for several drifts OUT_USA.nc and OUT_SA.nc."""
        drifts = [drift.__name__ for drift in self.tables["drifts"]]
        if len(drifts) == 1:
            return [out]
        return [out.with_name(f"{out.stem}_{drift}{out.suffix}") for drift in drifts]

    def problems(self, diagrams: tuple["PhaseDiagram", ...]) -> list[str]:
        return [f"{d.data.attrs['drift']}: {warning}" for d in diagrams for warning in d.warnings]

    def figure(self, diagrams: tuple["PhaseDiagram", ...]) -> "Figure":
        from ..plotting import phases

        return phases(*diagrams, close_up=True)

    def report(self, diagrams: tuple["PhaseDiagram", ...], wrote: str) -> str:
        """The tricritical points, and the curves at several beta."""
        lines: list[str] = []
        for diagram in diagrams:
            data = diagram.data
            lines.append(f"{data.attrs['drift']} on {data.attrs['space']}:")
            lines += [
                f"tricritical point of degree {point.degree}: {diagram.parameter} = "
                f"{point.beta:.10g}, kappa = {point.kappa:.10g}"
                for point in diagram.tricritical
            ]
            rows = [[diagram.parameter, *(name for name, _, _ in diagram.curves)]]
            first, last = data.attrs[diagram.parameter]
            for beta in np.linspace(first, last, PHASE_TABLE_ROWS):
                values = [diagram.kappa(name, float(beta), l) for _, name, l in diagram.curves]
                numbers = ["-" if np.isnan(value) else f"{value:.9g}" for value in values]
                rows.append([f"{beta:.4g}", *numbers])
            lines += [*_aligned(rows), ""]
        return "\n".join([*lines[:-1], wrote])


TASKS: dict[str, type[Configuration]] = {
    task.work: task for task in (ParameterSweep, ChaosStudy, BifurcationDiagram, PhaseDiagrams, Run)
}  # a sweep has the table [solve] too, so Run is last


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table, its first column aligned left, the others right."""
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    return [row[0].ljust(widths[0]) + "".join(map(str.rjust, row[1:], widths[1:])) for row in rows]


def _shortened(columns: dict[str, np.ndarray], shape: tuple[int, ...], noun: str) -> list[str]:
    """The lines of a table of arrays of this shape by name, which ends after twenty rows."""
    values = [np.broadcast_to(column, shape).ravel() for column in columns.values()]
    table = zip(*values, strict=True)
    rows = [[f"{x:.6g}" if isinstance(x, float) else f"{x}" for x in row] for row in table]
    left = len(rows) - MAX_TABLE_ROWS
    end = [f"... and {left} {noun} in the file"] if left > 0 else []
    return [*_aligned([[*columns], *rows[:MAX_TABLE_ROWS]]), *end]

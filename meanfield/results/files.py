"""Results as NetCDF files, with a checksum (the seal) that `load` verifies.

Any program can read the variables of a file. Its group "meanfield" contains what `load` needs to
restore the result: a header, which is plain data as JSON; the long arrays to which the header
refers; and the SHA-256 of the header and of all arrays. The header lists the variables with their
axes, so that variables added by other programs are not read. It also contains all strings, since
HDF5 may not terminate when it reads strings or axes from a damaged file.

A file is composed in memory and then written, since HDF5 does not survive a full disk.
"""

import hashlib
import io
import json
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..core.checks import as_given, path_of, require
from ..core.descriptions import SHORT, build, check_described, describe, with_arrays
from ..core.errors import StorageError
from ..core.files import write_whole
from ..core.forms import Reading
from ..core.kinds import Kind
from ..core.provided import FIGURES, Shown
from ..core.read_only import ReadOnlyArrays
from ..models.transformer import Transformer
from ..spaces import Space
from ..spaces.density import Density
from ..spaces.index import Index
from ..spaces.indexed import IndexedSpace
from ..states.contract import Arrays

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

FILE_FORMAT = 5
GROUP = "meanfield"
HDF5_VERSIONS = ("v110", "v110")  # lowest, highest: the addresses in a file are sealed too
PACKAGE_NAME = __name__.split(".")[0]
FOREIGN_FILES = {  # by their first bytes, or their suffix
    b"meanfield sweep": "the store of a sweep, which mf.sweep(..., store=path) continues",
    b"meanfield ckpt": "a checkpoint: the call that wrote it continues it with resume=True",
    b"\x93NUMPY": "an array, which numpy.load opens",
    b"PK\x03\x04": "an archive of arrays: numpy.load opens it, and mf.networks.read_trace a trace",
    b"CDF": "a NetCDF file of another program, which xarray.open_dataset opens",
    ".csv": "a table, which pandas.read_csv opens",
    ".toml": "a configuration, which mf.read_config and `meanfield solve` read",
}
OTHER_SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".json", ".toml", ".npy", ".npz", ".pkl", ".xlsx", ".parquet"),
    *(".mat", ".png", ".pdf", ".svg"),
)


@dataclass
class Contents:
    """The contents of a file: a header and arrays.

    Attributes
    ----------
    header : dict
        Plain data that JSON can write.
    arrays : dict of str to (tuple of str, ndarray)
        Names of the axes, and values, of every variable; "group/name" is a variable in a group.
    long : dict of str to ndarray
        Arrays to which the header refers, by name.
    words : dict of str to dict
        Attributes for other programs: of variables, by name, and of groups, by "" and "group/".
    model : Transformer, Drift, class or callable, optional
        The model that the caller of `load` gives for that of the file, whose functions it lacks.
    """

    header: dict[str, Any]
    arrays: Arrays
    long: dict[str, np.ndarray] = field(default_factory=dict)
    words: dict[str, dict[str, Any]] = field(default_factory=dict)
    model: Any = None

    def below(self, group: str) -> "Contents":
        """The contents of a group of the file: the inverse of `inside`."""
        begin, mark = f"{group}/", f"{group}_"
        arrays = {
            name.removeprefix(begin).removeprefix(mark): (
                tuple(dim.removeprefix(mark) for dim in dims),
                values,
            )
            for name, (dims, values) in self.arrays.items()
            if name.startswith(begin)
        }
        return Contents(self.header[group], arrays, self.long, model=self.model)

    def inside(self, group: str) -> "Contents":
        """These contents in a group of a file, with separate axes: "t" becomes "law/law_t"."""
        axes = {dim for dims, _ in self.arrays.values() for dim in dims}
        names = {name: f"{group}/{group}_{name}" for name in axes}
        arrays = {
            names.get(name, f"{group}/{name}"): (tuple(f"{group}_{dim}" for dim in dims), values)
            for name, (dims, values) in self.arrays.items()
        }
        words = {names.get(n, f"{group}/{n}"): entry for n, entry in self.words.items()}
        return Contents({group: self.header}, arrays, self.long, words)


def result_path(name: str, path: str | PathLike[str], table: str = "data") -> Path:
    """The path of a result to write; raise ValueError for the suffix of another format."""
    wanted = (
        "a file *.nc, as results are written as NetCDF; a table is written by "
        f"{table}.to_dataframe().to_csv(path)"
    )
    path = path_of(name, path)
    require(name, str(path), wanted, path.suffix.lower() not in OTHER_SUFFIXES)
    return path


class Result(ReadOnlyArrays, Shown, ABC):
    """The result of a computation, which can be saved; `load` restores it bit for bit.

    `load` finds the class of a result by name among the public names of the package.

    Attributes
    ----------
    made_by : str
        The public name of the function that makes it, whose references a citation takes.
    figure : str
        The name of the function of `plotting` that draws it, unless it has a `plot` of its own.
    takes_model : bool
        Whether `load` takes the model for its functions.
    derived : tuple of str
        Properties that a file holds, besides the fields.
    """

    made_by: ClassVar[str]
    figure: ClassVar[str]
    takes_model: ClassVar[bool] = False
    derived: ClassVar[tuple[str, ...]] = ()

    def contents(self) -> Contents:
        """The contents of the file of this result: its dataset `data`, and a header of the rest."""
        result: Any = self
        names = [field.name for field in fields(result) if field.name != "data"]
        header = {name: getattr(self, name) for name in (*names, *self.derived)}
        return contents_of(result.data, header)

    @classmethod
    def made_of(cls, contents: Contents) -> Self:
        """The result with the contents of a file."""
        data, header = dataset_of(contents)
        if cls.takes_model:
            header["model"], _ = stored_model(contents)
        made: Any = cls
        return made(data, **header)

    def save(self, path: str | Path) -> Path:
        """Write everything to a NetCDF file, atomically; read it back with `meanfield.load`.

        Raises
        ------
        StorageError
            If there is no such folder, it is not writable, or the disk is full.
        TypeError, ValueError
            If `path` is not a path, or has the suffix of another format.
        """
        return self.written(path, self.contents)

    def written(self, path: str | Path, contents_of: Callable[[], Contents]) -> Path:
        """Write what `contents_of()` returns to the file of this result; see `save`."""
        table = "observables" if hasattr(type(self), "observables") else "data"
        path = result_path("path", path, table)
        contents = contents_of()
        contents.header["result"] = type(self).__name__
        return write_whole(path, _netcdf(contents))

    def plot(self, **options: Any) -> "Figure":
        """A figure of the result, by the function of `plotting` that `figure` names."""
        return FIGURES[self.figure](self, **options)

    def made_with(self) -> list[Any]:
        """The kinds and schemes that it was made with, for citations."""
        return [part for part in vars(self).values() if isinstance(part, Kind)]

    @classmethod
    def load(cls, path: str | Path, *, model: Any = None) -> Self:
        """Read a result of this kind: see `meanfield.load`, which reads one of any kind.

        Raises
        ------
        StorageError
            For other files.
        """
        result = load(path, model=model)
        if not isinstance(result, cls):
            raise StorageError(
                f"{path} holds no {cls.__name__}, but a {type(result).__name__}: use "
                "meanfield.load."
            )
        return result


@dataclass(frozen=True, eq=False, repr=False)
class Interruptible(Result):
    """The result of independent runs, of which some are missing after Ctrl-C.

    Attributes
    ----------
    data : xarray.Dataset
        Its attribute "status" is "finished" or "interrupted".
    """

    data: "xr.Dataset"

    @property
    def status(self) -> str:
        """One of "finished" and "interrupted"."""
        return self.data.attrs["status"]

    @property
    def success(self) -> bool:
        """True if nothing that was asked for is missing."""
        return self.status == "finished"


def load(path: str | Path, *, model: Any = None) -> Any:
    """Read what `save` wrote: every number comes back bit for bit.

    Parameters
    ----------
    path : path
        Name of the file.
    model : Transformer, Drift, class or callable, optional
        The model of the result, as passed to `solve` or `branches`, if it contains functions: a
        file stores only their names. With the model the result can be extended, evaluated and
        measured as in memory. All other parts of the model must agree with the file, and so must
        the rates of change or residuals computed with the functions.

    Returns
    -------
    Solution, Diagram, Study, Sweep or another result
        The saved result.

    Raises
    ------
    ValueError
        If `model` differs from the description in the file (the message has the key and both
        values), or its functions give rates of change or residuals different from the file.
    StorageError
        If the file does not exist, is damaged, or was not written by this package.
    TypeError
        If `path` is not a path, or a result of this kind takes no model.
    """
    path = path_of("path", path)
    if not path.is_file():
        reason = f"does not exist (looked in {Path.cwd()})"
        if path.exists():
            what = "a folder" if path.is_dir() else "no file"
            reason = f"is {what}; expected a file that `save` wrote"
        raise StorageError(f"{path} {reason}.")
    try:
        with path.open("rb") as file:
            begin = file.read(16)
        for mark, what in FOREIGN_FILES.items():
            if begin.startswith(mark) if isinstance(mark, bytes) else path.suffix == mark:
                raise StorageError(f"{path} is no result of meanfield, but {what}.")
        contents = _read(path)
        kind = getattr(import_module(PACKAGE_NAME), contents.header["result"])
        contents.model = model
        if model is None or kind.takes_model:
            return kind.made_of(contents)
    except (StorageError, MemoryError, OtherModel):
        raise
    except Exception as error:  # whatever HDF5 finds in a damaged file
        raise StorageError(
            f"{path} is not an intact result of meanfield ({error!r}). Expected a NetCDF file that "
            "`save` wrote."
        ) from error
    raise TypeError(
        f"model must be left out: {path} holds a {kind.__name__}, which takes no model; got model ="
        f" {as_given(model)}."
    )


class OtherModel(ValueError):
    """Error for a model that is not the one a file describes."""


def stored_model(contents: Contents, sizes: Any = None) -> tuple[Transformer, list[str]]:
    """The model of a file, or the one given to `load`, and the names of functions that are lost.

    Parameters
    ----------
    contents : Contents
        With the description of the model as the entry "model" of the header.
    sizes : StateSizes, optional
        Sizes of the state, with which `solve` resolved the model.

    Raises
    ------
    OtherModel
        If the given model has another description.
    TypeError
        If it is no Transformer.
    """
    described = contents.header["model"]
    if contents.model is None:
        reading = Reading(arrays=contents.long, result=True)
        return build(Transformer, described, reading), reading.lost
    model = contents.model
    require("model", model, "a Transformer", isinstance(model, Transformer), OtherModel)
    model = model if sizes is None else model.resolve(sizes)
    check_given(model, described, contents)
    return model, []


def check_functions(quantity: str, here: float, stored: float, error: float) -> None:
    """Raise OtherModel if the functions of a model given to `load` are not those of the file.

    Parameters
    ----------
    quantity : str
        A number that depends on them, for the message.
    here, stored : float
        Its value with the given functions and its value in the file; nan if the file has none.
    error : float
        Largest difference by rounding.
    """
    if not (np.isnan(stored) or abs(here - stored) <= error):
        raise OtherModel(
            f"The functions of the given model differ from those saved: {quantity} is {here:.6g}, "
            f"not {stored:.6g}."
        )


def check_given(model: Any, described: Any, contents: Contents) -> None:
    """Raise OtherModel unless a model given to `load`, or a part, has the description."""
    try:
        check_described(model, described, contents.long, "model")
    except ValueError as error:
        raise OtherModel(str(error)) from None


# Archives ----------------------------------------------------------------------------------------


def archived(arrays: Mapping[str, Any]) -> bytes:
    """Arrays by name as the bytes of a .npz archive."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def unarchived(archive: bytes | np.ndarray) -> dict[str, np.ndarray]:
    """Arrays by name from the bytes that `archived` returned, or an array of them."""
    with np.load(io.BytesIO(bytes(archive)), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def archive_array(arrays: Mapping[str, Any]) -> np.ndarray:
    """`archived` as an array of bytes."""
    return np.frombuffer(archived(arrays), dtype=np.uint8)


# Written -----------------------------------------------------------------------------------------


def _netcdf(contents: Contents) -> bytes:
    """The bytes of a file with these contents."""
    import h5netcdf

    texts = {n: a for n, a in contents.arrays.items() if a[1].dtype.kind in "OU"}
    numbers = {n: a for n, a in contents.arrays.items() if n not in texts}
    header = {
        "format": FILE_FORMAT,
        **contents.header,
        "variables": {n: (dims, *_form(values)) for n, (dims, values) in numbers.items()},
        "texts": {n: (dims, values.tolist()) for n, (dims, values) in texts.items()},
        "long": {name: _form(values) for name, values in contents.long.items()},
    }
    try:
        text = json.dumps(header).encode()
    except (TypeError, ValueError) as error:
        raise StorageError(f"Attributes must be plain data, which JSON has: {error}.") from None
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w", libver=HDF5_VERSIONS) as file:
        for name, (dims, values) in contents.arrays.items():
            _add(file, name, dims, values, contents.words.get(name, {}))
        inner: Arrays = {"header": (("characters",), np.frombuffer(text, "S1"))}
        seal = _seal(text, numbers, contents.long)
        inner["sha256"] = ("digits",), np.array(list(seal), "S1")
        for name, values in contents.long.items():
            inner[name] = tuple(f"{name}_{i}" for i in range(values.ndim)), values
        for name, (dims, values) in inner.items():
            _add(file, f"{GROUP}/{name}", dims, values, {})
        for name, words in contents.words.items():
            if name.endswith("/") or not name:
                attributes = {key: _for_others(value) for key, value in words.items()}
                _group(file, name).attrs.update(attributes)
    return buffer.getvalue()


def _form(values: np.ndarray) -> tuple[str, tuple[int, ...]]:
    """The dtype, as a string, and the shape of an array."""
    return values.dtype.str, values.shape


def _seal(text: bytes, arrays: Arrays, long: Mapping[str, np.ndarray]) -> str:
    """The checksum of a header, as it stands in the file, and of the arrays that it lists."""
    checksum = hashlib.sha256(text)
    for values in [*(values for _, values in arrays.values()), *long.values()]:
        checksum.update(np.ascontiguousarray(values).data)
    return checksum.hexdigest()


def _add(
    file: Any, name: str, dims: Sequence[str], values: np.ndarray, words: Mapping[str, Any]
) -> None:
    """Add a variable with its axes and attributes to a file; the name is "group/name" or "name"."""
    folder, _, last = name.rpartition("/")
    group = _group(file, folder)
    for dim, size in zip(dims, values.shape, strict=True):
        if dim not in group.dimensions:
            group.dimensions[dim] = size
    options: dict[str, Any] = {}
    if values.dtype.kind in "OU":
        import h5py

        values, options = values.astype(object), {"dtype": h5py.string_dtype()}
    values = values.view(np.int8) if values.dtype.kind == "b" else values
    variable = group.create_variable(last, dims, data=values, **options)
    variable.attrs.update({key: _for_others(value) for key, value in words.items()})


def _for_others(value: Any) -> Any:
    """An attribute that NetCDF can store: a number or array as it is, else text, escaped."""
    plain = isinstance(value, float | np.number | np.ndarray | list | tuple)
    if plain or (type(value) is int and abs(value) < 2**63):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()


def _group(file: Any, name: str) -> Any:
    """The group of this path in a file, created where it is missing."""
    for folder in filter(None, name.split("/")):
        file = file.groups[folder] if folder in file.groups else file.create_group(folder)
    return file


# Read --------------------------------------------------------------------------------------------


def _read(path: Path) -> Contents:
    """The contents of a file; raises some exception unless its checksum agrees."""
    import h5py

    with h5py.File(path, "r", locking=False) as file:  # files are replaced, not changed
        if GROUP not in file and any(name.startswith(PACKAGE_NAME) for name in file.attrs):
            raise StorageError(
                f"{path} has a format of an earlier meanfield; this version reads the format "
                f"{FILE_FORMAT}. Make the result again, or read it with the version that wrote it."
            )
        if GROUP not in file:
            raise StorageError(
                f"{path} is not an intact result of meanfield, but a file of another program, "
                "which xarray.open_dataset or h5py.File opens."
            )
        text = file[f"{GROUP}/header"][...].tobytes()
        header = json.loads(text)
        if header["format"] != FILE_FORMAT:
            theirs = header.get("provenance", {}).get("versions", {}).get("meanfield", "unknown")
            raise StorageError(
                f"{path} has the format {header['format']} of meanfield {theirs}; this version "
                f"reads the format {FILE_FORMAT}."
            )
        arrays: Arrays = {
            name: (tuple(dims), _values(file, name, *form))
            for name, (dims, *form) in header.pop("variables").items()
        }
        long = {
            name: _values(file, f"{GROUP}/{name}", *form)
            for name, form in header.pop("long").items()
        }
        if file[f"{GROUP}/sha256"][...].tobytes().decode() != _seal(text, arrays, long):
            raise ValueError("its numbers were altered")
    for name, (dims, values) in header.pop("texts").items():
        arrays[name] = tuple(dims), np.array(values, "U")
    return Contents(header, arrays, long)


def _values(file: Any, name: str, form: str, shape: list[int]) -> np.ndarray:
    """The values of a variable as dtype `form`; ValueError if it has another shape."""
    variable = file[name]
    if variable.shape != tuple(shape):
        raise ValueError(f"{name} has shape {variable.shape} instead of {shape}")
    return np.asarray(variable[...]).astype(form, copy=False)


# Datasets ----------------------------------------------------------------------------------------


def contents_of(data: "xr.Dataset", header: Mapping[str, Any]) -> Contents:
    """The contents of a file for a dataset and a header, which may have all that `stored` takes."""
    long: dict[str, np.ndarray] = {}
    variables = data.variables.items()
    arrays: Arrays = {str(name): (tuple(map(str, v.dims)), v.values) for name, v in variables}
    attributes = {"attributes": data.attrs, "coordinates": [str(name) for name in data.coords]}
    table = describe(stored(header), long)
    return Contents({**table, **attributes}, arrays, long, {"": dict(data.attrs)})


def dataset_of(contents: Contents) -> tuple["xr.Dataset", dict[str, Any]]:
    """The arguments of `contents_of`; kinds in the header are plain data, as from `describe`."""
    import xarray as xr

    header = dict(contents.header)
    attributes, coordinates = (
        with_arrays(header.pop(name), contents.long) for name in ("attributes", "coordinates")
    )
    header = restored(header, contents.long)
    variables: Any = {n: entry for n, entry in contents.arrays.items() if "/" not in n}
    data = xr.Dataset(
        {name: entry for name, entry in variables.items() if name not in coordinates},
        {name: variables[name] for name in coordinates},
        attributes,
    )
    return data, {n: value for n, value in header.items() if n not in ("format", "result")}


# Values of headers -------------------------------------------------------------------------------

STORED = "stored"  # key of the name by which `restored` makes a value from a table


def stored(value: Any) -> Any:
    """A value of a header as plain data, kinds and arrays, from which `restored` makes it again.

    The value may have densities, spaces, results, tuples, complex numbers, and objects with a
    method `for_file`, which returns what is stored of them.
    """
    if hasattr(value, "for_file"):
        return stored(value.for_file())
    if isinstance(value, Result):
        contents = value.contents()
        arrays = {n: [list(dims), stored(v)] for n, (dims, v) in contents.arrays.items()}
        header = with_arrays(contents.header, contents.long)
        return {STORED: type(value).__name__, "header": header, "arrays": arrays}
    if isinstance(value, Density):
        return {STORED: "density", "of": _parts(value), "entries": stored(value.coefficients)}
    if isinstance(value, Space):
        return {STORED: "space", "of": _parts(value.uniform())}
    if isinstance(value, Kind):
        return describe(value)
    if isinstance(value, complex) or (isinstance(value, float) and not np.isfinite(value)):
        return {STORED: "complex" if isinstance(value, complex) else "float", "text": str(value)}
    if isinstance(value, np.ndarray) and (value.size <= SHORT or value.dtype.kind == "c"):
        flat = np.ascontiguousarray(value).ravel()
        flat = flat.view(float) if value.dtype.kind == "c" else flat
        return {STORED: "array", "form": list(_form(value)), "entries": flat}
    if isinstance(value, tuple):
        return {STORED: type(value).__name__, "entries": list(map(stored, value))}
    if isinstance(value, list):
        return list(map(stored, value))
    return {n: stored(v) for n, v in value.items()} if isinstance(value, Mapping) else value


def _parts(density: Density) -> dict[str, Any]:
    """The space, and the index of indexed densities, as plain data."""
    return {name: describe(part) for name, part in density.header().items()}


def restored(value: Any, long: Mapping[str, np.ndarray]) -> Any:
    """The value of a header from what `describe` and `stored` made of it."""
    if isinstance(value, list):
        return [restored(entry, long) for entry in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return long[value["array"]]
    entries = {name: restored(entry, long) for name, entry in value.items()}
    name = entries.pop(STORED, None)
    return entries if name is None else _made(name, **entries)


def _made(name: str, **entries: Any) -> Any:
    """The value of a table of `stored` with this name; a plain tuple for a private one."""
    if name in ("complex", "float"):
        return {"complex": complex, "float": float}[name](entries["text"])
    if name == "array":
        form, shape = entries["form"]
        kind = float if np.dtype(form).kind == "c" else form
        return np.array(entries["entries"], kind).view(form).reshape(shape)
    if name in ("space", "density"):
        space = space_of(entries["of"])
        density: Any = type(space.uniform())
        return space if name == "space" else density.computed(entries["entries"], space)
    package = import_module(PACKAGE_NAME)
    made: Any = getattr(package, name) if name in package.__all__ else tuple
    if isinstance(made, type) and issubclass(made, Result):
        arrays = {n: (tuple(dims), values) for n, (dims, values) in entries["arrays"].items()}
        return made.made_of(Contents(entries["header"], arrays))
    return made(*entries["entries"]) if hasattr(made, "_fields") else tuple(entries["entries"])


def space_of(described: dict[str, Any]) -> Any:
    """The space of densities with this header."""
    space = build(Space, described["space"])
    return IndexedSpace(space, build(Index, described["index"])) if "index" in described else space

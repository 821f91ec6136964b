"""Arrays in files .npy, .npz and .csv: sizes are checked before numbers are read, and nothing runs.

Files are not trusted. The header of an array, of at most 10 000 bytes, determines its size, which
must agree with that of the file and fit into memory before any memory is allocated.
"""

import io
import math
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Self

import numpy as np

from .annotations import AnyObject
from .checks import as_given, check_memory, path_of
from .errors import StorageError
from .files import NUMBER_FORMATS, regular_file

MAGIC, ZIP = b"\x93NUMPY", (b"PK\x03\x04", b"PK\x05\x06")
LENGTHS = {(1, 0): 2, (2, 0): 4}  # bytes of the length of the header, by version of the format
LONGEST_HEADER = 10_000
KINDS = "biufcSU"  # plain numbers and words
MEMBERS = 100_000
SMALL_ARRAY, RATIO = 2**26, 200  # bytes; larger arrays have at most RATIO times those of the file
PIECE = 2**20
PER_BYTE = 5  # memory to read a table, in floats for each byte of the file
PICKLED = "it holds Python objects, which are pickled: a pickle can run any code, and is not read"


class ArrayFile:
    """The arrays of a .npz file by name, or the array of a .npy file under the name "".

    Use as a context manager; ``file[name]`` reads one of `names`.

    Raises
    ------
    StorageError
        If the file has another format, is damaged, or exceeds the memory; the message names file
        and array.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a .npy or .npz file and list its arrays; raises StorageError."""
        self.path = path_of("path", path)
        self.size = regular_file(self.path)
        self._opened = ExitStack()
        try:
            self._file = self._opened.enter_context(self.path.open("rb"))
            self._members = self._listed()
        except Exception as error:
            self.close()
            raise _storage_error(str(self.path), error) from None

    @property
    def names(self) -> list[str]:
        """The names of the arrays, in the order of the file."""
        return list(self._members)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def __getitem__(self, name: str) -> np.ndarray:
        """Array of a name, its checksum compared; StorageError if it cannot be read."""
        label = f"{self.path}, array {shown(name)}" if name else str(self.path)
        member = self._members[name]
        try:
            if member is None:
                self._file.seek(0)
                return _array(self._file, self.size)
            with self._archive.open(member) as stream:
                array = _array(stream, member.file_size)
                stream.read(1)  # zipfile compares the checksum at the end
                return array
        except Exception as error:  # whatever zipfile, zlib and numpy find in a damaged file
            raise _storage_error(label, error) from None

    def _listed(self) -> dict[str, zipfile.ZipInfo | None]:
        """The members of a .npz file by the names of their arrays; {"": None} for a .npy file."""
        magic = self._file.read(len(MAGIC))
        if magic == MAGIC:
            return {"": None}
        if magic[:4] not in ZIP:
            fault = PICKLED if magic[:1] == b"\x80" else "it is neither .npz nor .npy"
            raise ValueError(fault)
        self._archive = self._opened.enter_context(zipfile.ZipFile(self._file))
        entries = self._archive.infolist()
        if any(entry.filename.endswith("data.pkl") for entry in entries):
            raise ValueError("it is of torch, and pickled")
        if len(entries) > MEMBERS:
            raise ValueError(f"it has {len(entries)} arrays; at most {MEMBERS} are read")
        members: dict[str, zipfile.ZipInfo | None] = {}
        for entry in entries:
            name, fault = entry.filename.removesuffix(".npy"), ""
            if name == entry.filename:
                fault = "is no array: its name does not end with .npy"
            elif name in members:
                fault = "is there twice"
            elif entry.flag_bits & 1:
                fault = "is encrypted"
            elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                fault = "is compressed in another way than numpy.savez_compressed does"
            if fault:
                raise ValueError(f"its member {shown(entry.filename)} {fault}")
            members[name] = entry
        total = sum(entry.file_size for entry in entries)
        if total > max(SMALL_ARRAY, RATIO * self.size):  # a zip bomb
            raise ValueError(
                f"its arrays would have {total} bytes, {total / self.size:.0f} times those of the "
                f"file; at most {RATIO} times are read. Write it without compression"
            )
        check_memory(f"arrays of {self.path.name}", (-(-total // 8),), "their sizes")
        return members


def _storage_error(label: str, error: Exception) -> StorageError:
    """The error of a file that is refused, in one line."""
    if isinstance(error, StorageError):
        return error
    reason = " ".join(str(error).split())[:400].rstrip(". ")
    if isinstance(error, MemoryError):
        reason = f"it needs more memory than there is {f'({reason})' if reason else ''}".rstrip()
    elif not reason:
        reason = "it is cut off, or damaged"
    elif not isinstance(error, ValueError):
        reason = f"it is damaged ({reason})"
    return StorageError(f"{label} could not be read as numbers: {reason}.")


def _array(stream: IO[bytes], size: int) -> np.ndarray:
    """The array of a stream in the format .npy of `size` bytes."""
    shape, fortran, dtype, header_size = _header(stream)
    if dtype.hasobject:
        raise ValueError(PICKLED)
    if dtype.kind not in KINDS or not dtype.itemsize:
        raise ValueError(f"it must hold numbers or words; it is of dtype {dtype!s:.100}")
    needed = math.prod(shape) * dtype.itemsize
    if needed != size - header_size:
        raise ValueError(
            f"{dtype} of shape {as_given(shape)} needs {as_given(needed)} bytes; the file has "
            f"{size - header_size} for it"
        )
    if any(shape) and not all(shape):
        raise ValueError(f"it has the shape {as_given(shape)}, and no entry")
    check_memory(f"an array of shape {shape}", (-(-needed // 8),), "its size")
    entries = np.empty(math.prod(shape), dtype)
    buffer, offset = entries.view(np.uint8).data, 0
    while offset < needed:
        chunk = stream.read(min(PIECE, needed - offset))
        if not chunk:
            raise ValueError(f"it is cut off: {needed} bytes should follow its header, {offset} do")
        buffer[offset : offset + len(chunk)] = chunk
        offset += len(chunk)
    return entries.reshape(shape, order="F" if fortran else "C")


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Shape, whether in Fortran order, dtype, and number of bytes before the numbers."""
    begin = stream.read(8)
    if begin[:6] != MAGIC or len(begin) < 8:
        raise ValueError("it is no array of numpy")
    width = LENGTHS.get((begin[6], begin[7]))
    if width is None:
        raise ValueError(f"it has the version {begin[6]}.{begin[7]} of the format, not 1.0 or 2.0")
    length = int.from_bytes(stream.read(width), "little")
    text = stream.read(min(length, LONGEST_HEADER))
    if length > LONGEST_HEADER or len(text) < length:
        raise ValueError(f"its header is cut off, or longer than {LONGEST_HEADER} bytes")
    try:
        header = io.BytesIO(length.to_bytes(2, "little") + text)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(header)
    except Exception:  # of numpy, or of Python for the literal in it
        raise ValueError("its header is damaged") from None
    if not all(type(k) is int and 0 <= k < 2**63 for k in shape) or len(shape) > 32:
        raise ValueError(f"its header has the shape {as_given(shape)}")
    return shape, fortran, dtype, 8 + width + length


def shown(name: AnyObject) -> str:
    """A name of a file in a message: as it is if it is short and plain, else quoted and cut."""
    if isinstance(name, str) and len(name) <= 100 and name.isprintable() and name.isascii():
        return name
    return as_given(name, 100)


def read_numbers(path: str | Path, key: str | None = None) -> np.ndarray:
    """The array in a .npy file, one of a .npz file, or the numbers of a .csv file.

    Parameters
    ----------
    path : path
    key : str, optional
        Name of the array in a .npz file, which may be left out if it holds one only.

    Raises
    ------
    StorageError
        If there is no such file or array, or the file cannot be read as numbers.

    Notes
    -----
    One header line is allowed in .csv, which is separated by commas.
    """
    path = path_of("path", path)
    if not path.is_file():
        raise StorageError(f"The file {path} does not exist (looked in {Path.cwd()}).")
    if path.suffix not in NUMBER_FORMATS:
        raise StorageError(f"Numbers are read from {', '.join(NUMBER_FORMATS)}; got {path}.")
    if key is not None and path.suffix != ".npz":
        raise StorageError(f"Only .npz files hold named arrays; leave key out for {path}.")
    if path.suffix != ".csv":
        with ArrayFile(path) as file:
            return file[_key(file, key)]
    try:
        check_memory(f"the numbers of {path.name}", (PER_BYTE * path.stat().st_size,), "its rows")
        return _numbers(path.read_text(encoding="utf-8-sig"))
    except Exception as error:
        raise _storage_error(str(path), error) from error


def _key(file: ArrayFile, key: str | None) -> str:
    """`key`, or the name of the only array; StorageError if there is no such array."""
    names = file.names
    if key is None and len(names) == 1:
        return names[0]
    if key is None or key not in names:
        raise StorageError(
            f"expected key to name one of the arrays in {file.path.name}: "
            f"{names_shown(names)}; got {'no key' if key is None else repr(key)}."
        )
    return key


def names_shown(names: list[str]) -> str:
    """Names between commas, the first twenty of them."""
    return ", ".join(map(shown, names[:20])) + (", ..." if len(names) > 20 else "")


def _numbers(text: str) -> np.ndarray:
    """The rows of a comma separated table, without its header if there is one."""
    rows = [line.split(",") for line in text.splitlines() if line.strip()]
    try:
        [float(entry) for row in rows[:1] for entry in row]
    except ValueError:
        del rows[0]
    if not rows:
        raise ValueError("it has no numbers")
    numbers = np.array([[float(entry) for entry in row] for row in rows])
    return numbers[:, 0] if numbers.shape[1] == 1 else numbers

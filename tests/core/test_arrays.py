"""Numbers read from files: what is accepted, and what is refused by name."""

import numpy as np
import pytest

from meanfield import Circle, StorageError
from meanfield.core import checks
from meanfield.core.arrays import read_numbers

CIRCLE = Circle(degree=8)


@pytest.mark.parametrize(
    "text",
    ["1\n2\n3\n", "theta\n1\n2\n3\n", "1\r\n2\r\n3\r\n", "theta\r\n1\r\n2\r\n3", "1\n2\n3\n\n"],
    ids=["plain", "header", "crlf", "crlf header", "blank end"],
)
def test_a_csv_may_have_one_header_line(tmp_path, text):
    path = tmp_path / "sample.csv"
    path.write_bytes(text.encode())
    np.testing.assert_array_equal(read_numbers(path), [1, 2, 3])


def test_a_csv_of_a_spreadsheet_loses_no_row(tmp_path):
    """Spreadsheets write a byte order mark; it does not make the first number a header."""
    path = tmp_path / "sample.csv"
    path.write_text("1\n2\n3\n", encoding="utf-8-sig")
    np.testing.assert_array_equal(read_numbers(path), [1, 2, 3])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("words.csv", b"theta\none\ntwo\n"),
        ("ragged.csv", b"x,y\n1,0\n1\n"),
        ("semicolon.csv", b"1;0\n0;1\n"),
        ("latin.csv", b"\xe9\n1\n2\n"),
        ("empty.csv", b""),
        ("header.csv", b"theta\n"),
        ("text.npy", b"1 2 3"),
        ("cut.npy", b"\x93NUMPY\x01\x00"),
        ("empty.npy", b""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_malformed_file_is_named(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(StorageError, match=name):
        CIRCLE.estimate(path)


def test_a_pickle_is_not_loaded(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(StorageError, match=r"objects\.npy could not be read as numbers"):
        read_numbers(tmp_path / "objects.npy")


def test_a_missing_file_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match=r"none\.csv does not exist \(looked in .*") as caught:
        CIRCLE.estimate("none.csv")
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("name", ["sample.txt", "sample"])
def test_other_kinds_of_file_are_refused(tmp_path, name):
    (tmp_path / name).write_text("1\n2\n")
    with pytest.raises(StorageError, match=r"read from \.npy, \.npz, \.csv; got"):
        read_numbers(tmp_path / name)


def test_memory_is_asked_for_before_numbers_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "available_memory", lambda: 2**30)
    header = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (2**37,)}
    for name in ("large.csv", "large.npy"):
        with (tmp_path / name).open("wb") as file:
            if name == "large.npy":
                np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + 2**40)  # nothing of it is on the disk
        with pytest.raises(StorageError, match=rf"{name} could not be read.* bytes .*available"):
            read_numbers(tmp_path / name)


def test_an_array_of_an_archive_is_named(tmp_path):
    path = tmp_path / "many.npz"
    np.savez(path, a=np.arange(3), b=np.arange(4))
    np.testing.assert_array_equal(read_numbers(path, "b"), np.arange(4))
    with pytest.raises(StorageError, match=r"one of the arrays in many\.npz: a, b; got no key"):
        read_numbers(path)
    with pytest.raises(StorageError, match="a, b; got 'c'"):
        read_numbers(path, "c")
    np.savez(tmp_path / "one.npz", a=np.arange(3))
    np.testing.assert_array_equal(read_numbers(tmp_path / "one.npz"), np.arange(3))


def test_only_archives_have_keys(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    with pytest.raises(StorageError, match="leave key out"):
        read_numbers(tmp_path / "x.npy", "a")


def test_a_file_is_given_by_its_path():
    with pytest.raises(TypeError, match=r"path must be a string .*got path = 3"):
        read_numbers(3)

"""Damaged files are refused in one line, or give every number that they held."""

import json
import random
import shutil
from functools import partial

import h5py
import numpy as np
import pytest
import xarray as xr
from damages import BYTES
from specimens import CHECKPOINTS, FIRST, RESULTS, Loader, contents, differences, write

import meanfield as mf

ARRAYS = ("npy", "npz", "csv")
KINDS = [*RESULTS, *CHECKPOINTS, *ARRAYS]


@pytest.fixture(scope="module")
def loader():
    loader = Loader()
    yield loader
    loader.close()


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """An intact file of every kind, written when it is asked for."""
    folder, files = tmp_path_factory.mktemp("intact"), {}

    def file(kind):
        if kind not in files:
            files[kind] = write(kind, folder / kind.replace(" ", "_"))
        return files[kind]

    return file


# Edits of results with h5py ----------------------------------------------------------------------


def editing(change):
    """An edit of an HDF5 file."""

    def damage(path, chance, other):
        with h5py.File(path, "r+") as file:
            return change(file, chance, other)

    damage.__name__ = change.__name__
    return damage


def variables(file):
    """All variables with numbers, in groups too."""
    found = []
    file.visititems(lambda name, entry: found.append(name) if is_variable(entry) else None)
    return sorted(found)


def is_variable(entry):
    named = b"but not a netCDF variable" not in getattr(entry, "attrs", {}).get("NAME", b"")
    return isinstance(entry, h5py.Dataset) and named and entry.size > 0


def headers(file):
    """The texts in JSON, in attributes or in variables of characters, each with how to write it."""
    found = []

    def look(_name, entry):
        for name, value in entry.attrs.items():
            if isinstance(value, str) and value[:1] == "{":
                found.append((name, value, partial(entry.attrs.__setitem__, name)))
        if isinstance(entry, h5py.Dataset) and entry.dtype == "S1" and entry[:1].tobytes() == b"{":
            found.append((entry.name, entry[...].tobytes(), partial(rewritten, file, entry.name)))

    look("", file)
    file.visititems(look)
    return found


def rewritten(file, name, text):
    """A variable of characters with another text, of another length perhaps."""
    replaced(file, name, np.frombuffer(text.encode(), "S1"), lambda scales: [[]])


def leaves(data, path=()):
    """The paths to all plain values."""
    if isinstance(data, dict | list) and data:
        pairs = data.items() if isinstance(data, dict) else enumerate(data)
        return [leaf for key, value in pairs for leaf in leaves(value, (*path, key))]
    return [path]


def edit_a_header(file, chance, _other):
    """One value in a header of plain data: beta = 1 becomes 7."""
    name, text, write_again = chance.choice(headers(file))
    data = json.loads(text)
    path = chance.choice(leaves(data))
    table = data
    for key in path[:-1]:
        table = table[key]
    old = table[path[-1]]
    if isinstance(old, bool) or old is None:
        table[path[-1]] = not old
    elif isinstance(old, int | float):
        table[path[-1]] = 7 * old + 1
    else:
        table[path[-1]] = f"{old}7" if isinstance(old, str) else [7]
    write_again(json.dumps(data))
    return f"{name}: {path} from {old!r} to {table[path[-1]]!r}"


def remove_from_a_header(file, chance, _other):
    name, text, write_again = chance.choice(headers(file))
    data = json.loads(text)
    path = chance.choice(leaves(data))
    table = data
    for key in path[:-1]:
        table = table[key]
    del table[path[-1]]
    write_again(json.dumps(data))
    return f"{name}: {path}"


def edit_a_number(file, chance, _other):
    """One value of a variable."""
    name = chance.choice(variables(file))
    values = file[name][...]
    flat = values.reshape(-1)
    at = chance.randrange(flat.size)
    flat[at] = "7" if flat.dtype.kind in "OSU" else flat[at] + 1
    file[name][...] = values
    return f"{name}, entry {at}"


def edit_a_last_bit(file, chance, _other):
    """The last bit of one real number."""
    name = chance.choice([n for n in variables(file) if file[n].dtype.kind == "f"])
    values = file[name][...]
    flat = values.reshape(-1)
    at = chance.randrange(flat.size)
    flat[at] = np.nextafter(flat[at], np.inf)
    file[name][...] = values
    return f"{name}, entry {at}"


def edit_an_attribute(file, chance, _other):
    entries = [file, *(file[name] for name in variables(file))]
    file.visititems(lambda _, e: entries.append(e) if isinstance(e, h5py.Group) else None)
    entry = chance.choice([e for e in entries if set(e.attrs) - OF_HDF5])
    name = chance.choice(sorted(set(entry.attrs) - OF_HDF5))
    old = entry.attrs[name]
    new = f"{old}7" if isinstance(old, str) else np.asarray(old)
    if not isinstance(new, str):
        new = new.astype(str).astype(object) if new.dtype.kind in "OSU" else new + 1
    entry.attrs[name] = new
    return f"{entry.name}: {name}"


OF_HDF5 = {"DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "_Netcdf4Dimid"}
OF_HDF5 |= {"_Netcdf4Coordinates", "_NCProperties", "_nc3_strict"}


def remove_an_attribute(file, chance, _other):
    entries = [file, *(file[name] for name in variables(file))]
    entry = chance.choice([e for e in entries if len(e.attrs)])
    name = chance.choice(sorted(entry.attrs))
    del entry.attrs[name]
    return f"{entry.name}: {name}"


def remove_a_variable(file, chance, _other):
    name = chance.choice(variables(file))
    del file[name]
    return name


def rename_a_variable(file, chance, _other):
    name = chance.choice(variables(file))
    file.move(name, f"{name}7")
    return name


def exchange_variables(file, chance, _other):
    """Two variables exchange their names."""
    one, two = chance.sample(variables(file), 2)
    file.move(one, "between")
    file.move(two, one)
    file.move("between", two)
    return f"{one} and {two}"


def transpose(file, chance, _other):
    """A variable with its axes, and their names, in another order."""
    names = [n for n in variables(file) if file[n].ndim > 1]
    if not names:
        return None
    name = chance.choice(names)
    return replaced(file, name, file[name][...].T, lambda scales: scales[::-1])


def exchange_axes(file, chance, _other):
    """The names of the axes of a variable in another order, but not its numbers."""
    names = [n for n in variables(file) if file[n].ndim > 1]
    if not names:
        return None
    name = chance.choice(names)
    return replaced(file, name, file[name][...], lambda scales: scales[::-1])


def change_the_type(file, chance, _other):
    """A variable in single precision."""
    name = chance.choice([n for n in variables(file) if file[n].dtype.kind == "f"])
    return replaced(file, name, file[name][...].astype("f4"), list)


def lengthen(file, chance, _other):
    """A variable with its first entry twice."""
    names = [n for n in variables(file) if file[n].ndim]
    name = chance.choice(names)
    values = file[name][...]
    return replaced(file, name, np.concatenate([values[:1], values]), list)


def replaced(file, name, values, order):
    """A variable replaced by another with the same attributes, and its axes in an `order`."""
    old = file[name]
    scales = [[] if old.is_scale else list(dim.values()) for dim in old.dims]
    own = {key: value for key, value in old.attrs.items() if key not in OF_HDF5}
    del file[name]
    new = file.create_dataset(name, data=values)
    for key, value in own.items():
        new.attrs[key] = value
    for dim, attached in zip(new.dims, order(scales), strict=False):
        for scale in attached:
            dim.attach_scale(scale)
    return name


def splice(file, _chance, other):
    """The headers of another file: its attributes and its variables of characters."""
    with h5py.File(other, "r") as source:
        for name, value in source.attrs.items():
            file.attrs[name] = value
        for name, text, _ in headers(source):
            if name in file and isinstance(file[name], h5py.Dataset):
                rewritten(file, name, text.decode())
    return f"of {other.parent.name}"


def graft(file, chance, other):
    """A variable of another file in the place of its namesake."""
    with h5py.File(other, "r") as source:
        shared = sorted(set(variables(file)) & set(variables(source)))
        shared = [n for n in shared if not np.array_equal(file[n][...], source[n][...])]
        if not shared:
            return None
        name = chance.choice(shared)
        return replaced(file, name, source[name][...], list)


EDITS = [
    *map(editing, (edit_a_header, edit_a_number, remove_from_a_header, edit_an_attribute)),
    *map(editing, (remove_an_attribute, remove_a_variable, rename_a_variable, exchange_variables)),
    *map(editing, (transpose, exchange_axes, change_the_type, lengthen, splice, graft)),
    editing(edit_a_last_bit),
]


# The attack --------------------------------------------------------------------------------------


def judge(attack, what, intact, answer):
    """Count what came of a damaged file; `intact` is what it held."""
    outcome, found = answer
    if outcome == "refused":
        attack.saw("refused")
    elif outcome != "loaded":
        attack.failed(outcome, f"{what}: {found}")
    elif found == intact:
        attack.saw("equal to the last bit")
    else:
        attack.failed("silently different", f"{what}: {differences(intact, found)}")


@pytest.mark.parametrize("kind", [*RESULTS, *CHECKPOINTS])
def test_damage_is_refused_or_harmless(attack, kind, intact, loader, tmp_path):
    """Bits, blocks, cuts, and edits by h5py with valid HDF5 in the end."""
    original = intact(kind)
    held = loader.load(kind, shutil.copy(original, tmp_path / "whole"), FIRST)
    assert held[0] == "loaded", held
    damages = BYTES + (EDITS if kind in RESULTS else [])
    others = [other for other in ("circle", "ensemble", "tokens", "study") if other != kind]
    first = KINDS.index(kind) * 7  # so that in the suite each damage is tried on some kind
    for i in range(attack.rounds(3, 75)):
        chance = random.Random(f"{kind} {i}")
        damage = damages[(first + i) % len(damages)]
        path = tmp_path / f"damaged{i}"
        shutil.copy(original, path)
        other = intact(chance.choice(others)) if damage.__name__ in ("splice", "graft") else None
        did = damage(path, chance, other)
        if did is None or path.read_bytes() == original.read_bytes():
            continue
        judge(attack, f"{kind} {i}, {damage.__name__} {did}", held[1], loader.load(kind, path))
        path.unlink()


@pytest.mark.parametrize("kind", ARRAYS)
def test_damaged_arrays_are_refused_or_read(attack, kind, intact, loader, tmp_path):
    """What has no checksum may be read as other numbers, but nothing worse happens."""
    original = intact(kind)
    shutil.copy(original.with_name("numbers.toml"), tmp_path / "numbers.toml")
    path = tmp_path / original.name
    for i in range(attack.rounds(4, 60)):
        shutil.copy(original, path)
        damage = BYTES[i % len(BYTES)]
        did = damage(path, random.Random(f"{kind} {i}"), None)
        outcome, found = loader.load(kind, path)
        if outcome in ("refused", "loaded"):
            attack.saw("read as numbers" if outcome == "loaded" else "refused")
        else:
            attack.failed(outcome, f"{kind} {i}, {damage.__name__} {did}: {found}")


# What other tools add ----------------------------------------------------------------------------


def an_attribute(path):
    with h5py.File(path, "r+") as file:
        file.attrs["history"] = "looked at"


def an_attribute_of_a_variable(path):
    with h5py.File(path, "r+") as file:
        file[variables(file)[0]].attrs["comment"] = "looked at"


def a_group(path):
    with h5py.File(path, "r+") as file:
        file.create_group("mine").attrs["x"] = 1.0
        file["mine"]["y"] = np.arange(3)


def a_variable_by_h5py(path):
    with h5py.File(path, "r+") as file:
        file["mine"] = np.arange(3.0)


def a_variable_by_xarray(path):
    added = xr.Dataset({"mine": ("my_axis", np.arange(3.0))})
    added.to_netcdf(path, mode="a", engine="h5netcdf")


def a_group_by_xarray(path):
    added = xr.Dataset({"mine": ("my_axis", np.arange(3.0))})
    added.to_netcdf(path, mode="a", group="mine", engine="h5netcdf")


ADDITIONS = [an_attribute, an_attribute_of_a_variable, a_group]
ADDITIONS += [a_variable_by_h5py, a_variable_by_xarray, a_group_by_xarray]


@pytest.mark.parametrize("kind", RESULTS)
def test_what_other_tools_add_does_no_harm(attack, kind, intact, loader, tmp_path):
    held = loader.load(kind, intact(kind), FIRST)[1]
    every = len(ADDITIONS) if attack.long else 1
    for i in range(every):
        add = ADDITIONS[(KINDS.index(kind) + i) % len(ADDITIONS)]
        path = shutil.copy(intact(kind), tmp_path / f"{i}.nc")
        add(path)
        outcome, found = loader.load(kind, path)
        if outcome == "loaded" and found | held == found:
            attack.saw("equal to the last bit")
        else:
            attack.failed("an addition hinders", f"{kind}, {add.__name__}: {found}")


@pytest.mark.parametrize("kind", ["circle", "tokens", "study", "diagram", "phase diagram"])
def test_other_tools_read_our_files(kind, intact):
    with xr.open_dataset(intact(kind), engine="h5netcdf") as data:
        assert data.load().data_vars


def test_the_comparison_sees_a_last_bit(intact, tmp_path):
    """A comparison that cannot fail finds nothing."""
    run = mf.load(intact("circle"))
    before = contents(run)
    run.stats["rate_of_change"] = np.nextafter(run.stats["rate_of_change"], 1.0)
    assert {name for name, d in contents(run).items() if d != before[name]} == {"stats"}

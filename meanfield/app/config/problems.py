"""Validation errors in words: which key, what was expected, what came, the nearest valid key."""

from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from .schema import File

__all__ = ["problems"]

EXPECTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "int_from_float": "a whole number",
    "string_type": "a string",
    "finite_number": "a finite number",
    "tuple_type": "an array",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "greater_than": "a number > {gt:g}",
    "greater_than_equal": "a number >= {ge:g}",
    "less_than_equal": "a number <= {le:g}",
    "too_short": "an array with at least {min_length} entries",
}


def problems(error: ValidationError, kind: type[File]) -> list[str]:
    """One line for each problem: the dotted key, a colon, and what is wrong with it."""
    root = kind.model_json_schema()
    errors: list[dict[str, Any]] = [{**item} for item in error.errors(include_url=False)]
    places = [item["loc"] for item in errors]
    lines = []
    for item in errors:
        inner = any(place[: len(item["loc"])] == item["loc"] != place for place in places)
        if item["type"] == "too_short" and inner:
            continue  # only because its entries were refused
        lines += _line(item, root).split("\n")  # tables that do not agree: one line for each reason
    return lines


def _line(item: dict[str, Any], root: dict[str, Any]) -> str:
    kind, given, context = item["type"], item["input"], item.get("ctx", {})
    if kind == "extra_forbidden":
        key, table = _follow(item["loc"][:-1], root)
        name = str(item["loc"][-1])
        return f"{_join(key, name)}: {_unknown(name, key, table, root)}"
    key, node = _follow(item["loc"], root)
    if kind == "missing":
        return f"{key}: this key is required ({node['description']}) and is missing"
    if kind == "union_tag_not_found":
        names = ", ".join(node["discriminator"]["mapping"])
        return f"{_join(key, node['discriminator']['propertyName'])}: expected one of {names}"
    if kind == "union_tag_invalid":
        name = node["discriminator"]["propertyName"]
        return (
            _join(key, name) + ": " + _choice(given[name], list(node["discriminator"]["mapping"]))
        )
    if kind == "literal_error":
        return f"{key}: {_choice(given, _choices(node))}"
    if kind == "model_attributes_type" and isinstance(given, str) and "discriminator" in node:
        written = f"{{ {node['discriminator']['propertyName']} = {_toml(given)} }}"
        return f"{key}: expected a table, such as {written}; got {_toml(given)}"
    if kind == "value_error":
        text = str(context["error"])
        return f"{key}: {text}" if key else text
    if kind in EXPECTED:
        return f"{key}: expected {EXPECTED[kind].format(**context)}; got {_toml(given)}"
    return f"{key}: {item['msg']}; got {_toml(given)}"


def _follow(place: tuple[int | str, ...], root: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The dotted key at a place, and its node of the schema; tags of unions are no keys."""
    key, node = "", root
    for step in place:
        if "discriminator" in node:
            node = _resolve({"$ref": node["discriminator"]["mapping"][step]}, root)
        elif "oneOf" in node:  # one of several forms, whose tag is the name of its table
            forms = [form for form in node["oneOf"] if form.get("$ref", "").endswith(f"/{step}")]
            node = _resolve(forms[0] if forms else {}, root)
        elif isinstance(step, int):
            key, node = f"{key}[{step}]", _resolve(node.get("items", {}), root)
        else:
            key, node = _join(key, step), _resolve(node.get("properties", {}).get(step, {}), root)
    return key, node


def _resolve(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    given = [branch for branch in node.get("anyOf", []) if branch.keys() & {"$ref", "oneOf"}]
    if given:  # a table that may be left out
        node = {**given[0], **{name: node[name] for name in node if name != "anyOf"}}
    if "$ref" in node:
        target = root["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        return {**target, **{name: node[name] for name in node if name != "$ref"}}
    return node


def _join(key: str, name: int | str) -> str:
    return f"{key}.{name}" if key else str(name)


def _unknown(name: str, key: str, table: dict[str, Any], root: dict[str, Any]) -> str:
    """What is wrong with a key that the table at `key` does not have, and the nearest valid one."""
    valid = list(table["properties"])
    near = get_close_matches(name.lower(), valid, n=1, cutoff=0.5)
    homes = [other for other, node in root["properties"].items() if name in _keys(node, root)]
    if key.split(".")[0] in homes:
        hint = f"; {name} does not belong to this kind of table"
    elif homes:
        hint = f"; did you mean {name} in {' or '.join(f'[{home}]' for home in homes)}?"
    else:
        hint = f"; did you mean {near[0]}?" if near else ""
    return f"unknown key{hint} (valid here: {', '.join(valid)})"


def _keys(node: dict[str, Any], root: dict[str, Any]) -> set[str]:
    """Names of the keys of a table, whatever its kind."""
    node = _resolve(node, root)
    kinds = [_resolve(kind, root) for kind in node.get("oneOf", [node])]
    return {name for kind in kinds for name in kind.get("properties", {})}


def _choices(node: dict[str, Any]) -> list[str]:
    branches = [node, *node.get("anyOf", [])]
    constants = [branch["const"] for branch in branches if "const" in branch]
    return constants + [value for branch in branches for value in branch.get("enum", [])]


def _choice(given: Any, valid: list[str]) -> str:
    by_name = {name.lower(): name for name in valid}
    near = get_close_matches(str(given).lower(), by_name, n=1, cutoff=0.5)
    hint = f'; did you mean "{by_name[near[0]]}"?' if near else ""
    expected = " or ".join(f'"{name}"' for name in valid)
    return f"expected {expected}; got {_toml(given)}{hint}"


def _toml(value: Any) -> str:
    """A value as the file would write it; what is long, by its kind."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"' if len(value) < 60 else "a long string"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "an empty array" if not value else f"an array of {len(value)}"
    return str(value)

"""Behaviour common to all commands: error messages, exit codes, ``--import``.

An error is one message on stderr and an exit code: 2 for errors of the user, 1 for runs that ended
early, 70 for a defect of the package.
"""

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from ..core.checks import path_of
from ..core.errors import (
    MeanfieldError,
    ShortenedWarning,
    SlowWarning,
    StorageWarning,
    UnresolvedWarning,
)

NOT_SUCCESSFUL, BAD_INPUT, DEFECT = 1, 2, 70


class FileName(click.Path):
    """A valid name of a file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Path from the command line; a usage error if no file can have the name."""
        try:
            return path_of("the name of a file", value)
        except (TypeError, ValueError) as error:
            self.fail(str(error), param, ctx)


def numbers(text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        expected = "expected numbers separated by commas, 0.1,0.5"
        raise click.BadParameter(f"{expected}; got {text!r}") from None


FILE_NAME = FileName()
IMPORT: dict[str, Any] = {
    "metavar": "MODULE_OR_FILE",
    "multiple": True,
    "help": "Import a module, or a Python file, that defines your own kinds. Repeatable.",
}


class Commands(click.Group):
    """A group of commands whose errors are one message on stderr and an exit code.

    ``--import`` may stand before or after the name of a command.
    """

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command; characters that the terminal cannot encode are escaped."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, ValueError):  # another type of stream, or closed
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            return super().main(*arguments, **options)
        except OSError as error:  # from output of click itself, such as help on a full disk
            code, text = in_words(error, {})
            click.echo(text, err=True)
            sys.exit(code)
        finally:
            _drop_what_cannot_be_printed()

    def add_command(self, command: click.Command, name: str | None = None) -> None:
        """Add a command, with the option --import."""

        def import_more(context: click.Context, _option: Any, modules: tuple[str, ...]) -> None:
            context.find_root().obj |= {name: import_kinds(name) for name in modules}

        settings = IMPORT | {"expose_value": False, "is_eager": True, "callback": import_more}
        command.params.append(click.Option(["--import", "modules"], **settings))
        super().add_command(command, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the complete first sentence of the help of each command."""
        rows = [(name, command.get_short_help_str(limit=1000))
                for name, command in self.commands.items() if not command.hidden]  # fmt: skip
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))

    def invoke(self, context: click.Context) -> Any:
        """Run the command; print errors in words, and exit with a code for their class."""
        try:
            return super().invoke(context)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise  # click prints these
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(NOT_SUCCESSFUL)
        except Exception as error:
            if getattr(error, "errno", None) == errno.EPIPE:
                raise  # the reader of a pipe is gone: click exits with 1
            if context.params.get("shows_traceback"):
                traceback.print_exception(error)
            code, text = in_words(error, context.obj or {})
            click.echo(text, err=True)
            sys.exit(code)


def _drop_what_cannot_be_printed() -> None:
    """Discard output that cannot be written; Python would fail again at exit, with code 120."""
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def in_words(error: Exception, imports: dict[str, str]) -> tuple[int, str]:
    """The exit code and the message of an error that ends a command."""
    text = str(error) or type(error).__name__
    if isinstance(error, MeanfieldError):
        return BAD_INPUT, text
    if isinstance(error, MemoryError):
        return BAD_INPUT, f"not enough memory: {text}"
    if isinstance(error, OSError):
        name = "" if error.filename is None else f"{error.filename}: "
        return BAD_INPUT, f"{name}{error.strerror or text}"
    one_line = f"{type(error).__name__}: {' '.join(text.split())[:300]}"
    modules = {name: sys.modules.get(module_name(name)) for name in imports}
    imported = {str(getattr(m, "__file__", None)): name for name, m in modules.items()}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if imported_name := imported.get(frame.filename):
            return BAD_INPUT, f"--import {imported_name}, line {frame.lineno}: {one_line}"
    return DEFECT, (
        f"{one_line}\nThis is a defect of meanfield: please report it, with the output of "
        "`meanfield --traceback ...` and `meanfield doctor`."
    )


def module_name(name: str) -> str:
    """The name of a module, or of the module that a Python file becomes."""
    return Path(name).stem if name.endswith(".py") else name


@contextmanager
def plain_warnings() -> Iterator[list[str]]:
    """Show warnings without file and line; yields the list of warnings shown."""
    shown: list[str] = []

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        shown.append(str(message))
        click.echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        for category in (UnresolvedWarning, StorageWarning, SlowWarning, ShortenedWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield shown


def import_kinds(name: str) -> str:
    """Import a module, or a Python file, that defines kinds; returns its SHA-256.

    Raises
    ------
    MeanfieldError
        If it cannot be imported.
    """
    from ..core.files import checksum

    try:
        module = _import_file(Path(name)) if name.endswith(".py") else import_module(name)
    except Exception as error:  # the module may raise anything
        raise MeanfieldError(f"--import {name}: {type(error).__name__}: {error}") from error
    source = getattr(module, "__file__", None)
    return "" if source is None else checksum(Path(source))


def _import_file(path: Path) -> ModuleType:
    """Import a Python file as the module of its name."""
    existing = sys.modules.get(path.stem)
    if existing is not None and getattr(existing, "__file__", None) != str(path.absolute()):
        raise ImportError(f"a module {path.stem} exists already; rename the file")
    spec = spec_from_file_location(path.stem, path.absolute())
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"there is no such file; looked for {path.absolute()}")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # annotations of its classes are resolved there
    spec.loader.exec_module(module)
    return module

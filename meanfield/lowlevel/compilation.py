"""Compilation of functions by numba: options, locks, and listeners."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numba.extending
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target

from ..core.errors import MeanfieldError
from .code_cache import CodeCache


class Part(JITCodeLibrary):
    """The code of a function that only compiled code calls: it is optimised within its callers.

    numba optimises a function and makes machine code of it, and then does so again in each of its
    callers, with all below. The first is left out here, since nobody calls that code.
    """

    class Codegen:
        """Takes no environment, which only machine code has."""

        @staticmethod
        def set_env(*_: object) -> None: ...

    @property
    def codegen(self) -> Any:
        return self.Codegen

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class Subroutine(Part):
    """A `Part` that stays a function within its callers, one for all their calls."""

    def add_ir_module(self, ir_module: Any) -> None:
        for function in ir_module.functions:
            if not function.is_declaration:
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)


class PartCompiler(Compiler):
    """numba's compiler, for a `Part`."""

    library: type[Part] = Part

    def define_pipelines(self) -> Any:
        if self.state.library is None:
            code = cpu_target.target_context.codegen()
            self.state.library = self.library(code, self.state.func_id.func_qualname)
        return super().define_pipelines()


class SubroutineCompiler(PartCompiler):
    """numba's compiler, for a `Subroutine`."""

    library = Subroutine


class PartDispatcher(CPUDispatcher):
    """A function that only compiled code calls: a call from Python would end the process."""

    def __call__(self, *_: object, **__: object) -> None:
        raise TypeError(f"{self.py_func.__qualname__} is called by compiled code alone.")


# Options of functions that only compiled code calls. They get no entry from Python either: for
# arguments such as tuples of arrays, compiling one takes as long as the function itself.
INNER: dict[str, Any] = {
    "pipeline_class": PartCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True
}  # fmt: skip

# Options of those whose code is worth having once: long ones that are called at several places.
SUBROUTINE: dict[str, Any] = {**INNER, "pipeline_class": SubroutineCompiler}

# Options of functions with `fastmath` that compiled code calls: they become a part of the caller.
# Compiled on its own too, such a function may round differently, and which of the two a process
# runs depends on what it compiles and what it reads from the cache.
WITHIN: dict[str, Any] = {"nogil": True, "forceinline": True, **INNER}

# What `fastmath` allows where sums may be taken in any order; nan and infinity keep their meaning.
# No powers there: numba compiles `x**2` once in a process, with the options of who asks first.
IN_ANY_ORDER = {"contract", "reassoc", "nsz"}


def njit(
    function: Callable[..., Any] | None = None,
    *,
    cache: bool = False,
    announced: str | None = None,
    **options: Any,
) -> Any:
    """`numba.njit`, a decorator; with `cache` the compiled code is kept by `CodeCache`.

    `announced` is what `listening` says while it compiles, in place of the name of the function:
    for the few that take more than a second.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        if not isinstance(dispatcher, CPUDispatcher):
            raise MeanfieldError(
                "meanfield needs numba's compiler, which NUMBA_DISABLE_JIT switches off: unset it, "
                "or have it 0."
            )
        if cache:
            dispatcher._cache = CodeCache(function)
        dispatcher.announced = announced or function.__name__
        if issubclass(options.get("pipeline_class", Compiler), PartCompiler):
            dispatcher.__class__ = PartDispatcher
        return dispatcher

    return compiled if function is None else compiled(function)


def jitable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let compiled code call a function, which stays one of plain Python: a decorator."""
    return numba.extending.register_jitable(**INNER, error_model="numpy")(function)


# Locks and forks -------------------------------------------------------------------------------

COMPILING: Any = global_compiler_lock  # by one thread at a time
LOCKS: list[Any] = [COMPILING]  # in the order in which they are taken


def hold_at_fork(lock: Any) -> None:
    """Have forks wait for a lock, which their children would else find taken for ever.

    Who has it must not wait for another one of these locks.
    """
    LOCKS.append(lock)


def _acquire() -> None:
    for lock in LOCKS:
        lock.acquire()


def _release() -> None:
    for lock in reversed(LOCKS):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)


# Compilation that is announced -----------------------------------------------------------------


class _Listener(event.Listener):
    def __init__(self, callback: Callable[[str | None], None]) -> None:
        self._callback, self._depth = callback, 0

    def on_start(self, started: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            dispatcher = started.data["dispatcher"]
            self._callback(getattr(dispatcher, "announced", dispatcher.py_func.__name__))

    def on_end(self, _ended: Any) -> None:
        if self._depth == 0:  # it began before this listener, in another thread
            return
        self._depth -= 1
        if self._depth == 0:
            self._callback(None)


@contextmanager
def listening(callback: Callable[[str | None], None]) -> Iterator[None]:
    """A context in which `callback` is called when a compilation begins, and when it ends.

    Parameters
    ----------
    callback : callable
        Called when a compilation begins, with the name of the function or what it is announced
        as, and with None when it ends. Functions that are compiled as parts of another one, and
        those read from the cache on disk, are not announced.
    """
    with event.install_listener("numba:compile", _Listener(callback)):
        yield

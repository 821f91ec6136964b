"""Compilation of functions by numba: options, locks, and listeners."""

import gc
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

from ..core import system
from ..core.errors import MeanfieldError
from .code_cache import CodeCache

# Passes of numba for what the package's functions do not have: contexts, closures, values in raised
# errors, functions inlined before types are known, loops over literals, and expressions with whole
# arrays, which numba would fuse to loops.
UNUSED_PASSES = {
    *("WithLifting", "InlineClosureLikes", "MakeFunctionToJitFunction", "RewriteDynamicRaises"),
    *("InlineInlinables", "InlineOverloads", "FindLiterallyCalls", "LiteralUnroll"),
    *("LiteralPropagationSubPipelinePass", "NopythonRewrites", "DumpParforDiagnostics"),
}


# Options that numba would otherwise take from the first caller of a function in a process.
OWN: dict[str, Any] = {"error_model": "numpy", "fastmath": False, "forceinline": False}


# Code of operators such as `x**n`, by the `fastmath` options of the functions that use them. numba
# has one table for all, so that the first user in a process determines how they round.
OPERATORS: dict[frozenset[str], dict[Any, Any]] = {}


class LeanCompiler(Compiler):
    """Compiler of numba without UNUSED_PASSES, which would take some 8 % of the time.

    The code of a function does not depend on what the process has compiled before.
    """

    def __init__(self, *arguments: Any) -> None:
        """Compiler of one function, with arguments of numba."""
        super().__init__(*arguments)
        fastmath = frozenset(self.state.flags.fastmath.flags)
        self.state.targetctx.cached_internal_func = OPERATORS.setdefault(fastmath, {})

    def define_pipelines(self) -> Any:
        """The pipelines of numba without UNUSED_PASSES."""
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            used = (step for step in pipeline.passes if step[0].__name__ not in UNUSED_PASSES)
            pipeline.passes = list(used)
        return pipelines

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Compile a function, without looking for cyclic garbage in the process meanwhile.

        A compilation makes so many objects that the search would take some 8 % of the time.
        """
        collects = gc.isenabled()
        try:
            gc.disable()
            return super().compile_extra(function)
        finally:
            if collects:
                gc.enable()


class Part(JITCodeLibrary):
    """Code of a function that only compiled code calls; it is optimised within its callers.

    numba optimises a function and compiles it to machine code, and does so again within each of its
    callers. Here the machine code of the function itself is left out, since it is never called.
    """

    class Codegen:
        """Code generator that ignores environments, which only machine code has."""

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
    """A `Part` that is not inlined: one function within each caller, for all calls."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Add a module whose functions are not inlined."""
        for function in ir_module.functions:
            if not function.is_declaration:
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)


class PartCompiler(LeanCompiler):
    """Compiler that makes a `Part`."""

    library: type[Part] = Part

    def define_pipelines(self) -> Any:
        """The pipelines of numba, with the library of this class."""
        if self.state.library is None:
            code = cpu_target.target_context.codegen()
            self.state.library = self.library(code, self.state.func_id.func_qualname)
        return super().define_pipelines()


class SubroutineCompiler(PartCompiler):
    """Compiler that makes a `Subroutine`."""

    library = Subroutine


class PartDispatcher(CPUDispatcher):
    """Function for compiled code only: calls from Python, which would crash, raise TypeError."""

    def __call__(self, *_: object, **__: object) -> None:
        raise TypeError(f"{self.py_func.__qualname__} is called by compiled code alone.")


# Options of functions that only compiled code calls. They have no wrapper for calls from Python:
# for arguments such as tuples of arrays, it takes as long to compile as the function itself.
INNER: dict[str, Any] = {
    "pipeline_class": PartCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True
}  # fmt: skip

# Options of long functions with several calls in a caller, which are not inlined.
SUBROUTINE: dict[str, Any] = {**INNER, "pipeline_class": SubroutineCompiler}

# Options of functions with `fastmath` that compiled code calls: they are inlined in the caller.
# Were such a function also compiled on its own, it might round differently, and results would
# depend on what a process compiles and what it reads from the cache.
WITHIN: dict[str, Any] = {"nogil": True, "forceinline": True, **INNER}

# Options for `fastmath` where sums may be taken in any order; nan and infinity keep their meaning.
IN_ANY_ORDER = {"contract", "reassoc", "nsz"}


def njit(
    function: Callable[..., Any] | None = None,
    *,
    cache: bool = False,
    announced: str | None = None,
    **options: Any,
) -> Any:
    """Decorator like `numba.njit`; with `cache` compiled code is stored by `CodeCache`.

    `announced` is the text that `listening` passes on during compilation, in place of the name of
    the function; for functions that take more than a second to compile.
    """
    options = {"pipeline_class": LeanCompiler, **OWN, **options}

    def compiled(function: Callable[..., Any]) -> Any:
        """Dispatcher of a function, with the package's cache, name and pipeline."""
        dispatcher = numba.njit(**options)(function)
        if not isinstance(dispatcher, CPUDispatcher):
            raise MeanfieldError(
                "meanfield needs numba's compiler, which NUMBA_DISABLE_JIT switches off: unset it, "
                "or have it 0."
            )
        if cache:
            dispatcher._cache = CodeCache(function)
        dispatcher.announced = announced or function.__name__
        if issubclass(options["pipeline_class"], PartCompiler):
            dispatcher.__class__ = PartDispatcher
        return dispatcher

    return compiled if function is None else compiled(function)


def jitable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a plain Python function that compiled code may call too."""
    return numba.extending.register_jitable(**INNER, **OWN)(function)


# Locks and forks -------------------------------------------------------------------------------

COMPILING: Any = global_compiler_lock  # one thread compiles at a time
LOCKS_IN_ORDER: list[Any] = [COMPILING]  # locks that a fork waits for, in the order of acquisition


def hold_at_fork(lock: Any) -> None:
    """Let forks of the process wait for a lock, which would else stay locked in the child.

    A thread that holds the lock must not wait for another one of LOCKS_IN_ORDER.
    """
    LOCKS_IN_ORDER.append(lock)


def _acquire() -> None:
    for lock in LOCKS_IN_ORDER:
        lock.acquire()


def _release() -> None:
    for lock in reversed(LOCKS_IN_ORDER):
        lock.release()


system.at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)


# Compilation that is announced -----------------------------------------------------------------


class _Listener(event.Listener):
    def __init__(self, callback: Callable[[str | None], None]) -> None:
        self._callback, self._depth = callback, 0

    def on_start(self, started: Any) -> None:
        """Announce the function at the outermost compilation."""
        self._depth += 1
        if self._depth == 1:
            dispatcher = started.data["dispatcher"]
            self._callback(getattr(dispatcher, "announced", dispatcher.py_func.__name__))

    def on_end(self, _ended: Any) -> None:
        """Announce the end of the outermost compilation."""
        if self._depth == 0:  # it began before this listener, in another thread
            return
        self._depth -= 1
        if self._depth == 0:
            self._callback(None)


@contextmanager
def listening(callback: Callable[[str | None], None]) -> Iterator[None]:
    """Context in which `callback` is called when a compilation begins, and when it ends.

    Parameters
    ----------
    callback : callable
        Called with the name of the function, or its text `announced`, when a compilation begins,
        and with None when it ends. Not called for functions that are compiled as parts of another
        one, or read from the cache on disk.
    """
    with event.install_listener("numba:compile", _Listener(callback)):
        yield

"""Compilation of functions by numba: options, and who is told when it happens."""

__all__ = ["INNER"]

# Options of functions that only compiled code calls. They get no entry from Python: for arguments
# such as tuples of arrays, compiling one takes as long as the function itself.
INNER = {"cache": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

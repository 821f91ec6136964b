"""How many threads BLAS uses."""

from functools import cache


@cache
def _libraries():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks for them, which takes milliseconds


def one_blas_thread():
    """A context in which BLAS uses one thread.

    For where threads of our own share the work, and for small matrices, for which it is slower with
    more.
    """
    return _libraries().limit(limits=1, user_api="blas")

"""Properties that are computed once, without locks."""

import threading
from concurrent.futures import ThreadPoolExecutor

from meanfield.core.cached import cached_property


def test_threads_that_compute_the_same_get_the_same():
    """None waits for the other: of `functools.cached_property` in Python 3.11 the second does."""
    both = threading.Barrier(2)

    class Slow:
        @cached_property
        def value(self):
            both.wait(timeout=20)
            return object()

    one, other = Slow(), Slow()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda slow: slow.value, (one, other))
        assert first is one.value and second is other.value and first is not second
        again = Slow()
        first, second = pool.map(lambda slow: slow.value, (again, again))
        assert first is second is again.value


def test_it_is_found_on_the_class():
    class Documented:
        @cached_property
        def value(self):
            """Its words."""
            return 1

    assert Documented.value.__doc__ == "Its words." and Documented().value == 1

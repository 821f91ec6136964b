"""Memory that is lent and taken back."""

from threading import Barrier, Thread

import numpy as np
import pytest

from meanfield.lowlevel.reuse import Reused


def test_what_was_given_back_is_lent_again():
    memory = Reused()
    with memory.lent((3, 4), (3, 4), (5,)) as first:
        assert [array.shape for array in first] == [(3, 4), (3, 4), (5,)]
        assert not np.shares_memory(*first[:2])
        with memory.lent((3, 4)) as (other,):
            assert not any(np.shares_memory(other, array) for array in first)
    with memory.lent((3, 4), (3, 4), (3, 4), (5,)) as second:
        assert sum(any(a is b for b in second) for a in first) == 3
        assert any(other is array for array in second)


def test_arrays_come_back_after_errors():
    memory = Reused()
    with pytest.raises(ZeroDivisionError), memory.lent((2,)) as (array,):
        raise ZeroDivisionError
    with memory.lent((2,)) as (again,):
        assert again is array


def test_threads_do_not_get_the_same():
    memory, found, together = Reused(), [], Barrier(4)

    def borrow():
        with memory.lent((8,)) as (array,):
            found.append(array)
            together.wait(10)

    threads = [Thread(target=borrow) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(array) for array in found}) == 4

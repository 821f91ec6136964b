"""Memory that is lent and taken back."""

from threading import Barrier, Thread

import numpy as np
import pytest

from meanfield.engines.gram_pairs import Workspace


def test_what_was_given_back_is_lent_again():
    workspace = Workspace()
    with workspace.lent((3, 4), (3, 4), (5,)) as first:
        assert [array.shape for array in first] == [(3, 4), (3, 4), (5,)]
        assert not np.shares_memory(*first[:2])
        with workspace.lent((3, 4)) as (other,):
            assert not any(np.shares_memory(other, array) for array in first)
    with workspace.lent((3, 4), (3, 4), (3, 4), (5,)) as second:
        assert sum(any(a is b for b in second) for a in first) == 3
        assert any(other is array for array in second)


def test_arrays_come_back_after_errors():
    workspace = Workspace()
    with pytest.raises(ZeroDivisionError), workspace.lent((2,)) as (array,):
        raise ZeroDivisionError
    with workspace.lent((2,)) as (again,):
        assert again is array


def test_threads_do_not_get_the_same():
    workspace, found, together = Workspace(), [], Barrier(4)

    def borrow():
        with workspace.lent((8,)) as (array,):
            found.append(array)
            together.wait(10)

    threads = [Thread(target=borrow) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(array) for array in found}) == 4

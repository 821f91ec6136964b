"""A tournament: every block of tokens meets every other once.

In one round no block has two opponents, so the meetings of a round can take place at the same
time, and what a block collects is summed in the order of the rounds, whoever computes it.
"""

from numba import njit

__all__ = ["opponents", "rounds_of"]


@njit(cache=True, nogil=True)
def rounds_of(blocks):
    """How many rounds a tournament of so many blocks has; each has up to blocks/2 meetings."""
    return blocks - 1 + blocks % 2


@njit(cache=True, nogil=True)
def opponents(blocks, turn, meeting):
    """The two blocks of a meeting of a round, or (-1, -1) where a block has nobody to meet.

    All but the last block sit in a circle that turns by one place every round.
    """
    circle = blocks - 1 + blocks % 2
    first, second = (turn + meeting) % circle, (turn - meeting) % circle
    if meeting == 0:
        second = circle
    if max(first, second) >= blocks:
        return -1, -1
    return min(first, second), max(first, second)

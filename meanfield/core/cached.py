"""Properties that are computed once, by whichever thread comes first."""

import functools
from typing import TYPE_CHECKING

from .annotations import AnyObject

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """`functools.cached_property` without the lock that it has in Python 3.11.

        All objects of a class share that lock: threads wait for each other, and a process forked
        while another thread computes finds it locked for ever. Without it several threads may
        compute one value; all of them get the value that was stored first.
        """

        def __get__(self, instance: AnyObject, owner: type | None = None) -> AnyObject:
            if instance is None:
                return self
            kept = instance.__dict__
            if self.attrname not in kept:
                kept.setdefault(self.attrname, self.func(instance))
            return kept[self.attrname]

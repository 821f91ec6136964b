"""Properties that are computed once, by whichever thread comes first."""

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """`functools.cached_property` without the lock that it has in Python 3.11.

        With that lock, which is one for all objects of a class, a fork finds it taken for ever
        where another thread is computing, and threads wait for each other. Without it several
        threads may compute the same; all get what the first one stored.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            kept = instance.__dict__
            if self.attrname not in kept:
                kept.setdefault(self.attrname, self.func(instance))
            return kept[self.attrname]

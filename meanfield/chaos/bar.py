"""A progress bar of a study, in tokens."""

import sys

from .batches import Batch

__all__ = ["Bar"]


class Bar:
    """tqdm over all tokens of a study; `enabled` None shows it on a terminal only."""

    def __init__(self, batches: list[Batch], enabled: bool | None):
        self._bar = None
        if enabled or (enabled is None and sys.stderr.isatty()):
            from tqdm.auto import tqdm

            total = sum(batch.n * batch.kept for batch in batches)
            self._bar = tqdm(total=total, desc="chaos", unit=" tokens", unit_scale=True)

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_exception) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, *batches: Batch) -> None:
        """Count the tokens of batches that are done."""
        if self._bar is None:
            return
        for batch in batches:
            self._bar.set_description_str(f"chaos, n = {batch.n}", refresh=False)
            self._bar.update(batch.n * batch.kept)

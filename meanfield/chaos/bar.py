"""A progress bar of a study, in tokens."""

import sys

from .batches import Batch

__all__ = ["Bar"]


class Bar:
    """tqdm over all tokens of a study; `enabled` None shows it on a terminal only."""

    def __init__(self, sizes: list[int], replicas: int, enabled: bool | None):
        self._bar = None
        if enabled or (enabled is None and sys.stderr.isatty()):
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=sum(sizes) * replicas, desc="chaos", unit=" tokens", unit_scale=True
            )

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_exception) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, batch: Batch) -> None:
        """Count the tokens of a batch."""
        if self._bar is not None:
            self._bar.set_description_str(f"chaos, n = {batch.n}", refresh=False)
            self._bar.update(batch.n * batch.kept)

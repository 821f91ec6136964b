"""A progress bar in model time, with the time left."""

import sys

__all__ = ["Progress"]


class Progress:
    """tqdm over a duration; `enabled` None shows it on a terminal only, after one second."""

    def __init__(self, duration: float, enabled: bool | None):
        self._duration, self._bar = duration, None
        if enabled or (enabled is None and sys.stderr.isatty()):
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=1.0,
                delay=0 if enabled else 1,
                bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
                desc="solve",
            )

    def update(self, t: float, elapsed: float, size: str) -> None:
        """Show that the run has reached t, `elapsed` after its start."""
        if self._bar is None:
            return
        self._bar.set_description_str(f"solve t = {t:.4g}, {size}", refresh=False)
        self._bar.update(elapsed / self._duration - self._bar.n)

    def close(self) -> None:
        """Remove or finish the bar."""
        if self._bar is not None:
            self._bar.close()

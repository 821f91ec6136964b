"""Hidden states of a torch model, by hooks."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .hidden_states import without_padding
from .trace import Trace


class Recording:
    """Hidden states before the first recorded layer and after each, for each call of the model.

    Parameters
    ----------
    count : int
        The number of layers.
    mask : array (batch, n), optional
        0 for padding, which is left out.
    """

    def __init__(self, count: int, mask: Any = None):
        self.count, self.mask = count, mask
        self.calls: list[list[np.ndarray]] = []

    def __repr__(self) -> str:
        return f"Recording of {len(self.calls)} call(s) of {self.count} layers"

    def keep(self, value: Any, *, first: bool = False) -> None:
        """Append hidden states (batch, n, d) of a layer; `first` starts a new call."""
        value = value[0] if isinstance(value, tuple) else value
        states = value.detach().cpu().double().numpy()
        if states.ndim != 3:
            raise ValueError(
                f"Layers must take and give hidden states (batch, n, d); got {states.shape}."
            )
        if first:
            self.calls.append([])
        if not self.calls:
            raise ValueError("layers must be in the order in which the model runs through them.")
        self.calls[-1].append(states)

    @property
    def trace(self) -> Trace:
        """The trace, a text for each row of a batch; without a mask padding counts as tokens."""
        texts = []
        for call in self.calls:
            if len(call) != self.count + 1:
                raise ValueError(
                    f"Expected {self.count + 1} states of a call, recorded {len(call)}: the model "
                    "did not run through its layers once."
                )
            batch = np.stack(call)
            if self.mask is None:
                texts += list(batch.swapaxes(0, 1))
            else:
                texts += without_padding("attention_mask", batch, self.mask)
        return Trace(texts, [[str(k) for k in range(text.shape[1])] for text in texts])


@contextmanager
def record(layers: Iterable[Any], *, attention_mask: Any = None) -> Iterator[Recording]:
    """Record a torch model while it runs: `with record(model.encoder.layer) as kept: model(...)`.

    Afterwards `kept.trace` is the Trace. In a padded batch, as tokenizers return it, padding counts
    as tokens unless `attention_mask` is given.

    Parameters
    ----------
    layers : sequence of torch.nn.Module
        The layers, in their order; the first argument of each is hidden states (batch, n, d).
    attention_mask : array or tensor (batch, n), optional
        Mask of the batch, 1 for tokens and 0 for padding.

    Raises
    ------
    ImportError
        Without torch.
    ValueError
        While the model runs, for layers in another order and states of another shape; by
        `kept.trace` for a mask of another shape.
    """
    try:
        import torch
    except ImportError:
        raise ImportError("record needs torch: pip install torch.") from None
    layers = list(layers)
    if not layers or not all(isinstance(layer, torch.nn.Module) for layer in layers):
        raise TypeError(f"layers must be modules of torch, at least one, got {layers!r:.60}.")
    kept = Recording(len(layers), attention_mask)

    def enters(module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        kept.keep(arguments[0] if arguments else named["hidden_states"], first=True)

    hooks = [layers[0].register_forward_pre_hook(enters, with_kwargs=True)]
    hooks += [layer.register_forward_hook(lambda m, a, out: kept.keep(out)) for layer in layers]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()

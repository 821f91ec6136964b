"""Hidden states of a torch model, by hooks."""

from contextlib import contextmanager

import numpy as np

from .trace import Trace


class Recording:
    """What enters the first of some layers, and what each gives, call by call.

    Parameters
    ----------
    count : int
        The number of layers.
    """

    def __init__(self, count: int):
        self.count = count
        self.calls: list[list[np.ndarray]] = []

    def keep(self, value, *, first: bool = False) -> None:
        """Append the output of a layer, (batch, n, d); first: begin another call."""
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
        """Each row of each batch is a text; padding, if there is any, is not cut off."""
        texts = []
        for call in self.calls:
            if len(call) != self.count + 1:
                raise ValueError(
                    f"Expected {self.count + 1} states of a call, recorded {len(call)}: the model "
                    "did not run through its layers once."
                )
            texts += list(np.stack(call).swapaxes(0, 1))
        return Trace(texts, [[str(k) for k in range(text.shape[1])] for text in texts])


@contextmanager
def record(layers):
    """Record a torch model while it runs: `with record(model.encoder.layer) as kept: model(...)`.

    Afterwards `kept.trace` is the Trace.

    Parameters
    ----------
    layers : sequence of torch.nn.Module
        The layers, in their order; each takes hidden states (batch, n, d) first.

    Raises
    ------
    ImportError
        Without torch.
    ValueError
        While the model runs, for layers in another order and states of another shape.
    """
    try:
        import torch
    except ImportError:
        raise ImportError("record needs torch: pip install torch.") from None
    layers = list(layers)
    if not layers or not all(isinstance(layer, torch.nn.Module) for layer in layers):
        raise TypeError(f"layers must be modules of torch, at least one, got {layers!r:.60}.")
    kept = Recording(len(layers))

    def enters(module, arguments, named):
        kept.keep(arguments[0] if arguments else named["hidden_states"], first=True)

    hooks = [layers[0].register_forward_pre_hook(enters, with_kwargs=True)]
    hooks += [layer.register_forward_hook(lambda m, a, out: kept.keep(out)) for layer in layers]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()

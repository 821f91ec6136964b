"""Hidden states as arguments: arrays of texts, layers of one text, batches with padding."""

from collections.abc import Sequence

import numpy as np

from meanfield.extending import UserValue, require

EXPECTED_STATES = "hidden states of shape (layers + 1, n, d), layers >= 1 and n, d >= 2"
STATES_OF_ONE_TEXT = "np.stack([h[0].float().numpy() for h in outputs.hidden_states])"


def texts_of(name: str, states: UserValue) -> list[np.ndarray]:
    """Texts (layers + 1, n, d) of an array, a list of such arrays, or a tuple of layers (1, n, d).

    The batch axis of a single text, (layers + 1, 1, n, d), is removed. Tensors of torch become
    arrays. `name` is the name of `states` in messages.

    Raises
    ------
    ValueError
        "`name` must be ...", for batches of several texts, whose padding is not known.
    """
    is_list = isinstance(states, Sequence) and not isinstance(states, str | bytes)
    parts = list(states) if is_list and len(states) and np.ndim(states[0]) == 3 else None
    shapes = {tuple(np.shape(part)) for part in parts or ()}
    # a text has at least two states; transformers returns layers as a tuple
    one_text = parts is not None and len(parts) > 1 and len(shapes) == 1
    if parts is None:
        texts = [array_of(states)]
    elif one_text and (isinstance(states, tuple) or len(parts[0]) == 1):
        texts = [np.stack([array_of(part) for part in parts])]
    else:
        texts = [array_of(part) for part in parts]
    for shape in [h.shape for h in texts if h.ndim == 4 and h.shape[1] != 1]:
        raise ValueError(
            f"{name} must be {EXPECTED_STATES}; got the shape {shape}, as of a batch of "
            f"{shape[1]} texts. Give a list of texts, each without its padding: with h = "
            "np.stack(layers), [h[:, k, mask[k] == 1] for k in range(h.shape[1])], mask the "
            "attention mask."
        )
    return [h[:, 0] if h.ndim == 4 else h for h in texts]


def array_of(states: UserValue) -> np.ndarray:
    """A NumPy array; a tensor of torch on any device, and bfloat16, in double precision."""
    if hasattr(states, "detach"):
        states = states.detach().cpu().double().numpy()
    return np.asarray(states)


def without_padding(name: str, hidden: np.ndarray, mask: UserValue) -> list[np.ndarray]:
    """The texts of a batch (layers + 1, batch, n, d), without tokens whose mask (batch, n) is 0.

    Raises
    ------
    ValueError
        For a mask of another shape, of other numbers than 0 and 1, or with no token of a text.
    """
    mask = array_of(mask)
    shape = hidden.shape[1:3]
    expected = f"of shape {shape}, the texts of the batch and their tokens"
    require(f"{name}, its shape,", mask.shape, expected, mask.shape == shape)
    is_valid = np.isin(mask, (0, 1)).all() and mask.any(axis=1).all()
    expected = "1 for tokens, 0 for padding, with tokens in each text"
    require(f"{name}, an array,", mask, expected, is_valid)
    return [hidden[:, text, row == 1] for text, row in enumerate(mask)]


def shape_in_words(h: np.ndarray) -> str:
    """Type and shape in a message: float64 of shape (2, 1, 3)."""
    return f"{h.dtype} of shape {h.shape}"


def check_states(name: str, h: np.ndarray) -> None:
    """Raise ValueError unless h (layers + 1, n, d) has finite hidden states, none of them 0."""
    if h.ndim != 3 or h.dtype.kind not in "fiu" or min(h.shape) < 2:
        raise ValueError(f"{name} must be {EXPECTED_STATES}; got {shape_in_words(h)}.")
    infinite, zero = ~np.isfinite(h).all(axis=-1), ~h.any(axis=-1)
    for layer, token in np.argwhere(infinite)[:1]:
        raise ValueError(
            f"{name} must have finite hidden states; got nan or inf in {infinite.sum()} of them, "
            f"the first is token {token} in layer {layer}."
        )
    for layer, token in np.argwhere(zero)[:1]:
        raise ValueError(
            f"{name} must have hidden states with a direction; {zero.any(axis=0).sum()} of "
            f"{h.shape[1]} tokens are 0 in some layer, the first is token {token} in layer "
            f"{layer}. If they are padding, leave them out."
        )

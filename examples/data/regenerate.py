"""Compute minilm_hidden_states.npz again: the hidden states of a text in all-MiniLM-L6-v2.

This needs two packages that meanfield does not, `pip install torch transformers`, and downloads
the weights (90 MB, Apache License 2.0). It is no part of the tests, which have no network. Other
versions and processors differ in the last bits of float16.

    python examples/data/regenerate.py                              # text.txt, all-MiniLM-L6-v2
    python examples/data/regenerate.py --text mine.txt --out mine.npz
"""

import argparse
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def hidden_states(text: str, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Hidden states (layers + 1, n, d), float32, and the word pieces (n,) of a text.

    Layer 0 is what enters the first block.

    Raises
    ------
    ValueError
        If the text has more word pieces than the model has positions.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModel.from_pretrained(model).eval()
    batch = tokenizer(text, return_tensors="pt")
    count, positions = batch["input_ids"].shape[1], network.config.max_position_embeddings
    if count > positions:
        raise ValueError(
            f"The text has {count} word pieces and {model} has {positions} positions; use a "
            "shorter text."
        )
    with torch.no_grad():
        layers = network(**batch, output_hidden_states=True).hidden_states
    tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0].tolist())
    return torch.cat(layers).float().numpy(), np.array(tokens)


def mean_cosine(layer: np.ndarray) -> float:
    """Mean of <x_i, x_j> over all pairs i < j of the normalised tokens (n, d)."""
    unit = layer / np.linalg.norm(layer, axis=1, keepdims=True)
    return float((unit @ unit.T)[np.triu_indices(len(unit), k=1)].mean())


def main() -> None:
    """Read the text, run the model, write the file, print the mean cosines."""
    parser = argparse.ArgumentParser(description="Hidden states of a text in a Transformer.")
    parser.add_argument("--text", type=Path, default=FOLDER / "text.txt")
    parser.add_argument("--model", default=MODEL, help="name on the Hugging Face hub, or a folder")
    parser.add_argument("--out", type=Path, default=FOLDER / "minilm_hidden_states.npz")
    options = parser.parse_args()
    hidden, tokens = hidden_states(options.text.read_text(encoding="utf-8"), options.model)
    np.savez_compressed(options.out, hidden=hidden.astype(np.float16), tokens=tokens)
    cosines = ", ".join(f"{mean_cosine(layer):.3f}" for layer in hidden)
    print(f"wrote {options.out}: hidden {hidden.shape}; mean cosine by layer {cosines}")


if __name__ == "__main__":
    main()

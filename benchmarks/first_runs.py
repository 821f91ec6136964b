"""How long the first run of each kind compiles, with an empty cache, beside a fixed function.

    python benchmarks/first_runs.py [--small]    # 90 s; one kind with --small

Every run is a process of its own, whose cache is empty at first. Times are seconds of processor
time in the compiler. The fixed function belongs to no package: the ratio to its time differs less
between machines than seconds do.
"""

import json
import os
import subprocess
import sys
import tempfile

from _small import parser, sized

KINDS = {
    "density on the circle": "circle",
    "density on S^2": "sphere",
    "axisymmetric density in d = 5": "zonal",
    "tokens on the circle": "tokens",
    "tokens on S^2": "tokens_on_sphere",
    "tokens with noise": "noisy_tokens",
    "characteristics": "characteristics",
    "attention with matrices, a density": "attention",
    "indexed densities": "indexed",
    "derivatives by beta": "tangents",
}

CHILD = """
import json, sys, time
import numpy as np
import numba
import meanfield as mf
from numba.core import event


class Compiling(event.Listener):
    depth, spent = 0, 0.0

    def on_start(self, _):
        if self.depth == 0:
            self.began = time.process_time()
        self.depth += 1

    def on_end(self, _):
        self.depth -= 1
        if self.depth == 0:
            self.spent += time.process_time() - self.began


def smooth(space):
    if isinstance(space, mf.Circle):
        return space.density(lambda a: 1 + 0.3 * np.cos(a))
    if isinstance(space, mf.Sphere):
        return space.density(lambda x, y, z: 1 + 0.3 * z + 0.2 * x * y)
    return space.density(lambda t: 1 + 0.3 * t)


noisy, plain, circle = mf.Transformer(mf.USA(4.0), 6.0), mf.Transformer(mf.SA(4.0)), mf.Circle(32)
matrices = mf.Attention(Q=np.diag([1.0, 2.0]), beta=2.0)
on_circle = np.random.default_rng(0).standard_normal((300, 2))
on_sphere = np.random.default_rng(0).standard_normal((300, 3))
runs = {
    "circle": lambda: (noisy, smooth(circle), {}),
    "sphere": lambda: (noisy, smooth(mf.Sphere(16)), {}),
    "zonal": lambda: (noisy, smooth(mf.Zonal(5, 16)), {}),
    "tokens": lambda: (plain, tokens(on_circle), {}),
    "tokens_on_sphere": lambda: (plain, tokens(on_sphere), {}),
    "noisy_tokens": lambda: (mf.Transformer(mf.SA(4.0), 30.0), tokens(on_circle), {"rng": 1}),
    "characteristics": lambda: (plain, mf.Characteristics(smooth(circle)), {}),
    "attention": lambda: (mf.Transformer(matrices, 6.0), smooth(circle), {}),
    "indexed": lambda: (
        mf.Transformer(matrices, 6.0, causal="mean"),
        circle.indexed(lambda s, a: 1 + 0.3 * np.cos(a - s), mf.Positions(order=4)),
        {},
    ),
    "tangents": lambda: (noisy, smooth(circle), {"tangents": ["beta"]}),
}


def tokens(x):
    return mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))


@numba.njit
def fixed(a, b, c):
    total = np.zeros(3)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            x = a[i, j] * b[j] + np.exp(-c[i]) * np.sqrt(abs(b[j]) + 1.0)
            total[0] += x
            total[1] = max(total[1], x)
            for k in range(b.size):
                total[2] += a[i, k] * x if x > 0 else c[i] / (1.0 + x * x)
    for i in range(1, c.size):
        c[i] += 0.5 * c[i - 1]
    return total


heard = Compiling()
event.register("numba:compile", heard)
fixed(np.ones((3, 3)), np.ones(3), np.ones(3))
reference, heard.spent = heard.spent, 0.0
model, state, options = runs[sys.argv[1]]()
heard.spent = 0.0
mf.solve(model, state, t_span=(0, 0.05), progress=False, **options)
print(json.dumps([heard.spent, reference]))
"""


def compiled(kind: str) -> tuple[float, float]:
    """Seconds of processor time of a kind, and of the fixed function."""
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, kind],
            env={**os.environ, "NUMBA_CACHE_DIR": empty},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise SystemExit(f"{kind}: {done.stderr}")
    seconds, reference = json.loads(done.stdout)
    return seconds, reference


def main() -> None:
    parser(__doc__).parse_args()
    print("| first run | s | times the fixed function |\n|---|---|---|")
    for name, kind in list(KINDS.items())[: sized(None, 1)]:
        seconds, reference = compiled(kind)
        print(f"| {name} | {seconds:.1f} | {seconds / reference:.0f} |", flush=True)


if __name__ == "__main__":
    main()

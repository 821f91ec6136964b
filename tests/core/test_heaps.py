"""Memory of a process: heaps that threads share, and what is given back."""

import ctypes
import subprocess
import sys

import pytest

glibc = pytest.mark.skipif(
    not (sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_info")),
    reason="only glibc has such heaps",
)
HEAPS = """
import ctypes, sys, threading
from meanfield.core.system import share_heaps
if sys.argv[2] != "0":
    share_heaps(int(sys.argv[2]))
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
together = threading.Barrier(12)

def work():
    together.wait()
    for _ in range(200):
        library.malloc(10_000)
    together.wait()

threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(library.fopen(sys.argv[1].encode(), b"w"))
library.malloc_info(0, file)
library.fclose(file)
"""


@glibc
@pytest.mark.parametrize("most", [0, 1, 2])
def test_threads_share_heaps(tmp_path, most):
    """0 is the default of glibc; 12 threads then have more than two heaps."""
    path = tmp_path / "heaps.xml"
    subprocess.run([sys.executable, "-c", HEAPS, str(path), str(most)], check=True)
    heaps = path.read_text().count("<heap nr=")
    assert heaps > 2 if most == 0 else heaps == most


GIVEN_BACK = """
import ctypes
from meanfield.core.system import give_back_memory

def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
first = megabytes()
blocks = [ctypes.c_void_p(library.malloc(100_000)) for _ in range(1000)]
for block in blocks:
    ctypes.memset(block, 1, 100_000)
for block in blocks[:-1]:
    library.free(block)
kept = megabytes() - first
give_back_memory()
print(kept, megabytes() - first)
"""


@glibc
def test_free_memory_is_given_back():
    """100 MB below one block that is in use; without a call all of it is kept."""
    done = subprocess.run([sys.executable, "-c", GIVEN_BACK], check=True, capture_output=True)
    kept, left = map(float, done.stdout.split())
    assert kept > 80 and left < 20

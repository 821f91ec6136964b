"""The option `--small` of every script: small sizes, each run once, within seconds.

Everything that a script calls is called, so that `make bench-small` tells whether all of them work;
times so found mean nothing.
"""

import argparse
import sys
from typing import TypeVar

__all__ = ["SMALL", "parser", "sized"]

SMALL = "--small" in sys.argv[1:]
T = TypeVar("T")


def sized(whole: T, small: T) -> T:
    """The first of the two, or the second where `--small` is given."""
    return small if SMALL else whole


def parser(description: str | None) -> argparse.ArgumentParser:
    """The parser of a script, with the option `--small`."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--small", action="store_true", help="small sizes, once: whether it works")
    return found

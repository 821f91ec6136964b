"""`python -m meanfield` is the command `meanfield`."""

from .app.cli import main

if __name__ == "__main__":
    main(prog_name="meanfield")

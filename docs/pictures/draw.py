"""The two pictures of the README, by its own lines: `make pictures`."""

import os
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
README = HERE.parents[1] / "README.md"

if __name__ == "__main__":
    os.chdir(HERE)
    code = re.search(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)
    exec(code[1])

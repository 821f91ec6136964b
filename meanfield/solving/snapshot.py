"""A run on its way as named arrays, which a checkpoint keeps."""

import json
from typing import Any

import numpy as np

__all__ = ["packed", "unpacked"]


def packed(march, record, seconds: float) -> dict[str, Any]:
    """Everything that a run needs to go on, or to be given back if it is over."""
    arrays = {f"march.{name}": np.array(value) for name, value in march.snapshot().items()}
    kept = record.snapshot(march)
    arrays |= {"record.times": kept["times"], "record.seconds": np.array(seconds)}
    arrays["record.end"] = np.array(json.dumps(kept["end"]))
    for name in ("states", "t_events"):
        for i, array in enumerate(kept[name]):
            arrays[f"record.{name}.{i:09d}"] = array
    return arrays


def unpacked(content: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """The snapshots of march and record."""

    def listed(name: str) -> list[np.ndarray]:
        return [content[key] for key in sorted(content) if key.startswith(f"record.{name}.")]

    march = {key[6:]: value for key, value in content.items() if key.startswith("march.")}
    record = {
        "times": content["record.times"],
        "seconds": content["record.seconds"],
        "end": json.loads(str(content["record.end"])),
        "states": listed("states"),
        "t_events": listed("t_events"),
    }
    return {"march": march, "record": record}

"""
What the shipper of a log has last written down about itself, in Prometheus' text format, in a file beside the log.

The proxy shows them in its metrics, the alert service samples them.
"""

import time
from pathlib import Path
from typing import Final

FILE: Final = "shipper.metrics"
STALE_SECONDS: Final = 10.0
"""A file that was not written for so long is that of a shipper that is no more."""
UP: Final = "gnomon_shipper_up"


def samples(log_folder: Path) -> list[str]:
    """Return the lines; none where no shipper has ever been, and `up` 0 alone where none is now."""
    try:
        file = log_folder / FILE
        age_seconds = time.time() - file.stat().st_mtime
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return []
    return lines if age_seconds <= STALE_SECONDS else [f"{UP} 0"]

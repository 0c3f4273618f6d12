"""The folder of `--data`, made where it is missing."""

from pathlib import Path

from gnomon.errors import GnomonError


def make(folder: Path) -> None:
    """
    Make the folder and those above it.

    Raises:
        GnomonError: it cannot be made; the message names the way out.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise GnomonError(f"{folder} is no folder; give another --data") from error
    except OSError as error:
        raise GnomonError(f"cannot make the data folder {folder}: {error.strerror}; give another --data") from error

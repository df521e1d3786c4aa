"""The quotas that were read last: a file beside the ledger, so that a restart does not begin without them."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from proxy.core.quotas import Quota

FILE: Final = "quotas.json"


def kept_quotas(folder: Path) -> dict[str, Quota]:
    """By team; none where there is no file or it cannot be read."""
    try:
        return {team: Quota(**one) for team, one in json.loads((folder / FILE).read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def keep_quotas(folder: Path, quotas: Mapping[str, Quota]) -> None:
    """Remember them; where the file cannot be written, they are read from the service again after a restart."""
    beside = folder / f"{FILE}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({team: asdict(one) for team, one in quotas.items()}, file)
        beside.replace(folder / FILE)
    except OSError:
        return

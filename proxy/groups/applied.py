"""What was applied and cannot be read back: the model permissions of groups, kept in a small file beside the groups'.

Without the file, or where it is of another tenant, everything of it is applied once more, which does no harm.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import orjson


class Applied:
    """models: by group id, model id to whether it may be used, as last applied."""

    def __init__(self, path: Path, tenant: str) -> None:
        self._path: Final = path
        self._tenant: Final = tenant
        self.models: dict[int, dict[int, bool]] = {}
        self._read(path)

    @classmethod
    def beside(cls, file: Path, tenant: str) -> "Applied":
        """Kept beside the groups' file: `groups.yaml` has `groups.applied.json`."""
        return cls(file.with_name(f"{file.stem}.applied.json"), tenant)

    def note(self, group: int, models: Mapping[int, bool]) -> None:
        self.models[group] = {**self.models.get(group, {}), **models}

    def forget(self, group: int) -> None:
        self.models.pop(group, None)

    def save(self) -> None:
        """Replace the file whole, so that an interruption leaves the old one or the new one."""
        if not self.models and not self._path.exists():
            return
        models = {
            str(group): {str(model): allowed for model, allowed in sorted(rules.items())}
            for group, rules in sorted(self.models.items())
        }
        data = orjson.dumps({"tenant": self._tenant, "models": models}, option=orjson.OPT_INDENT_2)
        aside = self._path.with_name(f"{self._path.name}.new")
        with aside.open("wb") as file:
            file.write(data + b"\n")
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self._path)

    def _read(self, path: Path) -> None:
        try:
            value = orjson.loads(path.read_bytes())
            if value["tenant"] == self._tenant:
                self.models = {
                    int(group): {int(model): bool(allowed) for model, allowed in rules.items()}
                    for group, rules in value["models"].items()
                }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # Anything unusable counts as nothing known.
            self.models = {}

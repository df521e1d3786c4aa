"""One YAML 1.2 file as a tree that knows where each key stands.

YAML is read narrowly: no aliases, tags, merge keys or duplicate keys, one document, one mapping, and text under a
bound. What is left says what it seems to say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from proxy.config.problem import Problem, Problems

FILE_BYTES_MAX: Final = 1024 * 1024
"""Two hundred teams take about 60 KB; a larger file is somebody's mistake."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """A file that was read: its name as problems show it, and its tree (a plain mapping with positions)."""

    name: str
    tree: CommentedMap

    def position(self, steps: Sequence[str | int]) -> tuple[int, int]:
        """Line and column, from 0, of what stands at these keys and indexes, else of the nearest thing above it."""
        node: Any = self.tree
        found = (0, 0)
        for step in steps:
            # The checker names a number that stands as a key by its text.
            if isinstance(node, CommentedMap) and step not in node:
                step = next((key for key in node if str(key) == step), step)  # noqa: PLW2901  (its true form)
            try:
                found = node.lc.item(step) if isinstance(step, int) else node.lc.key(step)
                node = node[step]
            except (AttributeError, KeyError, IndexError, TypeError):
                break
        return found

    def place(self, steps: Sequence[str | int]) -> str:
        """`file:line:col` of that position, from 1."""
        line, column = self.position(steps)
        return f"{self.name}:{line + 1}:{column + 1}"


def read_yaml(path: Path, bytes_max: int = FILE_BYTES_MAX, *, name: str = "") -> YamlFile:
    """Read a file; raises Problems with the place of the fault. An empty file is an empty mapping.

    name: what problems call it, instead of its path.
    """
    name = name or str(path)
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise Problems([Problem(name, f"cannot be read ({error.strerror})")]) from error
    except UnicodeDecodeError as error:
        raise Problems([Problem(name, f"is not UTF-8 at byte {error.start}")]) from error
    if len(raw) > bytes_max:
        raise Problems([Problem(name, f"is larger than {bytes_max:,} bytes", "split it")])
    try:
        if refused := list(_refused(name, text)):
            raise Problems(refused)
        tree = YAML(typ="rt").load(text)
    except DuplicateKeyError as error:
        raise Problems([Problem(_at(name, error.problem_mark), _twice(text, error.problem_mark))]) from error
    except MarkedYAMLError as error:
        # Of a second document the reader says half of the sentence in each of these.
        parts = [error.context or "", error.problem or ""]
        what = " ".join(parts) if parts[0].startswith("expected") else parts[1] or parts[0] or "is not YAML"
        raise Problems([Problem(_at(name, error.problem_mark or error.context_mark), what)]) from error
    except YAMLError as error:
        raise Problems([Problem(name, str(error).splitlines()[0])]) from error
    except ValueError as error:
        # The reader makes a date of whatever is written like one.
        raise Problems([Problem(name, f"holds what looks like a date and is none ({error})", "mend it")]) from error
    if tree is None:
        tree = CommentedMap()
    if not isinstance(tree, CommentedMap):
        raise Problems([Problem(f"{name}:1:1", "expected keys and values at the top of the file")])
    return YamlFile(name, tree)


def _at(name: str, mark: Any) -> str:
    return f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name


def _twice(text: str, mark: Any) -> str:
    key = text.splitlines()[mark.line][mark.column :].split(":")[0].strip()
    return f"the key {key} stands twice"


def _refused(name: str, text: str) -> Sequence[Problem]:
    """The parts of YAML that read as something else than they look like, or grow without bound when copied."""
    found = []
    for event in YAML(typ="safe", pure=True).parse(text):
        where = _at(name, event.start_mark)
        if type(event).__name__ == "AliasEvent":
            found.append(Problem(where, "aliases are not read", "write the value out"))
        elif getattr(event, "ctag", None) is not None:
            found.append(Problem(where, "tags are not read", "write the plain value"))
        elif getattr(event, "value", None) == "<<" and getattr(event, "style", None) is None:
            found.append(Problem(where, "merge keys are not read", "write the keys out"))
    return found

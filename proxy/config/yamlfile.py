"""One YAML 1.2 file: text under a bound, read as a tree that knows where each key stands, a mapping at its top."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ruamel.yaml.error import MarkedYAMLError, YAMLError

from proxy.config.problem import Problem, Problems
from proxy.config.yamltree import Fault, Position, Steps, TooDeep, Tree, fill, replaced

FILE_BYTES_MAX: Final = 1024 * 1024
"""Two hundred teams take about 60 KB; a larger file is somebody's mistake."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """A file that was read: its name as problems show it, and what stands in it."""

    name: str
    read: Tree

    @property
    def tree(self) -> dict[Any, Any]:
        """Keys and values at the top of the file."""
        value: dict[Any, Any] = self.read.value
        return value

    def position(self, steps: Sequence[str | int]) -> Position:
        """Line and column, from 0, of what stands at these keys and indexes, else of the nearest thing above it."""
        places, found = self.read.places, (0, 0)
        here: Steps = ()
        for step in steps:
            # The checker may name a key that is a number by the number.
            here = (*here, step if (*here, step) in places else str(step))
            if here not in places:
                break
            found = places[here]
        return found

    def place(self, steps: Sequence[str | int]) -> str:
        """`file:line:col` of that position, from 1."""
        return placed(self.name, self.position(steps))

    def problem(self, fault: Fault) -> Problem:
        """A fault as people read it."""
        path = ".".join(map(str, fault.steps))
        return Problem(placed(self.name, fault.at), f"{path}: {fault.what}" if path else fault.what, fault.do)

    def parts(self) -> Iterator["YamlFile"]:
        """The file as one of which each key at the top stands once, then what stands under such a key again."""
        yield self
        for steps, again in self.read.again:
            if len(steps) == 1:
                yield YamlFile(self.name, replace(again, value={steps[0]: again.value}))

    def variants(self) -> Iterator[tuple[Steps, "YamlFile"]]:
        """For each key further down that stands a second time: where, and the file with only what stands there then."""
        for steps, again in self.read.again:
            if len(steps) > 1:
                yield steps, YamlFile(self.name, replaced(self.read, steps, again))


def placed(name: str, at: Position) -> str:
    """`file:line:col`, from 1."""
    return f"{name}:{at[0] + 1}:{at[1] + 1}"


def read_yaml(path: Path, bytes_max: int = FILE_BYTES_MAX, *, name: str = "") -> YamlFile:
    """Read a file; raises Problems with the place of each fault. An empty file is an empty mapping.

    name: what problems call it, instead of its path.
    """
    file = parse_yaml(path, bytes_max, name=name)
    found = [*file.read.faults, *(fault for _, again in file.read.again for fault in again.faults)]
    if found:
        raise Problems([file.problem(fault) for fault in sorted(found, key=lambda fault: fault.at)])
    return file


def parse_yaml(path: Path, bytes_max: int = FILE_BYTES_MAX, *, name: str = "") -> YamlFile:
    """The same with its faults in the tree; raises Problems only where nothing can be made of the file."""
    name = name or str(path)
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise Problems([Problem(name, f"cannot be read ({error.strerror})")]) from error
    except UnicodeDecodeError as error:
        raise Problems([Problem(name, f"is not UTF-8 at byte {error.start}", "save it as UTF-8")]) from error
    if len(raw) > bytes_max:
        raise Problems([Problem(name, f"is larger than {bytes_max:,} bytes", "split it")])
    tree = Tree()
    file = YamlFile(name, tree)
    try:
        fill(tree, name, text)
    except (YAMLError, TooDeep) as error:
        raise Problems([*map(file.problem, tree.faults), _syntax(name, error)]) from error
    if tree.value is None:
        tree.value = {}
    if not isinstance(tree.value, dict):
        do = "begin with a word and a colon, such as teams:"
        raise Problems([Problem(f"{name}:1:1", "expected keys and values at the top of the file", do)])
    return file


def _syntax(name: str, error: Exception) -> Problem:
    if isinstance(error, TooDeep):
        return Problem(placed(name, error.at), str(error), "write less of them")
    if not isinstance(error, MarkedYAMLError):
        return Problem(name, str(error).splitlines()[0], "mend it")
    parts = [error.context or "", error.problem or ""]
    what = " ".join(parts) if parts[0].startswith("expected") else parts[1] or parts[0] or "is not YAML"
    mark = error.problem_mark or error.context_mark
    do = next((do for sign, do in _REMEDIES.items() if sign in what), "mend it, the rest of the file is read then")
    return Problem(placed(name, (mark.line, mark.column)) if mark else name, what, do)


_REMEDIES: Final = {
    r"'\t'": "indent with spaces",
    "<stream end>": "close each { and [",
    "end of stream": "close each quote",
    "mapping values": "put text with a colon in quotes, and indent what belongs together alike",
    "<block": "indent what belongs together alike",
    "',' or": "put a comma between two items, and close each { and [",
}
"""What to do about a sentence of the parser's, by what stands in it."""

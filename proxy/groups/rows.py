"""Lists of members as CSV files: a heading with `id`, `email` or both, then one member on each line."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from proxy.config.problem import Problem, Problems
from proxy.groups.records import Candidate
from proxy.groups.wanted import Person

BYTES_MAX: Final = 64 * 1024 * 1024
"""A million members take about this."""


def read_members(path: Path) -> tuple[Person, ...]:
    """Every member once, in order. Where a line has an id, that counts. Raises Problems, each with its line."""
    try:
        if path.stat().st_size > BYTES_MAX:
            raise Problems([Problem(str(path), f"is larger than {BYTES_MAX:,} bytes")])
        # Spreadsheets put a mark in front.
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise Problems([Problem(str(path), f"cannot be read ({error.strerror})")]) from error
    except UnicodeDecodeError as error:
        raise Problems([Problem(str(path), f"is not UTF-8 at byte {error.start}")]) from error
    reader = csv.DictReader(io.StringIO(text), restkey="", strict=True)
    people: dict[Person, None] = {}
    problems: list[Problem] = []
    try:
        if not {"id", "email"} & {*(reader.fieldnames or ())}:
            raise Problems([Problem(f"{path}:1", "the first line names no column id or email")])
        for row in reader:
            person = _person((row.get("id") or "").strip(), (row.get("email") or "").strip())
            if person is None:
                what = "has neither an id, a whole number, nor an address"
                problems.append(Problem(f"{path}:{reader.line_num}", what))
            else:
                people[person] = None
    except csv.Error as error:
        raise Problems([Problem(f"{path}:{reader.line_num}", f"is not CSV: {error}")]) from error
    if problems:
        raise Problems(problems)
    return tuple(people)


def members_text(members: Iterable[Candidate]) -> str:
    """A file that `read_members` reads; addresses and names are there for people."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(("id", "email", "name"))
    writer.writerows((row.id, row.email, row.name) for row in sorted(members, key=lambda row: row.id))
    return written.getvalue()


def _person(ident: str, email: str) -> Person | None:
    if ident:
        return int(ident) if ident.isascii() and ident.isdigit() else None
    return email if "@" in email else None

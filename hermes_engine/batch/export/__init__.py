"""Writes a run's kept rows in a form a trainer reads.

Reads the row files, so that a run that was killed exports what it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal, Protocol

from hermes_engine.batch.export.forms import HermesFC, LlamaFactory, OpenAI, ShareGPT
from hermes_engine.batch.export.kept import kept_rows, lines_of
from hermes_engine.batch.export.turns import Unfit
from hermes_engine.batch.folder import RunFolder
from hermes_engine.batch.job import Record
from hermes_engine.batch.ledger import identity
from hermes_engine.batch.targets import is_file, writing
from hermes_engine.batch.trajectory import line_of
from hermes_engine.errors import UnknownName

if TYPE_CHECKING:
    from hermes_engine.batch.export.groups import Groups

FORMATS = ("sharegpt", "openai", "hermes-fc", "llamafactory", "atropos")
"""Names of the forms."""


class Form(Protocol):
    """Makes rows of an export out of records."""

    name: ClassVar[str]

    def rows(self, record: Record) -> list[Any]:
        """The rows a record becomes. Raises Unfit with the reason when it cannot be told in this form."""
        ...

    def beside(self, target: Path) -> None:
        """Writes what a reader needs besides the file. Raises StateError."""
        ...


@dataclass(frozen=True, slots=True)
class FormOptions:
    """How a form is to be told; each counts for the forms that know it.

    Attributes:
        arguments: openai: string | object.
        tools: openai: string | list.
        tokenizer: atropos: folder of a tokenizer with a chat template.
        run: atropos: whose recorded tokens are used.
    """

    arguments: Literal["string", "object"] = "string"
    tools: Literal["string", "list"] = "string"
    tokenizer: Path | None = None
    run: RunFolder | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote, and what it left out by reason."""

    written: int
    left_out: dict[str, int]


def form_of(name: str, schemas: Sequence[Mapping[str, Any]] = (), options: FormOptions | None = None) -> Form:
    """The form of that name, for a run with these tool definitions.

    Raises:
        UnknownName: no such form.
        UsageError: it needs something that was not given, or a package that is not installed.
    """
    told = options or FormOptions()
    match name:
        case "sharegpt":
            return ShareGPT()
        case "openai":
            return OpenAI(schemas, told.arguments, told.tools)
        case "hermes-fc":
            return HermesFC(schemas)
        case "llamafactory":
            return LlamaFactory(schemas)
        case "atropos":
            from hermes_engine.batch.export.atropos import Atropos, atropos_of, load_tokenizer  # the extra `train`

            return atropos_of(told.run, told.tokenizer) if told.run else Atropos(load_tokenizer(told.tokenizer))
        case _:
            raise UnknownName("format", name, FORMATS)


def export(
    folder: RunFolder, form: Form, target: Path | BinaryIO, *, everything: bool = False, groups: Groups | None = None
) -> Exported:
    """Writes the run's rows.

    Args:
        folder: of the run.
        form: of the lines.
        target: a file, replaced whole (see `targets.writing`); or an open stream.
        everything: also rows that ended before they were done.
        groups: makes one line of all samples of a prompt, instead of the form's own.

    Raises:
        UsageError: the target is a file of the run itself.
        StateError: it, or what belongs beside it, cannot be written.
    """
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    """Kept rows: an earlier failure of theirs may still stand in its file."""
    if groups is None:
        lines = _rows(folder, form, left_out, seen, everything=everything)
    else:
        left_out, seen = groups.left_out, groups.seen
        lines = (line_of(group) for group in groups.of(folder))
    if isinstance(target, Path):
        with writing(target, folder) as stream:
            written = _write(lines, stream)
            if is_file(target):
                form.beside(target)
    else:
        written = _write(lines, target)
    others = {identity(kept.record): f"failed: {kept.record.get('error_kind')}" for kept in lines_of(folder.failed)}
    for kept in lines_of(folder.rejected):
        others[identity(kept.record)] = f"rejected: {kept.record.get('reject_reason')}"
    left_out.update(reason for row, reason in others.items() if row not in seen)
    return Exported(written, dict(left_out))


def _write(lines: Iterable[bytes], stream: BinaryIO) -> int:
    written = 0
    for line in lines:
        stream.write(line)
        written += 1
    return written


def _rows(
    folder: RunFolder, form: Form, left_out: Counter[str], seen: set[str], *, everything: bool
) -> Iterator[bytes]:
    for _path, _offset, line, record in kept_rows(folder):
        seen.add(identity(record))
        if not everything and not record.get("completed"):
            left_out[f"not completed: {record.get('stop_reason')}"] += 1
            continue
        try:
            rows = form.rows(record)
        except Unfit as reason:
            left_out[f"not told in this form: {reason}"] += 1
            continue
        yield from (line if row is record else line_of(row) for row in rows)

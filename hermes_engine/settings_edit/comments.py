"""Takes the comments beside keys out of a YAML text, and puts them back beside the same keys.

The library that keeps comments hangs a comment above a key on the value before it: with the last item of a list it
would go, and behind a new item it would stand. Knows no settings.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from hermes_engine.errors import ConfigError
from hermes_engine.settings.reading import KeyPath, YamlFile, parse_yaml


@dataclass(frozen=True, slots=True)
class Comments:
    """Whole lines that hold no value: comments and blank lines.

    Attributes:
        above: those right above a key; what stands above the first key stays in the text.
        below: those between a key and the first item of its list.
        end: those below the last value.
    """

    above: Mapping[KeyPath, str] = field(default_factory=dict)
    below: Mapping[KeyPath, str] = field(default_factory=dict)
    end: str = ""


def taken_out(text: str, file: YamlFile) -> tuple[str, Comments]:
    """The text without comments beside its keys, and these; the text as it is where that would change a value."""
    lines = text.splitlines(keepends=True)
    keys: dict[int, KeyPath] = {}
    for path, number in file.lines.items():
        keys.setdefault(number - 1, path)
    if not keys:
        return text, Comments()
    above: dict[KeyPath, str] = {}
    below: dict[KeyPath, str] = {}
    first = min(keys)
    kept = lines[: first + 1]
    full = [index for index in range(first, len(lines)) if lines[index].strip()[:1] not in ("", "#")]
    for before, here in itertools.pairwise(full):
        gap = lines[before + 1 : here]
        if gap and here in keys:
            above[keys[here]] = "".join(gap)
        elif gap and before in keys and lines[here].lstrip().startswith("-"):
            below[keys[before]] = "".join(gap)
        else:
            kept.extend(gap)
        kept.append(lines[here])
    bare = "".join(kept)
    try:
        same = parse_yaml(file.path, bare).values == file.values
    except ConfigError:
        same = False
    return (bare, Comments(above, below, "".join(lines[full[-1] + 1 :]))) if same else (text, Comments())


def put_back(text: str, file: YamlFile, old: YamlFile, comments: Comments) -> str:
    """A text with its comments again, each beside its key; those of a key that is gone stand above the next one.

    Args:
        text: what was written without them.
        file: the same, parsed.
        old: what they were taken from, parsed.
        comments: what was taken out.
    """
    lines = text.splitlines(keepends=True)
    before: dict[int, str] = defaultdict(str)
    homeless = ""
    for path in old.lines:
        above, below = comments.above.get(path, ""), comments.below.get(path, "")
        if path in file.lines:
            place = file.lines[path] - 1
            before[place] += homeless + above
            before[place + 1] += below
            homeless = ""
        else:
            homeless += above + below
    new = [number - 1 for path, number in file.lines.items() if len(path) == 1 and path not in old.lines]
    before[min(new, default=len(lines))] += homeless + comments.end
    newline = "\r\n" if "\r\n" in text else "\n"
    out = ""
    for index, line in enumerate([*lines, ""]):
        ended = not line or not before[index] or before[index].endswith("\n")
        out += before[index] + ("" if ended else newline) + line
    return out

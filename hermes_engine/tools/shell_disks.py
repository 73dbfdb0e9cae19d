"""Programs that empty a disk, move a home away or make a tree the same as another.

Pure functions from words to a finding; None = nothing of that kind, the tables have the say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from hermes_engine.tools.shell_danger import Finding, Grounds, Level, Words, has_option, targets_of
from hermes_engine.tools.shell_words import Word


def _zaps(words: Words) -> bool:
    return has_option(words, "Zzo", "zap", "zap-all", "clear")


def _erases(words: Words) -> bool:
    return any(re.match(r"--(?:security-erase|trim-sector|write-sector|make-bad-sector)", word.text) for word in words)


def _always(words: Words) -> bool:
    return True


_EMPTIES: Mapping[str, Callable[[Words], bool]] = {
    "wipefs": lambda words: has_option(words, "ao", "all", "offset"),
    "badblocks": lambda words: has_option(words, "w"),
    "sfdisk": lambda words: has_option(words, "", "delete"),
    "parted": lambda words: any(word.text in ("mklabel", "mktable", "rm") for word in words),
    "nvme": lambda words: any(word.text in ("format", "sanitize", "write-zeroes") for word in words[:1]),
    "sgdisk": _zaps,
    "hdparm": _erases,
    "blkdiscard": _always,
    "shred": _always,
}
"""How a program must be called to empty the disk it is given."""


def ended(name: str, words: Words, grounds: Grounds) -> Finding | None:
    """What a call does to disks and whole trees, None for nothing that shows here."""
    if name == "dd":
        return _copied(words, grounds)
    if name == "mv":
        return _moved(words, grounds)
    if name == "rsync":
        return _made_same(words, grounds)
    if name in _EMPTIES and _EMPTIES[name](words) and any(map(grounds.is_device, targets_of(words))):
        return Finding(Level.FORBIDDEN, "it empties a disk")
    return None


def _copied(words: Words, grounds: Grounds) -> Finding | None:
    targets = (Word(word.text[3:]) for word in words if word.text.startswith("of="))
    if any(map(grounds.is_device, targets)):
        return Finding(Level.FORBIDDEN, "it writes to a device itself")
    return None


def _moved(words: Words, grounds: Grounds) -> Finding | None:
    targets = targets_of(words)
    sources = targets if has_option(words, "t", "target-directory") else targets[:-1]
    if any(map(grounds.takes_all, sources)):
        return Finding(Level.RISKY, "it moves root or a home folder away")
    return None


def _made_same(words: Words, grounds: Grounds) -> Finding | None:
    targets = targets_of(words)
    if any(word.text.startswith("--del") for word in words) and any(map(grounds.takes_all, targets[-1:])):
        return Finding(Level.RISKY, "it deletes in root or a home folder what the source has not")
    if has_option(words, "", "remove-source-files") and any(map(grounds.takes_all, targets[:-1])):
        return Finding(Level.RISKY, "it moves root or a home folder away")
    return None

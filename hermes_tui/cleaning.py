"""Makes foreign text safe for a terminal: what a model, a tool or a file says must never act on the screen.

Pure functions over text. Knows no front end: printing and presenter both clean through here.
"""

from __future__ import annotations

import re

_STRING_BODY = r"[^\x00-\x08\x0a-\x1f\x7f-\x9f]*"
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f]){_STRING_BODY}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
"""Control sequences, operating-system commands and other strings with their payload, two-character escapes."""

_LINE_ENDS = re.compile(r"\r\n?|\x85|\x0b|\x0c")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What a reader cannot see: controls, zero-width and direction marks, invisible tags."""

_BLANKS = re.compile(r"\s+")


def clean(text: str) -> str:
    """The text without anything a terminal would obey; line feeds and tabs stay, other line ends become LF.

    Whole escape sequences go with their payload; lone control characters go by themselves; lone surrogates
    become U+FFFD, so that the text can always be encoded.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCE.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    text = _CONTROL.sub("", text)
    return _SURROGATE.sub("\ufffd", text)


def one_line(text: str, limit: int = 0) -> str:
    """The cleaned text on one line, runs of blanks joined; cut to `limit` characters with an ellipsis (0 = whole)."""
    line = _BLANKS.sub(" ", clean(text)).strip()
    if limit and len(line) > limit:
        return line[: max(0, limit - 1)].rstrip() + "…"
    return line


def escaped(text: str) -> str:
    r"""The text with everything invisible shown as an escape (`\x1b`, `\u202e`); line feeds and tabs stay.

    For what a person is asked to approve: nothing of it may be hidden.
    """
    return _HIDDEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

"""Makes foreign text harmless: for the model (no control codes, no chat tokens) and for people (nothing hidden).

Pure functions on text; knows nothing of tools or screens.
"""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\|\x9c)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_HIDDEN_CLASS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[{_HIDDEN_CLASS}]")
_UNSEEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_HIDDEN_CLASS}]")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_CHAT_TOKENS = re.compile(
    r"<([|｜][^|｜<>\s][^|｜<>\n]{0,60}[|｜])>"
    r"|<(/?(?:tool_call|tool_response|tools|start_of_turn|end_of_turn|bos|eos)|/s)>"
    r"|<(<?/?SYS>?)>"
    r"|\[(/?INST)\]"
)
_SHOWN_TOKENS = re.compile(
    r"‹([|｜][^|｜<>‹›\n]{1,62}[|｜]|/?(?:tool_call|tool_response|tools|start_of_turn|end_of_turn|bos|eos)|/s|<?/?SYS>?)›"
    r"|⁅(/?INST)⁆"
)


def plain(text: str) -> str:
    """Output as a terminal would leave it: escape sequences gone, only the last state of lines redrawn by `\\r`.

    Keeps newline and tab; every other control code goes; lone surrogates become U+FFFD.
    """
    if "\x1b" in text or "\x9b" in text or "\x9d" in text or "\x90" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(map(_last_state, text.split("\n")))
    if "\b" in text:
        text = "\n".join(map(_struck, text.split("\n")))
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))


def clean_for_model(text: str) -> str:
    """`plain`, and the mark-up of chat templates made harmless (`<|im_start|>` reads ‹|im_start|›).

    `restore_tokens` is the way back.
    """
    text = plain(text)
    if "<" in text or "[" in text:
        text = _CHAT_TOKENS.sub(_show_token, text)
    return text


def restore_tokens(text: str) -> str:
    """Undoes what `clean_for_model` did to chat tokens: the model quotes a file as it saw it."""
    if "‹" not in text and "⁅" not in text:
        return text
    return _SHOWN_TOKENS.sub(lambda match: f"<{match[1]}>" if match[1] else f"[{match[2]}]", text)


def visible(text: str) -> str:
    """Text in which nothing hides: control, zero-width and bidi characters stand as escapes (`\\u202e`).

    Newline and tab stay. For approvals, where a person must see exactly what will run.
    """
    return _UNSEEN.sub(_escape, text)


def printable(text: str) -> str:
    """Text fit for a screen: `plain`, and no character that changes the direction of its neighbours.

    Joiners within emoji and scripts stay.
    """
    return _BIDI.sub("", plain(text))


def one_line(text: str, limit: int = 200) -> str:
    """The text on one line of at most `limit` characters, nothing hidden in it."""
    joined = " ".join(_HIDDEN.sub("", plain(text)).split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def decode(data: bytes) -> str:
    """Bytes of unknown origin as text: UTF-8, what does not fit replaced."""
    return data.decode("utf-8", "replace")


def _last_state(line: str) -> str:
    if "\r" not in line:
        return line
    return next((state for state in reversed(line.split("\r")) if state), "")


def _struck(line: str) -> str:
    if "\b" not in line:
        return line
    kept: list[str] = []
    for char in line:
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return "".join(kept)


def _show_token(match: re.Match[str]) -> str:
    inner = match[1] or match[2] or match[3]
    return f"‹{inner}›" if inner else f"⁅{match[4]}⁆"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

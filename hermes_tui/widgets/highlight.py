"""Colours for code, found off the app's loop: a piece of code is drawn plain at once and coloured when its colours
are there. The lexers are imported by the first piece that asks, never before the first paint.

Knows no block: it is asked for spans and calls back when new ones exist.
"""

from __future__ import annotations

import asyncio
import functools
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

Span = tuple[int, int, str]
"""Start, end (characters of the code) and one of `look.SYNTAX_KINDS`."""

MAX_CODE = 60_000
"""Longer code stays plain: nobody reads it in colour and lexing it takes long."""

_KEEP = 400


class Highlighter:
    """Spans by code and language. All methods belong to the app's loop."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[Span, ...]] = OrderedDict()
        self._asked: set[tuple[str, str]] = set()
        self._executor: Executor | None = None
        self._ready: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Future[None]] = set()

    def start(self, executor: Executor, ready: Callable[[], None]) -> None:
        """From now on code is coloured in `executor`; `ready` is called on the loop when spans arrived."""
        self._executor, self._ready = executor, ready

    def stop(self) -> None:
        """The app ends: nothing is looked up any more."""
        self._executor, self._ready = None, lambda: None
        self._asked.clear()

    def spans(self, code: str, language: str) -> tuple[Span, ...]:
        """What is known now; () when nothing is, and then it is looked up."""
        key = (language, code)
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        if language and self._executor is not None and len(code) <= MAX_CODE and key not in self._asked:
            self._asked.add(key)
            task = asyncio.ensure_future(self._find(self._executor, key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return ()

    async def settled(self) -> None:
        """Returns when nothing is being looked up."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def _find(self, executor: Executor, key: tuple[str, str]) -> None:
        language, code = key
        try:
            found = await asyncio.get_running_loop().run_in_executor(executor, find_spans, code, language)
        except RuntimeError:
            # the pool was shut while this waited for its turn
            return
        self._asked.discard(key)
        self._known[key] = found
        while len(self._known) > _KEEP:
            self._known.popitem(last=False)
        if found:
            self._ready()


CODE = Highlighter()
"""The app's one highlighter."""


@functools.lru_cache(maxsize=64)
def _lexer(language: str) -> Any:
    """The lexer of a language, or None."""
    # pygments costs 25 ms to import and a lexer module up to 50: off the loop, after the first paint
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def find_spans(code: str, language: str) -> tuple[Span, ...]:
    """The coloured spans of the code, in order; () for a language nobody knows. Pure, for any thread."""
    lexer = _lexer(language.lower())
    if lexer is None:
        return ()
    spans: list[Span] = []
    for start, kind, value in lexer.get_tokens_unprocessed(code):
        name = _kind_of(str(kind))
        if name and value.strip():
            spans.append((start, start + len(value), name))
    return tuple(spans)


_KINDS = (
    ("Token.Keyword", "keyword"),
    ("Token.Operator.Word", "keyword"),
    ("Token.Literal.String", "string"),
    ("Token.Literal.Number", "number"),
    ("Token.Comment.Preproc", "name"),
    ("Token.Comment", "comment"),
    ("Token.Name.Function", "name"),
    ("Token.Name.Class", "name"),
    ("Token.Name.Decorator", "name"),
    ("Token.Name.Tag", "keyword"),
    ("Token.Name.Attribute", "name"),
)


@functools.lru_cache(maxsize=512)
def _kind_of(token: str) -> str:
    return next((kind for prefix, kind in _KINDS if token.startswith(prefix)), "")

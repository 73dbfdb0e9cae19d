"""What the demo model does next: reads the prompt for a few words, English or Spanish, and plays a small scene with
the tools on offer. Pure: request in, step out; the words themselves stand in `demo_texts`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hermes_engine.clients import demo_cards as cards
from hermes_engine.clients import demo_texts as texts
from hermes_engine.clients.demo_code import Snippet, snippet_for
from hermes_engine.errors import EndpointDown, KeyRefused, ProviderError, RateLimited, RequestRejected, ServerFault
from hermes_engine.messages import Message
from hermes_engine.protocols import ModelRequest

FILE_NAME = "hermes-demo.txt"
_SPANISH = re.compile(
    r"[¿¡ñáéíóú]|\b(el|la|los|las|una?|que|qué|de|del|en|por|para|con|hola|escribe|crea|haz|lista|archivos?|carpeta"
    r"|gracias|prueba|pruebas|ejecuta|función|hay)\b",
    re.IGNORECASE,
)
_ENGLISH = re.compile(
    r"\b(the|an?|is|are|of|to|in|for|with|what|how|write|create|list|files?|folder|hello|please|run|that|this)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"^([-dlbcps])[rwxsStT-]{9}\S*\s+\d+\s+\S+\s+\S+\s+(\S+)\s+\S+\s+\S+\s+\S+\s+(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """One reply: reasoning, words, and calls as (name, arguments)."""

    text: str
    reasoning: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the conversation stands.

    Attributes:
        prompt: what the person said last.
        words: texts in the person's language.
        round: how many steps with calls lie behind in this turn.
        results: texts of this turn's tool results with the tools' names, oldest first.
        tools: names on offer.
        dice: seeded by prompt and round.
    """

    prompt: str
    words: texts.Words
    round: int
    results: tuple[tuple[str, str], ...]
    tools: frozenset[str]
    dice: random.Random = field(repr=False)

    def offers(self, *names: str) -> bool:
        """Whether all these tools are on offer."""
        return self.tools.issuperset(names)

    def result(self, name: str) -> str:
        """The latest result of a tool in this turn, or ""."""
        return next((text for tool, text in reversed(self.results) if tool == name), "")


def next_step(request: ModelRequest, seed: int) -> Step:
    """The reply to a request. Raises the ProviderError that a prompt asks for."""
    scene = _scene(request.messages, request, seed)
    if plan := cards.planned(request.messages, _topic(scene.prompt), texts.LABEL, scene.words.cards):
        return Step(plan, scene.words.plan_thought)
    step = _played(scene)
    if scene.offers(cards.COMPLETE) and not step.calls:
        return Step(step.text, step.reasoning, (cards.ended(step.text, texts.LABEL),))
    labelled = any(texts.LABEL in message.content for message in request.messages if message.role == "assistant")
    if step.calls or labelled or scene.prompt.startswith(texts.SUMMARY_ASKED):
        return step
    return Step(f"_{texts.LABEL}_\n\n{step.text}", step.reasoning)


def spanish(text: str) -> bool:
    """Whether a text is rather Spanish than English."""
    return len(_SPANISH.findall(text)) > len(_ENGLISH.findall(text))


def _scene(messages: Sequence[Message], request: ModelRequest, seed: int) -> Scene:
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    prompt = cards.worked(messages) or (messages[last].content if last >= 0 else "")
    after = messages[last + 1 :]
    rounds = sum(1 for message in after if message.tool_calls)
    return Scene(
        prompt,
        texts.SPANISH if spanish(prompt) else texts.ENGLISH,
        rounds,
        tuple((message.name, message.content) for message in after if message.role == "tool"),
        frozenset(tool["function"]["name"] for tool in request.tools),
        random.Random(f"{seed}:{rounds}:{prompt}"),
    )


def _played(scene: Scene) -> Step:
    if scene.prompt.startswith(texts.SUMMARY_ASKED):
        return _summary(scene)
    for pattern, play in _SCENES:
        if pattern.search(scene.prompt) and (step := play(scene)) is not None:
            return step
    return Step(scene.words.plain.format(topic=_topic(scene.prompt)), scene.words.plain_thought)


def _topic(prompt: str) -> str:
    words = " ".join(prompt.split()[:8]).strip(" .:;?!¿¡#*`|_<>")
    return words[:60] or "Hermes"


def _fenced(text: str, lines: int = 12) -> str:
    """Text as a code block whose fence nothing in it closes."""
    ticks = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1
    return "`" * ticks + "\n" + "\n".join(text.strip().splitlines()[:lines]) + "\n" + "`" * ticks


def _error(scene: Scene) -> Step | None:
    asked = re.search(r"\d{3}", scene.prompt)
    status = int(asked[0]) if asked else 400
    kinds: dict[int, type[ProviderError]] = {401: KeyRefused, 429: RateLimited, 500: ServerFault, 503: EndpointDown}
    raise kinds.get(status, RequestRejected)(scene.words.error.format(status=status), status=status)


def _long(scene: Scene) -> Step | None:
    return Step(
        "\n\n".join(scene.words.plain.format(topic=f"{part}") for part in range(1, 13)), scene.words.plain_thought
    )


def _summary(scene: Scene) -> Step:
    said = re.findall(r"^(?:\[?user\]?|USER|User)\b[:\]]*\s*(.+)$", scene.prompt, re.MULTILINE)
    lines = "\n".join(f"- {line[:120]}" for line in said[:20])
    return Step(texts.SUMMARY.format(lines=lines or "- (nothing the demo model could read)"))


def _ask(scene: Scene) -> Step | None:
    if not scene.offers("clarify"):
        return None
    if scene.round == 0:
        question = {"question": scene.words.question, "choices": list(scene.words.choices)}
        return Step("", scene.words.plain_thought, (("clarify", question),))
    return Step(scene.words.said.format(result=_fenced(scene.result("clarify"))))


def _plan(scene: Scene) -> Step | None:
    if not scene.offers("todo"):
        return None
    if scene.round < 2:
        states = ("active", "open", "open") if scene.round == 0 else ("done", "active", "open")
        items = [{"text": text, "state": state} for text, state in zip(scene.words.steps, states, strict=True)]
        return Step("", scene.words.plan_thought, (("todo", {"items": items}),))
    return Step(scene.words.planned.format(result=_fenced(scene.result("todo"))))


def _spawn(scene: Scene) -> Step | None:
    if scene.round == 0:
        agents = [{"prompt": prompt} for prompt in scene.words.errands]
        if scene.offers("spawn_parallel"):
            return Step("", scene.words.spawn_thought, (("spawn_parallel", {"agents": agents}),))
        if scene.offers("spawn_agent"):
            return Step("", scene.words.spawn_thought, tuple(("spawn_agent", agent) for agent in agents))
        return None
    return Step(scene.words.spawned.format(result="\n".join(_reports(text) for _, text in scene.results)))


def _reports(text: str) -> str:
    """What each agent answered, a line each; the text itself where it is no result of theirs."""
    try:
        entries = json.loads(text)["results"]
        return "\n".join(f"- {entry['status']}: {_first_words(entry['answer'] or entry['error'])}" for entry in entries)
    except (ValueError, TypeError, KeyError):
        return _fenced(text, 30)


def _first_words(answer: str) -> str:
    lines = [line.strip("# ") for line in answer.splitlines() if line.strip() and not line.startswith("_demo")]
    return " ".join(" ".join(lines[:3]).split())[:160]


def _code(scene: Scene) -> Step | None:
    snippet = snippet_for(scene.prompt)
    if scene.round == 0:
        calls = _code_calls(scene, snippet)
        if calls:
            return Step(scene.words.code_before, scene.words.code_thought.format(name=snippet.name), calls)
    block = f"```python\n{snippet.source}\n```"
    if not scene.results:
        return Step(scene.words.code_untried.format(block=block), scene.words.code_thought.format(name=snippet.name))
    output = _fenced("\n".join(text.strip() for _, text in scene.results), 20)
    answer = scene.words.code_after.format(block=block, name=snippet.name, output=output)
    return Step(answer, scene.words.result_thought)


def _code_calls(scene: Scene, snippet: Snippet) -> tuple[tuple[str, dict[str, Any]], ...]:
    program = f"{snippet.source}\n\n{snippet.trial}"
    if scene.offers("terminal"):
        run = ("terminal", {"command": f"python3 - <<'PY'\n{program}\nPY"})
        return (run, ("terminal", {"command": "python3 --version"})) if scene.dice.random() < 0.25 else (run,)
    if scene.offers("write_file"):
        return (("write_file", {"path": f"{snippet.name}.py", "content": program + "\n"}),)
    return ()


def _write(scene: Scene) -> Step | None:
    if not scene.offers("write_file"):
        return None
    if scene.round == 0:
        content = scene.words.file_content.format(topic=_topic(scene.prompt))
        call = ("write_file", {"path": FILE_NAME, "content": content})
        return Step(scene.words.write_before.format(name=FILE_NAME), scene.words.write_thought, (call,))
    return Step(scene.words.written.format(name=FILE_NAME, result=_fenced(scene.result("write_file"))))


def _run(scene: Scene) -> Step | None:
    if not scene.offers("terminal"):
        return None
    if scene.round == 0:
        slow = re.search(r"slow|lent[oa]|sleep|long", scene.prompt, re.IGNORECASE)
        command = texts.SLOW_COMMAND if slow else texts.CHECK_COMMAND
        return Step(scene.words.run_before, scene.words.run_thought, (("terminal", {"command": command}),))
    return Step(scene.words.ran.format(result=_fenced(scene.result("terminal"))), scene.words.result_thought)


def _files(scene: Scene) -> Step | None:
    if scene.round == 0:
        return _look(scene)
    found = _LISTED.findall(scene.result("terminal"))
    entries = [(kind, name) for kind, _, name in found if name not in (".", "..")]
    if not found:
        lines = scene.result("search_files").splitlines()
        entries = [("-", line) for line in lines if line.strip() and not line.startswith("[")]
    readme = min((name for _, name in entries if name.lower().startswith("readme")), key=len, default="")
    if scene.round == 1 and readme and scene.offers("read_file") and scene.dice.random() < 0.5:
        return Step("", scene.words.read_thought.format(name=readme), (("read_file", {"path": readme}),))
    if not entries and not found:
        return Step(scene.words.said.format(result=_fenced("\n".join(text for _, text in scene.results))))
    folders = sum(kind == "d" for kind, _ in entries)
    shown = "\n".join(f"- `{name}{'/' if kind == 'd' else ''}`" for kind, name in entries[:20])
    more = scene.words.more.format(count=len(entries) - 20) if len(entries) > 20 else ""
    read = scene.result("read_file")
    peek = scene.words.peek.format(name=readme, text=_fenced(read, 6)) if read and readme else ""
    text = scene.words.listed.format(
        count=len(entries), files=len(entries) - folders, folders=folders, shown=shown + more, peek=peek
    )
    return Step(text.strip(), scene.words.result_thought)


def _look(scene: Scene) -> Step | None:
    calls: list[tuple[str, dict[str, Any]]] = []
    if scene.offers("terminal"):
        calls.append(("terminal", {"command": "ls -la"}))
    if scene.offers("search_files") and (not calls or scene.dice.random() < 0.25):
        calls.append(("search_files", {"pattern": "*"}))
    return Step(scene.words.look_before, scene.words.look_thought, tuple(calls)) if calls else None


def _greet(scene: Scene) -> Step | None:
    return Step(scene.words.greeting, scene.words.plain_thought) if len(scene.prompt) < 40 else None


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


_SCENES: tuple[tuple[re.Pattern[str], Callable[[Scene], Step | None]], ...] = (
    (re.compile(r"^\s*demo:\s*error", re.IGNORECASE), _error),
    (re.compile(r"^\s*demo:\s*long", re.IGNORECASE), _long),
    (_words(r"demo:\s*(ask|pregunta)|ask me|pregúntame"), _ask),
    (_words(r"sub-?agents?|subagentes?|spawn|in parallel|en paralelo|delegate|delega"), _spawn),
    (_words(r"functions?|script|program|class|algorithm|regex|python|funci[óo]n|programa|clase|algoritmo"), _code),
    (_words(r"plan|to-?do|steps|pasos|planifica|planea"), _plan),
    (_words(r"edit|write|create|save|add|escribe|crea|edita|guarda|añade|haz"), _write),
    (_words(r"run|execute|tests?|slow|build|ejecuta|corre|pruebas?|lent[oa]"), _run),
    (_words(r"files?|folders?|director(?:y|ies)|list|ls|archivos?|ficheros?|carpetas?|directorios?|lista"), _files),
    (_words(r"hello|hi|hey|hola|buenas|thanks|gracias"), _greet),
)

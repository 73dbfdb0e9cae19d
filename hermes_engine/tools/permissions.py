"""May this call run? The one place that decides: mode, rules, what the call does, and the person's answer.

Modes, from the tightest: `plan` (nothing that changes anything), `ask` (reading runs, the rest asks), `edits`
(edits in the working folder run too), `auto` (all but what is risky), `yolo` (all but the fixed list). A child
is never freer than what started it. Knows the broker, not who answers.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hermes_engine.cleaning import one_line, visible
from hermes_engine.errors import ConfigError, ToolFault
from hermes_engine.events import Emitter
from hermes_engine.messages import ToolStatus
from hermes_engine.requests import Answer, Approval, Broker
from hermes_engine.settings.values import Mode
from hermes_engine.tools.registry import Tool
from hermes_engine.tools.rules import Rule, parse_rule, parse_rules
from hermes_engine.tools.shell_rules import Part, judge
from hermes_engine.tools.web_address import host_of
from hermes_engine.tools.workspace import Workspace

ORDER: tuple[Mode, ...] = ("plan", "ask", "edits", "auto", "yolo")
"""Modes from the tightest to the freest."""

Need = Literal["nothing", "edit", "change", "risk", "never"]
"""What a call needs: nothing; a yes unless edits run; a yes in ask and edits; a yes in auto too; it never runs."""

_OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_NAMED_HOST = re.compile(
    r"https?://(?:[^\s/@]*@)?([^\s/:?#)>\]\"']+)|\b((?:[a-z0-9-]+\.)+(?:com|org|net|edu|gov|info|io|dev|app|ai|eu|uk|de|fr|es|it"
    r"|nl|ch|at|br|jp|cn|local|lan|internal|test|example|invalid))\b",
    re.IGNORECASE,
)
"""A host after a scheme, or a bare one with an ending that is no file's: `main.py` and `README.md` name no host."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a call may run; if not, `text` is its result for the model and `status` the result's."""

    allowed: bool
    text: str = ""
    status: ToolStatus = "denied"


@dataclass(frozen=True, slots=True)
class Demand:
    """What one call needs, and why.

    Attributes:
        need: see Need.
        title: one line: what wants to run.
        detail: makes the whole of it; only called when a person is asked.
        reason: why it needs a yes.
        rules: texts of the rules a remembered yes would add; () = only once.
        taints: it will read text from the net.
        remedy: how the settings can let it run where nobody can answer; "" for no way of its own.
    """

    need: Need
    title: str = ""
    detail: Callable[[], str] = str
    reason: str = ""
    rules: tuple[str, ...] = ()
    taints: bool = False
    remedy: str = ""


class Trust:
    """What a whole tree of agents has read and been told: foreign text taints, a person's words name hosts, and what
    they allow for the session holds for all who work in the same folder.
    """

    def __init__(self) -> None:
        self.tainted = False
        self.hosts: set[str] = set()
        self.allowed: dict[Path, list[Rule]] = {}

    def person_said(self, text: str) -> None:
        """A person wrote this: the hosts in it are named."""
        self.hosts |= {(match[1] or match[2]).lower().rstrip(".,;") for match in _NAMED_HOST.finditer(text)}

    def knows(self, host: str) -> bool:
        """Whether a person named the host, or one above it."""
        return any(host == named or host.endswith("." + named) for named in self.hosts)


class Gate:
    """The permissions of one agent.

    Args:
        mode: see the module.
        broker: through which the person is asked.
        workspace: the agent's place.
        allow, deny: rules, see `tools.rules`.
        on_always: is told each rule the person wants kept for good.
        trust: shared with the agents around; a new one by default.
        known: names of tools in no toolset that rules may name too.

    Raises:
        ConfigError: a rule cannot be read or names no tool.
    """

    def __init__(
        self,
        mode: Mode | str,
        broker: Broker,
        workspace: Workspace,
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        on_always: Callable[[str], None] | None = None,
        trust: Trust | None = None,
        above: Gate | None = None,
        known: Sequence[str] = (),
    ) -> None:
        self.broker, self.workspace = broker, workspace
        self._mode = _checked(mode)
        self._allow, self._deny = parse_rules(allow, also=known), parse_rules(deny, also=known)
        self._texts, self._known = (tuple(allow), tuple(deny)), known
        self._on_always = on_always
        self._above = above
        self.trust = trust or Trust()
        self._one_at_a_time = asyncio.Lock()

    @property
    def mode(self) -> Mode:
        """The mode in effect: its own, or the tighter one of what started it."""
        above = self._above.mode if self._above else "yolo"
        return min(self._mode, above, key=ORDER.index)

    @mode.setter
    def mode(self, mode: Mode | str) -> None:
        self._mode = _checked(mode)

    def set_mode(self, mode: Mode | str) -> None:
        """Changes the mode, also while a call waits: that one keeps waiting. Raises ConfigError."""
        self.mode = mode

    def child(self, mode: Mode | str, workspace: Workspace | None = None, *, deny: Sequence[str] = ()) -> Gate:
        """The gate of an agent that this one starts: never freer, with the same rules.

        `deny`: rules of its own settings, which may only take away.
        """
        allow, denied = self._texts
        return Gate(
            mode,
            self.broker,
            workspace or self.workspace,
            allow=allow,
            deny=tuple(dict.fromkeys([*denied, *deny])),
            on_always=self._on_always,
            trust=self.trust,
            above=self,
            known=self._known,
        )

    def note_taint(self, source: str = "") -> None:
        """The agent has read text that nobody here wrote."""
        self.trust.tainted = True

    def person_said(self, text: str) -> None:
        """The person wrote this; hosts in it may be fetched from then on."""
        self.trust.person_said(text)

    async def check(
        self, tool: Tool, arguments: Mapping[str, Any], emit: Emitter, call_id: str, *, hide: Callable[[str], str] = str
    ) -> Verdict:
        """Decides about a call, asking the person where the mode says so.

        Args:
            tool: which.
            arguments: checked ones.
            emit: of the run.
            call_id: of the call.
            hide: takes secrets out of what an approval shows.
        """
        demand = self._decide(tool, arguments)
        if isinstance(demand, Verdict):
            return demand
        async with self._one_at_a_time:
            demand = self._decide(tool, arguments)  # an answer given meanwhile may cover this one too
            if isinstance(demand, Verdict):
                return demand
            try:
                detail = demand.detail()
            except ToolFault as error:
                return Verdict(False, str(error), "error")
            rule = hide(" and ".join(demand.rules))
            title, detail = visible(hide(demand.title)), visible(hide(detail))
            request = Approval(call_id, tool.name, title, detail, demand.reason, rule)
            alike = (self.trust, self.workspace.start, demand.rules) if demand.rules else None
            return self._answered(await self.broker.ask(request, emit, alike), demand)

    def _decide(self, tool: Tool, arguments: Mapping[str, Any]) -> Verdict | Demand:
        try:
            demand, denied, allowed = self._weigh(tool, arguments)
        except ToolFault as error:
            return Verdict(False, str(error), "error")
        if demand.need == "never":
            return Verdict(False, f"refused in every mode: {demand.reason}")
        if denied:
            return Verdict(False, f"refused by the rule {denied}")
        mode = self.mode
        if demand.need == "nothing" and (mode != "plan" or tool.effect != "board"):
            return self._let(demand)
        if mode == "plan" and tool.effect != "fetch":
            why = f"in plan mode nothing that changes anything runs ({demand.reason})"
            return Verdict(False, f"not run: {why}; only read, and tell the plan")
        return self._let(demand) if allowed or _mode_allows(mode, demand.need) else demand

    def _let(self, demand: Demand) -> Verdict:
        if demand.taints:
            self.note_taint()
        return Verdict(True)

    def _answered(self, answer: Answer, demand: Demand) -> Verdict:
        if answer.yes:
            if answer.choice in ("session", "always"):
                here = self.trust.allowed.setdefault(self.workspace.start, [])
                here += [rule for rule in map(parse_rule, demand.rules) if rule not in here]
            if answer.choice == "always" and self._on_always:
                for rule in demand.rules:
                    self._on_always(rule)
            return self._let(demand)
        if not answer.answered:
            return Verdict(False, f"not run: {demand.reason}; it needs a yes, and {answer.note}{demand.remedy}")
        said = f", saying: {answer.note}" if answer.note.strip() else ""
        return Verdict(False, f"the user refused this{said}. Do not try the same another way; ask or go on without it")

    def _weigh(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Demand, str, bool]:
        """What the call needs, the rule that denies it ("" for none), whether a rule allows it."""
        if tool.effect == "command":
            return self._weigh_command(arguments)
        if tool.effect == "edit":
            return self._weigh_edit(tool, arguments)
        if tool.effect == "fetch":
            return self._weigh_fetch(arguments)
        denied = self._named(self._deny, tool.name)
        if tool.effect in ("none", "board"):
            return Demand("nothing", reason="it changes the board"), denied, True
        title = f"{tool.verb} {tool.titled(arguments)}".strip()
        demand = Demand(
            "change",
            one_line(title),
            self._preview(tool, arguments, title),
            f"{tool.name} changes something",
            (tool.name,),
        )
        return demand, denied, bool(self._named(self._allowing, tool.name))

    def _weigh_command(self, arguments: Mapping[str, Any]) -> tuple[Demand, str, bool]:
        command, place = str(arguments.get("command", "")), self.workspace
        folder = place.resolve(arguments["cwd"]) if arguments.get("cwd") else place.here
        verdict = judge(command, folder, place.protected, start=place.start)
        needs: dict[str, Need] = {"read_only": "nothing", "plain": "change", "risky": "risk", "forbidden": "never"}
        need, reason = needs[verdict.kind], verdict.reason
        foreign = [host for host in verdict.hosts if host not in _OWN_HOSTS]
        if need != "never" and self.trust.tainted and not all(map(self.trust.knows, foreign)):
            reason = "it reaches a host that no person named, after text from the web was read"
            return Demand("risk", one_line(command, 300), lambda: command, reason), "", False
        where = "" if folder == place.start else f"\nin {folder}"
        rules = tuple(f"terminal({rule})" for rule in verdict.rules) if not verdict.writes else ()
        demand = Demand(need, one_line(command, 300), lambda: command + where, reason, rules, bool(foreign))
        return demand, self._denied_part(verdict.programs), self._covered(verdict.parts, verdict.writes, folder)

    def _weigh_edit(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Demand, str, bool]:
        place = self.workspace
        target = place.writable(str(arguments.get("path", "")))
        shown = place.shown(target)
        rules = [rule for rule in self._deny if rule.covers_tool(tool.name)]
        denied = next((_text(rule) for rule in rules if rule.covers_file(target, place.start, place.user_home)), "")
        risk = place.protected.risk(target, place.start)
        inside = place.inside(target)
        need: Need = "risk" if risk else "edit" if inside else "change"
        reason = risk or ("it changes a file" if inside else "it changes a file outside the working folder")
        kept = f"edit({shown})" if risk else "edit(**)" if inside else f"edit({target.parent}/**)"
        allowed = any(rule.covers_file(target, place.start, place.user_home) for rule in self._allowing)
        if risk:
            allowed = any(rule.pattern in (shown, str(target)) for rule in self._allowing if rule.tool == "edit")
        detail = self._preview(tool, arguments, shown)
        return Demand(need, f"{tool.verb} {one_line(shown)}", detail, reason, (kept,)), denied, allowed

    def _preview(self, tool: Tool, arguments: Mapping[str, Any], title: str) -> Callable[[], str]:
        preview = tool.preview
        return (lambda: f"{title}\n{preview(self.workspace, arguments)}") if preview else (lambda: title)

    def _weigh_fetch(self, arguments: Mapping[str, Any]) -> tuple[Demand, str, bool]:
        url = str(arguments.get("url", ""))
        host = host_of(url)
        denied = next((_text(rule) for rule in self._deny if rule.covers_host(host)), "")
        if not self.trust.tainted or self.trust.knows(host):
            return Demand("nothing"), denied, True
        reason = f"no person named {host or 'this host'}, and text from the web was read before"
        rules = (f"web_fetch({host})",) if host else ()
        named = f"[web_fetch] for every host or [web_fetch({host})] for this one" if host else "[web_fetch]"
        remedy = f". The settings let it run without one by approvals.allow: {named}"
        demand = Demand("risk", f"Fetch {one_line(url)}", lambda: url, reason, rules, remedy=remedy)
        return demand, denied, any(rule.covers_host(host) for rule in self._allowing)

    @property
    def _allowing(self) -> list[Rule]:
        return [*self._allow, *self.trust.allowed.get(self.workspace.start, ())]

    def _covered(self, parts: Sequence[Part], writes: Sequence[str], folder: Path) -> bool:
        if not parts:
            return False
        for text in writes:
            target = self.workspace.resolve(str(folder / text)) if "\0" not in text else None
            place = self.workspace
            if target is None or place.protected.risk(target, place.start):
                return False
            if not any(rule.covers_file(target, place.start, place.user_home) for rule in self._allowing):
                return False
        return all(any(rule.covers_part(part) for rule in self._allowing) for part in parts if part.words)

    def _denied_part(self, parts: Sequence[Part]) -> str:
        for rule in self._deny:
            if any(rule.covers_part(part, deny=True) for part in parts if part.words):
                return _text(rule)
        return ""

    @staticmethod
    def _named(rules: Sequence[Rule], name: str) -> str:
        return next((_text(rule) for rule in rules if rule.tool == name and not rule.pattern), "")


def _mode_allows(mode: Mode, need: Need) -> bool:
    if mode == "yolo":
        return need != "never"
    if mode == "auto":
        return need in ("edit", "change")
    return mode == "edits" and need == "edit"


def _text(rule: Rule) -> str:
    return f"{rule.tool}({rule.pattern})" if rule.pattern else rule.tool


def _checked(mode: str) -> Mode:
    for known in ORDER:
        if mode == known:
            return known
    raise ConfigError(f"unknown mode {mode!r}; valid: {', '.join(ORDER)}")

"""The plain values that headers, bars and the sidebar are drawn from. Pure data; no engine, no widget."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentFact:
    """One agent as the sidebar shows it.

    Attributes:
        sign: needs | running | good | bad | waiting | stopped.
        activity: what it does now, or what it asks.
        seconds: since it started, or how long it took.
        quiet: seconds since something came from it or from those below it, 0 while that is recent.
        tokens: its own and those of agents below it which have ended; None when nobody knows.
        cost: dollars; None when nobody knows.
        depth: how far it stands below the first of its tree that is shown.
        beside: it belongs to a background task.
        over: it has ended, and so have all below it.
        needs: id of the request it waits on, or "".
        steps, tools: replies of the model and calls of tools so far.
    """

    id: str
    name: str
    title: str = ""
    sign: str = "running"
    activity: str = ""
    seconds: float = 0.0
    quiet: float = 0.0
    tokens: int | None = None
    cost: float | None = None
    depth: int = 0
    beside: bool = False
    over: bool = False
    needs: str = ""
    steps: int = 0
    tools: int = 0


@dataclass(frozen=True, slots=True)
class TailFact:
    """A piece of what an agent did last; `kind` is prompt | text | tool | fault, `call` the id of a tool's call."""

    kind: str
    text: str
    call: str = ""


@dataclass(frozen=True, slots=True)
class BatchFact:
    """One batch run; the counts add up to `total`."""

    name: str
    state: str = "running"
    total: int = 0
    kept: int = 0
    rejected: int = 0
    failed: int = 0
    invalid: int = 0
    pending: int = 0
    seconds_left: float | None = None
    reason: str = ""

    @property
    def at_work(self) -> bool:
        """Whether it goes on, or will when it is no longer paused."""
        return self.state in ("running", "paused")

    @property
    def settled(self) -> int:
        """Rows that will not run again by themselves."""
        return self.total - self.pending

    @property
    def percent(self) -> int:
        """How much is settled, 0 to 100."""
        return 100 * self.settled // self.total if self.total else 0


@dataclass(frozen=True, slots=True)
class ContextFact:
    """How full the model's context is; `window` 0 when its size is unknown."""

    tokens: int = 0
    window: int = 0
    estimated: bool = False

    @property
    def percent(self) -> int | None:
        """Fullness, or None when the size is unknown."""
        return min(100, 100 * self.tokens // self.window) if self.window else None


@dataclass(frozen=True, slots=True)
class UsageFact:
    """What this chat has used; `agents` is the part of other agents than the chat's own."""

    tokens: int = 0
    tokens_known: bool = True
    cost: float = 0.0
    cost_known: bool = True
    agents_cost: float = 0.0
    cap: float | None = None


@dataclass(frozen=True, slots=True)
class StepFact:
    """A step of the chat's plan; `state` is open | active | done."""

    text: str
    state: str = "open"


@dataclass(frozen=True, slots=True)
class AskFact:
    """The request that is next to be answered. `read` is whether its end was on the screen."""

    asker: str
    title: str
    more: int = 0
    digits: str = ""
    question: bool = False


@dataclass(frozen=True, slots=True)
class BoardFact:
    """A board in short: cards at work, those that need the person, those to be judged; `cards` are id, sign (running |
    needs) and title of the first two kinds.
    """

    slug: str
    running: int = 0
    needs: int = 0
    review: int = 0
    open: int = 0
    cards: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class WorkFacts:
    """Everything the bars and the sidebar show of the work that goes on."""

    agents: tuple[AgentFact, ...] = ()
    batches: tuple[BatchFact, ...] = ()
    context: ContextFact = ContextFact()
    usage: UsageFact = UsageFact()
    ask: AskFact | None = None
    needs: int = 0
    plan: tuple[StepFact, ...] = ()
    board: BoardFact | None = None
    """The board that was opened or is worked here."""
    everywhere: int = 0
    """How many agents of whatever chat have not come to their end."""

    @property
    def at_work(self) -> int:
        """How many agents have not come to their end, shown in the sidebar or not."""
        return max(self.everywhere, sum(agent.sign in ("needs", "running", "waiting") for agent in self.agents))

    @property
    def batch_percent(self) -> int | None:
        """How much of the runs at work is settled, all together; None when none is."""
        runs = [batch for batch in self.batches if batch.at_work]
        total = sum(batch.total for batch in runs)
        settled = sum(batch.settled for batch in runs)
        return (100 * settled // total if total else 0) if runs else None

    def count(self, *signs: str, beside: bool | None = None) -> int:
        """How many agents have one of these signs; of background tasks only, or of others only."""
        return sum(agent.sign in signs for agent in self.agents if beside is None or agent.beside is beside)


@dataclass(frozen=True, slots=True)
class PlaceFacts:
    """Where the person is and what they talk to."""

    title: str = ""
    folder: str = ""
    branch: str = ""
    model: str = ""
    mode: str = "ask"
    profile: str = ""
    busy: bool = False
    state: str = ""
    """What the model does now while busy: "thinking", "Run pytest", …"""
    seconds: float = 0.0
    escape: str = ""
    """What Esc does now, "" for nothing."""
    writing: bool = True
    """Whether Enter is for the draft, not for a list, a question or what is marked."""
    hint: str = ""
    """A passing remark that takes the place of the key hints."""
    unseen: int = 0
    screens: tuple[str, ...] = ("chat",)
    """Screens there are, by name, in the order of their numbers."""

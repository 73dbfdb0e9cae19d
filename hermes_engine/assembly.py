"""The only place where settings become working agents: client, tools, permissions, prompt and loop joined.

Knows every part below it and no one above: sessions, batch runs and whatever else starts agents come here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_engine.agent.ask import RetryRules, WaitOut
from hermes_engine.agent.context import Context
from hermes_engine.agent.loop import Agent
from hermes_engine.agent.prompt import system_prompt
from hermes_engine.clients import make_client
from hermes_engine.clients.probing import probed
from hermes_engine.clients.replicas import ReplicaClient, Replicas
from hermes_engine.errors import EndpointDown, SandboxFault
from hermes_engine.events import Event, Sink
from hermes_engine.messages import Message
from hermes_engine.paths import user_home
from hermes_engine.profiles import Resolved
from hermes_engine.protocols import AgentSpec, Box, Client, Job, Journal, Limits, Sandbox
from hermes_engine.redaction import Redactor
from hermes_engine.requests import ASKS, Broker
from hermes_engine.sandbox.boxed import boxed_env
from hermes_engine.sandbox.choosing import make_box
from hermes_engine.sandbox.container import ContainerLimits, Dock
from hermes_engine.sandbox.environment import command_env
from hermes_engine.sandbox.local import LocalSandbox
from hermes_engine.settings import Endpoint
from hermes_engine.tools.context import ToolLimits
from hermes_engine.tools.permissions import Gate
from hermes_engine.tools.pool import in_thread
from hermes_engine.tools.protected import Protected
from hermes_engine.tools.registry import Tool
from hermes_engine.tools.toolbox import build_toolbox
from hermes_engine.tools.workspace import Workspace
from hermes_engine.toolsets import expand, tools_of
from hermes_engine.work.delegation import Delegation
from hermes_engine.work.maker import Hands, KeepsNothing
from hermes_engine.work.supervisor import Supervisor

Around = Callable[[Client], Client]
"""Makes a client that does something besides out of one that asks: keeps what was said, waits its turn."""

BOUND = ("delegation", "kanban", "session_search")
"""Sets whose tools are made for the agent that has them: see `Assembly.extra_tools`."""


class Clients:
    """The clients of one event loop, one for each endpoint and key."""

    def __init__(
        self,
        resolved: Resolved,
        *,
        pool_limit: int = 128,
        seed: int = 0,
        paced: bool = True,
        around: Around | None = None,
        replicas: Replicas | None = None,
    ) -> None:
        """Args:
        resolved: settings in effect.
        pool_limit: connections at once.
        seed: of the embedded model.
        paced: whether the embedded model speaks at a person's pace.
        around: puts something around each client made.
        replicas: servers that stand for one another: a client of one is a client of all.
        """
        self._resolved, self._pool_limit, self._seed, self._paced = resolved, pool_limit, seed, paced
        self._around, self._replicas = around, replicas
        self._clients: dict[tuple[str, str, str | None], Client] = {}

    def of(self, endpoint: Endpoint) -> Client:
        """The client of an endpoint, made at the first call."""
        key = (endpoint.kind, endpoint.base_url, endpoint.api_key)
        if key not in self._clients:
            several = self._replicas
            client = (
                ReplicaClient(several, self._made)
                if several is not None and endpoint in several
                else self._made(endpoint)
            )
            self._clients[key] = self._around(client) if self._around else client
        return self._clients[key]

    def _made(self, endpoint: Endpoint) -> Client:
        provider = self._resolved.settings.provider
        return make_client(endpoint, provider, pool_limit=self._pool_limit, seed=self._seed, paced=self._paced)

    def on_profile(self, resolved: Resolved) -> Clients:
        """Clients of the same kind for other settings."""
        return Clients(
            resolved,
            pool_limit=self._pool_limit,
            seed=self._seed,
            paced=self._paced,
            around=self._around,
            replicas=self._replicas,
        )

    async def close(self) -> None:
        """Closes all of them."""
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(client.close() for client in clients), return_exceptions=True)


class Assembly:
    """Builds agents for one loop from one set of settings. `extra_tools` gives an agent those bound to it."""

    def __init__(
        self,
        resolved: Resolved,
        broker: Broker,
        *,
        clients: Clients | None = None,
        on_always: Callable[[str], None] | None = None,
        deltas: bool = True,
        wait_out: WaitOut | None = None,
    ) -> None:
        self.resolved, self.broker = resolved, broker
        self.clients = clients or Clients(resolved)
        self.redactor = Redactor(resolved.secrets)
        self.own_mode, self.own_model = resolved.profile_mode, resolved.profile_model
        self.extra_tools: Callable[[AgentSpec, str], Sequence[Tool]] = _no_tools
        self._others: dict[tuple[str, bool], Assembly] = {}
        self._kept_for_others = (on_always, deltas, wait_out)
        self._on_always = on_always
        self._command_env = command_env(os.environ, pass_env=resolved.settings.terminal.pass_env)
        self.protected = Protected(resolved.home, user_home())
        batch = resolved.settings.batch
        limits = ContainerLimits(batch.container_memory, batch.container_pids, batch.container_read_only)
        self.dock = Dock(batch.container_command, limits, resolved.home.root / "containers")
        provider = resolved.settings.provider
        self.rules = RetryRules(
            tries=provider.max_retries + 1,
            named_wait_cap=provider.retry_after_cap_seconds,
            deltas=deltas,
            wait_out=wait_out,
        )

    def spec(self, *, name: str, cwd: Path, kind: str = "chat", mode: str | None = None) -> AgentSpec:
        """The spec that the settings describe."""
        settings = self.resolved.settings
        return AgentSpec(
            name=name,
            kind=kind,
            model=settings.model,
            profile=self.resolved.profile,
            toolsets=expand(settings.toolsets),
            cwd=cwd,
            mode=mode or self.resolved.mode_for(self.broker.attended),
            limits=Limits(max_turns=settings.limits.max_turns, max_cost_usd=settings.limits.max_cost_usd),
            extra_body=settings.provider.extra_body,
            reasoning_effort=settings.provider.reasoning_effort,
        )

    def hands(
        self,
        spec: AgentSpec,
        agent: str,
        *,
        above: Gate | None = None,
        on_job_end: Callable[[Job], None] | None = None,
    ) -> Hands:
        """What a new agent acts with.

        Args:
            spec: of the agent.
            agent: its id.
            above: gate of the one that started it; its own is never freer.
            on_job_end: hears of each background command's end.
        """
        settings, home = self.resolved.settings, self.resolved.home
        user_home = spec.env.get("HOME")
        protected = self.protected.within(Path(user_home)) if user_home else self.protected
        box: Box | None = above.workspace.box if above is not None else None
        owner = box is None
        if box is None and spec.confined is not None:
            box = make_box(spec.confined, boxed_env(os.environ, settings.terminal.pass_env), self.dock)
        outputs = box.outputs if box else home.outputs
        workspace = Workspace(spec.cwd, home, outputs=outputs, env=spec.env, protected=protected, box=box)
        sandbox: Sandbox
        if box is not None:
            sandbox = box.sandbox(agent, redactor=self.redactor, on_job_end=on_job_end, owner=owner)
        else:
            sandbox = LocalSandbox(
                agent=agent, outputs=outputs, redactor=self.redactor, env=self._command_env, on_job_end=on_job_end
            )
        if above is not None:
            return Hands(workspace, sandbox, above.child(spec.mode, workspace, deny=settings.approvals.deny))
        gate = Gate(
            spec.mode,
            self.broker,
            workspace,
            allow=settings.approvals.allow,
            deny=settings.approvals.deny,
            on_always=self._on_always,
        )
        return Hands(workspace, sandbox, gate)

    async def on_profile(self, name: str, *, worker: bool = False) -> Assembly:
        """The assembly of another profile's agents, for the same people and loop; its secrets are hidden here too.

        `worker`: of a board, see `Resolved.with_profile`.

        Raises:
            UnknownName, ConfigError: no such profile, or its files are wrong.
        """
        if name == self.resolved.profile:
            return self
        key = (name, worker)
        if key not in self._others:
            resolved = await in_thread(lambda: self.resolved.with_profile(name, worker=worker))
            on_always, deltas, wait_out = self._kept_for_others
            clients = self.clients.on_profile(resolved)
            other = Assembly(
                resolved, self.broker, clients=clients, on_always=on_always, deltas=deltas, wait_out=wait_out
            )
            for secret in resolved.secrets:
                self.redactor.add(secret)
            other.redactor = self.redactor
            other.extra_tools, other.dock = self.extra_tools, self.dock
            self._others.setdefault(key, other)  # another may have asked for it meanwhile
        return self._others[key]

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        """Asks the model for one token; the error when nobody answers. Any other refusal is an answer."""
        endpoint = self.resolved.endpoint_for(spec.model or None)
        return await probed(self.clients.of(endpoint), endpoint.model, spec.sampling, spec.extra_body)

    async def close(self) -> None:
        """Closes every client."""
        await asyncio.gather(self.clients.close(), *(other.close() for other in self._others.values()))

    def instructions(self, spec: AgentSpec) -> str:
        """The system message of an agent, "" for none."""
        if spec.system_prompt is not None:
            return spec.system_prompt
        return system_prompt(soul=self.resolved.soul, cwd=spec.cwd if spec.in_folder else None, role=spec.role)

    async def build(
        self,
        spec: AgentSpec,
        *,
        agent: str,
        history: Sequence[Message] = (),
        journal: Journal | None = None,
        hands: Hands | None = None,
    ) -> Agent:
        """A working agent.

        Raises:
            ConfigError: no model can be asked.
            UsageError: an unknown toolset or model.
        """
        settings = self.resolved.settings
        endpoint = self.resolved.endpoint_for(spec.model or None)
        client = self.clients.of(endpoint)
        hands = hands or self.hands(spec, agent)
        extra = self.extra_tools(spec, agent)
        bound = frozenset(tools_of(BOUND)) - {tool.name for tool in extra}
        toolbox = build_toolbox(
            [name for name in tools_of(spec.toolsets) if name not in bound],
            agent=agent,
            workspace=hands.workspace,
            sandbox=hands.sandbox,
            gate=hands.gate,
            redactor=self.redactor,
            extra=extra,
            limits=ToolLimits(settings.terminal.timeout_seconds, settings.web),
        )
        text = self.instructions(spec)
        conversation = [message for message in history if message.role != "system"]
        return Agent(
            spec,
            client,
            toolbox,
            Context(client, endpoint.model),
            model=endpoint.model,
            messages=[Message("system", text), *conversation] if text else conversation,
            rules=self.rules,
            journal=journal,
        )


def _no_tools(spec: AgentSpec, agent: str) -> Sequence[Tool]:
    return ()


class RowAgents:
    """Builds the agents of a batch run's rows: one client for all, nobody to ask, no deltas.

    Args:
        resolved: settings in effect.
        pool_limit: connections at once; at least the rows in flight.
        seed: of the embedded model.
        wait_out: called while the endpoint is down, see `agent.ask`.
        deltas: whether pieces of replies are emitted.
        around, replicas: see `Clients`.
        broker: through which rows ask a person; None: nobody can answer.
        asks: hears what children of rows ask.
    """

    def __init__(
        self,
        resolved: Resolved,
        *,
        pool_limit: int,
        seed: int = 0,
        wait_out: WaitOut | None = None,
        deltas: bool = False,
        around: Around | None = None,
        replicas: Replicas | None = None,
        broker: Broker | None = None,
        asks: Sink | None = None,
    ) -> None:
        self.clients = Clients(
            resolved, pool_limit=pool_limit, seed=seed, paced=False, around=around, replicas=replicas
        )
        self._asks = asks or _unheard
        broker = broker or Broker(attended=False)
        self._assembly = Assembly(resolved, broker, clients=self.clients, deltas=deltas, wait_out=wait_out)
        self._supervisor = Supervisor(_unheard)
        self._assembly.extra_tools = Delegation(
            self._supervisor,
            self._assembly,
            KeepsNothing(),
            self._hear_child,
            resolved.settings.delegation,
            {},
        ).tools
        self.redactor = self._assembly.redactor

    def _hear_child(self, event: Event) -> None:
        self._supervisor.observe(event)
        if isinstance(event, ASKS):
            self._asks(event)

    async def build(self, spec: AgentSpec, *, history: Sequence[Message] = (), prompt: str = "") -> Agent:
        """A row's agent; hosts in `prompt` count as named by a person. Raises as `Assembly.build` does.

        Raises:
            SandboxFault: what the row's commands are to be closed in cannot be had.
        """
        await self._assembly.dock.sweep()
        self._check_folders(spec)
        hands = self._assembly.hands(spec, spec.name)
        hands.gate.trust.person_said(prompt)
        try:
            if hands.workspace.box is not None and spec.confined is not None and spec.confined.kind == "container":
                await hands.workspace.box.open()
            return await self._assembly.build(spec, agent=spec.name, history=history, hands=hands)
        except BaseException:
            await hands.sandbox.close()
            raise

    def _check_folders(self, spec: AgentSpec) -> None:
        """Raises SandboxFault for a folder that would open more than it should: rows name it, and rows are foreign."""
        if spec.confined is None:
            return
        for folder in spec.confined.folders[1:]:
            real = Path(os.path.realpath(folder))
            reason = self._assembly.protected.against_opening(real)
            if any(real.is_relative_to(os.path.realpath(path)) for path in spec.confined.hidden):
                reason = "it holds the run's own files"
            if reason:
                raise SandboxFault(f"its cwd {folder} is not opened to a sandbox: {reason}")

    def instructions(self, spec: AgentSpec) -> str:
        """The system message that rows of this spec get, "" for none."""
        return self._assembly.instructions(spec)

    async def probe(self, spec: AgentSpec) -> EndpointDown | None:
        """See `Assembly.probe`."""
        return await self._assembly.probe(spec)

    async def close(self) -> None:
        """Ends what rows have left and closes the client."""
        await self._supervisor.close(1.0)
        await self._assembly.dock.close()
        await self._assembly.close()


def _unheard(event: Event) -> None:
    """Children of rows are shown nowhere: their row is."""

"""The page of a report: one HTML file that asks nobody for anything, its texts escaped, its one script known by hash.

A trajectory is foreign text: nothing of it is ever mark-up here. Without the script everything can still be read.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping
from typing import Any

from hermes_engine.batch.job import Record
from hermes_engine.batch.report import Told
from hermes_engine.batch.report_plots import Bar, bars, histogram
from hermes_engine.batch.statistics import stated_and_drawn
from hermes_engine.cleaning import one_line, printable

LONGEST = 20_000
"""Characters of one text that are shown."""

_END = 5_000
"""So many of them are its last: an answer stands behind its thought."""

PAGE_CHARACTERS = 30_000_000
"""From so many on, conversations of further rows are left out."""

_PROMPT = 110
_MOST_COLUMNS = 12

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--dim:#646a73;--line:#d9dce1;--back:#fff;--card:#f6f7f9;
--plain:#4a7bd0;--good:#2f8f5b;--bad:#c8453b;--warn:#b97a0a;--faint:#aab4c4}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--dim:#9aa1ab;--line:#353a42;--back:#16181c;--card:#1e2126;
--plain:#6c9cf0;--good:#4fbf83;--bad:#ef7a70;--warn:#e0a83c;--faint:#5b6472}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1080px;padding:24px;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}h1{margin:0;font-size:26px}h2{margin:32px 0 12px;font-size:18px}
h3{margin:0 0 8px;font-size:14px;color:var(--dim);font-weight:600}.dim{color:var(--dim)}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px;margin-top:16px}
.tile,.plot{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px}
.tile b{display:block;font-size:20px;overflow-wrap:anywhere}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(490px,100%),1fr));gap:12px}
svg{max-width:100%;height:auto}svg text{fill:var(--ink);font-size:12px}svg .name{text-anchor:end}
svg .mid{text-anchor:middle;font-size:11px}.plain{fill:var(--plain)}.good{fill:var(--good)}.bad{fill:var(--bad)}
.warn{fill:var(--warn)}.faint{fill:var(--faint)}table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid var(--line);padding:4px 8px;text-align:left;vertical-align:top;overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:4px 0;font:13px/1.45 ui-monospace,monospace}
.bar{display:flex;gap:8px;flex-wrap:wrap;margin-bottom:12px}input,select{font:inherit;padding:6px 10px;color:inherit;
background:var(--card);border:1px solid var(--line);border-radius:6px}input{flex:1;min-width:220px}
.row{border:1px solid var(--line);border-radius:8px;margin:6px 0}.row>summary{cursor:pointer;padding:8px 12px;
overflow:hidden;white-space:nowrap;text-overflow:ellipsis}.row>div{padding:0 12px 12px}
.is{display:inline-block;min-width:68px;font-weight:600}.is.kept{color:var(--good)}.is.rejected{color:var(--warn)}
.is.failed{color:var(--bad)}.turn{border-left:3px solid var(--line);padding:2px 12px;margin:8px 0}
.turn.gpt{border-color:var(--plain)}.turn.human{border-color:var(--good)}[hidden]{display:none}
"""

_SCRIPT = """
const rows=[...document.querySelectorAll('.row')],find=document.getElementById('find'),
pick=document.getElementById('pick'),shown=document.getElementById('shown');
const sift=()=>{const words=find.value.toLowerCase().split(/\\s+/).filter(Boolean);let n=0;
for(const row of rows){const text=row.textContent.toLowerCase();
row.hidden=!((pick.value===''||row.dataset.outcome===pick.value)&&words.every(w=>text.includes(w)));
n+=!row.hidden}shown.textContent=n+' shown'};
find.addEventListener('input',sift);pick.addEventListener('change',sift);sift();
"""


def page(told: Told) -> str:
    """The whole page."""
    run, figures = told.run, told.run.statistics
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    state = " · ".join(part for part in (run.state, run.reason, str(figures.get("updated_at", ""))) if part)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">
<title>{_h(run.name)} – batch run</title><style>{_STYLE}</style></head><body>
<h1>{_h(run.name)}</h1><div class="dim">{_h(state)}</div>
<div class="tiles">{_tiles(told)}</div>
<h2>Figures</h2><div class="plots">{"".join(_plots(told))}</div>
<h2>Settings</h2>{_settings(run.settings)}
<h2>Trajectories</h2>{_browser(told)}
<script>{_SCRIPT}</script></body></html>
"""


def _h(text: object) -> str:
    """Foreign text as what it is: mark-up escaped, control codes and direction marks gone."""
    return html.escape(printable(str(text)))


def _tiles(told: Told) -> str:
    figures = told.run.statistics
    rows, spent = told.run.rows, figures.get("spent", {})
    settled = sum(rows.get(name, 0) for name in ("kept", "rejected", "failed"))
    reasoning = figures.get("reasoning", {}).get("coverage")
    at_least = "" if spent.get("tokens_known", True) else "≥ "
    times = figures.get("times", {}).get("rows", {})
    tiles = {
        "rows": f"{rows.get('total', 0):,}",
        "kept": _of(rows.get("kept", 0), settled),
        "completed": _of(figures.get("completed", 0), rows.get("kept", 0)),
        "pending": f"{rows.get('pending', 0):,}" if rows.get("pending") else "",
        "model": told.run.settings.get("options", {}).get("model", ""),
        "tokens": f"{at_least}{spent.get('total_tokens', 0):,}",
        "cost": f"${spent.get('cost_usd', 0):.4f}" if spent.get("cost_known") else "not told",
        "time": f"{figures.get('duration_seconds', 0):,.0f} s",
        "rows a minute": f"{figures.get('throughput', {}).get('rows_per_minute', 0):g}",
        "a row, p50 / p90": f"{times['p50']:g} / {times['p90']:g} s" if times else "",
        "turns with reasoning": f"{reasoning:.1%}" if isinstance(reasoning, float) else "",
        "retries": f"{figures.get('retries', 0):,}",
    }
    return "".join(
        f'<div class="tile"><span class="dim">{name}</span><b>{_h(text)}</b></div>'
        for name, text in tiles.items()
        if text
    )


def _of(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})" if whole else f"{part:,}"


def _plots(told: Told) -> Iterable[str]:
    figures, rows = told.run.statistics, told.run.rows
    kinds = {"kept": "good", "rejected": "warn", "failed": "bad", "invalid": "faint", "pending": "plain"}
    yield _plot("Outcomes", _counted({name: rows.get(name, 0) for name in kinds}, kinds))
    yield _plot("Turns of the model in a row (kept and rejected)", histogram(_by_turns(told.turns)))
    times = figures.get("times", {}).get("rows", {}).get("histogram", [])
    if times:
        columns = [(f"{'>' if last is None else '≤'}{first:g}", number) for first, last, number in _edges(times)]
        yield _plot("Seconds a row took (last invocation)", histogram(columns))
    used = {name: item for name, item in figures.get("tools", {}).items() if item["count"]}
    if used:
        yield _plot("Tool calls: succeeded and failed", bars([_calls(name, item) for name, item in used.items()]))
    for title, name, kind in (("Rejected", "rejects", "warn"), ("Failed", "failures", "bad")):
        if figures.get(name):
            yield _plot(f"{title}, by reason", _counted(figures[name], dict.fromkeys(figures[name], kind)))
    drawn = stated_and_drawn(told.run.settings.get("toolset_odds", {}), figures)
    if drawn:
        lines = [
            bar
            for name, stated, share in drawn
            for bar in (
                Bar(name, [("faint", stated)], f"{stated:.0%} stated"),
                Bar("", [("plain", share)], f"{share:.1%} drawn"),
            )
        ]
        yield _plot("Toolsets: stated and drawn", bars(lines, longest=1.0))


def _calls(name: str, item: Mapping[str, int]) -> Bar:
    return Bar(name, [("good", item["success"]), ("bad", item["failure"])], _of(item["success"], item["count"]))


def _plot(title: str, drawing: str) -> str:
    return f'<div class="plot"><h3>{html.escape(title)}</h3>{drawing}</div>'


def _counted(numbers: Mapping[str, int], kinds: Mapping[str, str]) -> str:
    whole = sum(numbers.values())
    return bars([Bar(name, [(kinds[name], number)], _of(number, whole)) for name, number in numbers.items() if number])


def _by_turns(turns: Mapping[int, int]) -> list[tuple[str, int]]:
    """A column for each number of turns; of several where there would be too many."""
    if not turns:
        return []
    first, last = min(turns), max(turns)
    wide = -(-(last - first + 1) // _MOST_COLUMNS)
    columns = []
    for start in range(first, last + 1, wide):
        end = start + wide - 1
        name = str(start) if wide == 1 else f"{start}–{end}"
        columns.append((name, sum(turns.get(number, 0) for number in range(start, end + 1))))
    return columns


def _edges(columns: Iterable[Any]) -> Iterable[tuple[float, float | None, int]]:
    """Each column's edge as it is named: its upper one, and for the last, which has none, the one before."""
    before = 0.0
    for upper, number in columns:
        yield (before if upper is None else upper), upper, number
        before = upper if upper is not None else before


def _settings(settings: Mapping[str, Any]) -> str:
    told = {
        **settings.get("options", {}),
        "endpoint": settings.get("endpoint", {}).get("base_url"),
        "dataset": settings.get("dataset", {}).get("sha256"),
        "sandbox": settings.get("sandbox", {}).get("kind"),
        "hermes": settings.get("hermes"),
    }
    lines = "".join(
        f"<tr><td>{_h(name)}</td><td>{_h(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}"
        "</td></tr>"
        for name, value in told.items()
        if value not in (None, "", [], {}, False)
    )
    names = ", ".join(schema["function"].get("name", "") for schema in settings.get("tools", []))
    prompt = _text(str(settings.get("system_prompt") or ""))
    return (
        f"<table>{lines}<tr><td>tools</td><td>{_h(names)}</td></tr></table>"
        f"<details><summary>System prompt</summary><pre>{prompt}</pre></details>"
    )


def _browser(told: Told) -> str:
    rows: list[str] = []
    size = 0
    for outcome, record in told.rows:
        row = _row(outcome, record)
        size += len(row)
        if size > PAGE_CHARACTERS:
            break
        rows.append(row)
    whole = sum(told.found.values())
    said = f"All {whole:,} rows that ended are here."
    if len(rows) < whole:
        said = f"{len(rows):,} of the {whole:,} rows that ended are here, the first of each outcome."
    return f"""<p class="dim">{said} <span id="shown"></span></p>
<div class="bar"><input id="find" type="search" placeholder="Search in all texts" aria-label="Search">
<select id="pick" aria-label="Outcome"><option value="">all outcomes</option><option>kept</option>
<option>rejected</option><option>failed</option></select></div>
{"".join(rows)}"""


def _row(outcome: str, record: Record) -> str:
    prompt = next((turn["value"] for turn in record["conversations"] if turn["from"] == "human"), "")
    reason = str(record.get("reject_reason") or record.get("error_kind") or record.get("stop_reason") or "")
    why = str(record.get("reject_detail") or record.get("reason") or "")
    usage = record.get("usage", {})
    facts = {
        "ended": f"{reason}: {why}" if why else reason,
        "model": record.get("metadata", {}).get("model"),
        "toolsets": ", ".join(record.get("toolsets_used", [])),
        "tokens": usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0),
        "attempts": record.get("attempts"),
        "row": record.get("metadata", {}).get("row_id"),
        "extra": str(record.get("metadata", {}).get("extra") or "").removeprefix("{}"),
    }
    told = " · ".join(f"{name}: {one_line(str(value), 300)}" for name, value in facts.items() if value)
    number = f"{record.get('prompt_index')}" + (f".{record['sample']}" if record.get("sample") else "")
    turns = "".join(map(_turn, record["conversations"]))
    return (
        f'<details class="row" data-outcome="{outcome}"><summary><span class="is {outcome}">{outcome}</span> '
        f'{_h(number)} · {_h(one_line(prompt, _PROMPT))} <span class="dim">{_h(reason)}</span></summary>'
        f'<div><p class="dim">{_h(told)}</p>{turns}</div></details>'
    )


def _turn(turn: Mapping[str, Any]) -> str:
    who = turn["from"] if turn["from"] in ("system", "human", "gpt", "tool") else "other"
    calls = "".join(
        f"<pre>→ {_h(call['name'])} {_text(json.dumps(call['arguments'], ensure_ascii=False, indent=1))}</pre>"
        for call in turn.get("tool_calls", ())
    )
    return f'<div class="turn {who}"><span class="dim">{who}</span><pre>{_text(turn["value"])}</pre>{calls}</div>'


def _text(text: str) -> str:
    if len(text) <= LONGEST:
        return _h(text)
    left_out = f"\n… {len(text) - LONGEST:,} more characters …\n"
    return f"{_h(text[: LONGEST - _END])}{left_out}{_h(text[-_END:])}"

"""The batch screen while a run comes to its end."""

from __future__ import annotations

from pathlib import Path

from hermes_tui.screens.batch.trace import TraceScreen
from tests.conftest import Serve
from tests.server.scripted import say
from tests.tui.live import live, settings
from tests.tui.test_batch import begin, by_prompt, run_screen


async def test_a_row_in_flight_is_looked_at_while_its_run_ends(serve: Serve, tmp_path: Path) -> None:
    """What is in flight when a cap is reached is finished: several minutes, in which it can be looked at."""
    slow, later = (say("Well done.", "I think.", first_delay=seconds) for seconds in (4, 1))
    dear = say("Dear.", "hm", usage={"prompt_tokens": 900})
    server = serve(by_prompt({"slow": slow, "later": later, "dear": dear}))
    async with live(settings(server), tmp_path, width=100) as app:
        rows = ["slow one", "later", "dear", "never"]
        await begin(app, rows, tmp_path, flags="--num_workers 3 --max_total_tokens 500")
        screen = run_screen(app)
        await app.until(lambda: sum(row.state == "kept" for row in screen.rows) == 2)
        assert "▲ the token cap is reached" in app.screen, "rows that are kept meanwhile do not end that"
        (row,) = (row for row in screen.rows if row.live)
        app.app.push_screen(TraceScreen(screen, row))
        await app.shows("▌ slow one")
        await app.shows("Well done.", 20)
        assert "Nothing was kept" not in app.screen
        await app.until(lambda: not screen.model.at_work)
        await app.pilot.press("escape", "p")
        name = screen.model.name
        await app.shows(f"{name} has reached its cap — /batch --resume --max_total_tokens …")
        assert not app.desk.engine.runs.names  # type: ignore[union-attr]

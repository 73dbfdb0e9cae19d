"""Keys of the plain shell's line editor; `commands.keys` describes them."""

from __future__ import annotations

from prompt_toolkit.filters import Condition, completion_is_selected, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from hermes_tui.repl.shell import Shell


def bindings(shell: Shell) -> KeyBindings:
    """What the keys do beyond the editor's own."""
    keys = KeyBindings()
    _sending(keys, shell)
    _stopping(keys, shell)
    _choosing(keys, shell)
    return keys


def _sending(keys: KeyBindings, shell: Shell) -> None:
    @keys.add("enter", filter=~is_searching & ~completion_is_selected)
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("enter", filter=completion_is_selected)
    def _take_completion(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("c-j")
    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-s", filter=~is_searching)
    def _steer(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text
        if text.strip():
            buffer.reset(append_to_history=True)
            shell.steer(text)


def _stopping(keys: KeyBindings, shell: Shell) -> None:
    busy = Condition(lambda: shell.busy)

    @keys.add("escape", filter=has_completions & ~is_searching)
    def _close_menu(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("escape", filter=busy & ~has_completions & ~is_searching)
    def _stop(event: KeyPressEvent) -> None:
        shell.stop()

    @keys.add("c-c", filter=~is_searching)
    @keys.add("<sigint>")
    def _interrupt(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text and not shell.busy:
            buffer.reset(append_to_history=True)
        else:
            shell.interrupt()

    @keys.add("c-d")
    def _delete_or_leave(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text:
            buffer.delete()
        else:
            shell.ask_quit()


def _choosing(keys: KeyBindings, shell: Shell) -> None:
    queued = Condition(lambda: bool(shell.engine.queued(shell.session)))

    @keys.add("s-tab", filter=~has_completions)
    def _mode(event: KeyPressEvent) -> None:
        shell.next_mode()

    @keys.add("up", filter=queued & ~has_completions)
    def _take_back(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text:
            buffer.auto_up()
        else:
            buffer.insert_text(shell.take_back())

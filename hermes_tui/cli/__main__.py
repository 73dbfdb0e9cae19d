"""`python -m hermes_tui.cli` is `hermes`."""

from hermes_tui.cli import main

main()

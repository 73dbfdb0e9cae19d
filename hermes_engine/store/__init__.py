"""Sessions, agents, orders and recordings in one SQLite file (`state.db`)."""

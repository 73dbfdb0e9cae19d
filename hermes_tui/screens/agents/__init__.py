"""The agents: `screen` lists all of them, `agent` shows one. Loaded when first asked for."""

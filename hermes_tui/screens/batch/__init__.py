"""Batch runs: `runs` lists them, `run` shows one, `trace` one row of it. Loaded when first asked for."""

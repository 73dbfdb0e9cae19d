"""The cases, one module each: `run(rounds) -> figures`. None knows another."""

"""The cases, one module each: `run(rounds)` gives its figures, each as soon as it is known. None knows another."""

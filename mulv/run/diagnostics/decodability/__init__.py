"""How long a window must be to decode what a task hides: data, regressions, R², a recommended length."""

"""How long a window decodes what a task hides: data, windows, regressions, R², and a recommended length."""

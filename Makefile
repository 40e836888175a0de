# make demo    train an agent on a pendulum whose speed is hidden, with memory and without
# make test    linters, types, import contract, unit tests (under 5 minutes on two cores)
# make test-slow   learning runs and long fault injection
# make bench-speed / make bench-learning   the figures in results/ (need the `peers` extra: installed here)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PEERS := $(VENV)/.peers

.PHONY: demo test test-slow lint bench-speed bench-learning clean

DEMO := runs/demo
demo: $(INSTALLED)
	rm -rf $(DEMO)
	$(BIN)/mulv train --total-steps 10000 --out $(DEMO)/memory
	@echo; echo "The same agent without memory: its window is the present observation alone."
	$(BIN)/mulv train --total-steps 10000 --window 1 --out $(DEMO)/no-memory
	@echo
	$(BIN)/mulv compare $(DEMO)/memory/Pendulum-P/mulv/seed-0 $(DEMO)/no-memory/Pendulum-P/mulv/seed-0 --out $(DEMO)/comparison.png

test: lint
	$(BIN)/pytest -n 2 --dist loadfile

test-slow: $(INSTALLED)
	$(BIN)/pytest -m slow

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-speed: $(PEERS)
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/frames.py
	$(BIN)/python benchmarks/belief.py
	$(BIN)/python benchmarks/solver.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/vmap_seeds.py

LEARNING := pendulum-memory first-steps positions-30k ablations-20k
bench-learning: $(INSTALLED)
	for suite in $(LEARNING); do $(BIN)/mulv bench $$suite --out results || exit 1; done

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mulv needs Python 3.11 or newer; say which with: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(PEERS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[peers]'
	@touch $@

clean:
	rm -rf $(VENV) .cache

# `make bench` measures side by side what docs/benchmarks.md states; see there for sizes and settings.
.PHONY: bench bench-sums bench-export bench-facts bench-months bench-night bench-power bench-promql bench-quota bench-state bench-page

bench: $(VENV)/.installed-dev servers ## One table: each part beside what it is held against, also in docs/benchmarks.md (an hour; not part of test)
	@$(PY) -m bench.table

bench-export: $(VENV)/.installed-dev servers
	@$(PY) -m bench.export

bench-facts: $(VENV)/.installed-dev
	@$(PY) -m bench.facts

bench-sums: $(VENV)/.installed-dev
	@$(PY) -m bench.sums

bench-power: $(VENV)/.installed-dev
	@$(PY) -m bench.power

bench-promql: $(VENV)/.installed-dev servers
	@$(PY) -m bench.promql

bench-state: $(VENV)/.installed-dev
	@$(PY) -m bench.state

bench-page: $(VENV)/.installed-dev browser demo
	@$(PY) -m bench.page

bench-night: $(VENV)/.installed-dev
	@$(PY) -m bench.night

bench-quota: $(VENV)/.installed-dev
	@$(PY) -m bench.quota
	@$(PY) -m bench.kueue

bench-months: $(VENV)/.installed-dev
	@$(PY) -m bench.months

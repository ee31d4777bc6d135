# `make bench` measures side by side what docs/benchmarks.md states; see there for sizes and settings.
.PHONY: bench bench-engines bench-export bench-facts bench-power bench-promql bench-state bench-page

bench: bench-export bench-facts bench-power bench-promql bench-state bench-page bench-engines ## Measure against curl, plain scans and PromQL (minutes; not part of test)

bench-export: $(VENV)/.installed-dev servers
	@$(PY) -m bench.export

bench-facts: $(VENV)/.installed-dev
	@$(PY) -m bench.facts

bench-power: $(VENV)/.installed-dev
	@$(PY) -m bench.power

bench-promql: $(VENV)/.installed-dev servers
	@$(PY) -m bench.promql

bench-state: $(VENV)/.installed-dev
	@$(PY) -m bench.state

bench-page: $(VENV)/.installed-dev browser demo
	@$(PY) -m bench.page

bench-engines: $(VENV)/.installed-dev
	@$(PY) -m bench.engines

# A Chromium for the tests of the page: the machine's own, else one unpacked from Debian packages without root.
BROWSER := .cache/browser

.PHONY: browser screenshots

browser: ## Unpack a headless Chromium into .cache/browser where the machine has none
	@sh tests/fetch-browser.sh $(BROWSER)

screenshots: $(VENV)/.installed-dev browser ## Pictures of the demo's two reports into out/screenshots: three widths, light and dark, print (minutes)
	@$(VENV)/bin/gpureport demo --simulated --out out/demo
	@$(VENV)/bin/gpureport demo --out out/demo-h200
	@$(PY) tests/screenshots.py --out out/screenshots out/demo out/demo-h200

# A Chromium for the tests of the page: the machine's own, else one unpacked from Debian packages without root.
BROWSER := .cache/browser

.PHONY: browser

browser: ## Unpack a headless Chromium into .cache/browser where the machine has none
	@sh tests/fetch-browser.sh $(BROWSER)

# Real servers for the tests, without root; nothing happens when they are there.
SERVERS := .cache/servers

.PHONY: servers

servers: $(VENV)/.installed ## Prometheus 2 and 3, Pushgateway, VictoriaMetrics and storage servers into .cache/servers
	@sh tests/fetch-servers.sh $(SERVERS)
	@sh tests/install-s3-servers.sh $(PY) $(SERVERS)/s3

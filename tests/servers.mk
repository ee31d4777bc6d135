# Real servers for the tests, unpacked from Debian packages without root; nothing happens when they are there.
SERVERS := .cache/servers

.PHONY: servers

servers: ## Unpack Prometheus 2 and 3, its Pushgateway and VictoriaMetrics into .cache/servers
	@sh tests/fetch-servers.sh $(SERVERS)

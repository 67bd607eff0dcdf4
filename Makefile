# The real cluster that the embedded one is measured with (docs/real-cluster.md), and the measurement (docs/fidelity.md).
# Everyday work needs none of it: see scripts/test and scripts/check.

PYTHON ?= $(firstword $(wildcard $(or $(SREARENA_VENV),.venv)/bin/python) python3)

.PHONY: real-cluster real-cluster-down parity-record parity conformance

real-cluster: ## build what is missing and start a real Kubernetes on this machine
	$(PYTHON) -m tests.real_cluster up

real-cluster-down: ## stop it and leave nothing behind
	$(PYTHON) -m tests.real_cluster down

parity-record: ## play all scenarios on the running real cluster and keep what it says
	$(PYTHON) -m tests.parity record

parity: ## play all scenarios on an embedded cluster and compare
	$(PYTHON) -m tests.parity table

conformance: ## run Kubernetes' own conformance tests on embedded clusters
	$(PYTHON) -m tests.conformance run

# Targets that build, check and try fleetctl. `make help` lists them. Each can be run alone on a fresh clone.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables

GO ?= go
# The folder outside of the clone in which these targets keep tools, programs, images and the offline bundle.
FLEETCTL_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/fleetctl
XDG_CACHE_HOME ?=

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
# The commit's own date, so that the same commit gives the same bytes.
DATE ?= $(shell git log -1 --format=%cI 2>/dev/null)
VERSION_PACKAGE := github.com/fleetctl/fleetctl/pkg/version
LDFLAGS := -s -w -X $(VERSION_PACKAGE).version=$(VERSION) -X $(VERSION_PACKAGE).commit=$(COMMIT) -X $(VERSION_PACKAGE).date=$(DATE)
BUILD_FLAGS := -trimpath -buildvcs=false -ldflags '$(LDFLAGS)'

# Extra flags for go test, for example: make test TESTFLAGS='-race -run TestLock'
TESTFLAGS ?=
FUZZTIME ?= 20s

# The program of scripts/offline. It is built without this clone's path, so that Go's cache serves other clones, too, and without C, as
# the other programs, so that it shares their compiled packages.
OFFLINE_BUILD := CGO_ENABLED=0 $(GO) -C scripts/offline run -trimpath -buildvcs=false . build
OFFLINE := $(FLEETCTL_CACHE_DIR)/offline
PROGRAMS := $(OFFLINE)/programs
BUNDLE := $(OFFLINE)/bundle
EMBEDDED_BUNDLE := $(OFFLINE)/bundle-embedded
# The image for nodes of a workload cluster that becomes a management cluster. It includes the controllers' images.
E2E_NODE_IMAGE ?= docker.io/kindest/node:v1.36.3-fleetctl

##@ Build

.PHONY: build
build: ## Build bin/fleetctl; the same commit gives the same bytes
	CGO_ENABLED=0 $(GO) build $(BUILD_FLAGS) -o bin/fleetctl ./cmd/fleetctl

.PHONY: install
install: ## Build fleetctl and put it where go install puts programs
	CGO_ENABLED=0 $(GO) install $(BUILD_FLAGS) ./cmd/fleetctl

.PHONY: platforms
platforms: ## Type-check fleetctl for the other systems that it is released for; `make release-snapshot` compiles it for them
	$(GO) run ./scripts/platforms darwin windows

.PHONY: docs
docs: ## Write docs/reference and the schema of fleet.yaml anew, and the charts' READMEs from their schemas
	$(GO) generate ./pkg/api/v1alpha1
	rm -f docs/reference/fleetctl*.md
	$(GO) run ./scripts/gendocs docs/reference
	$(GO) run ./scripts/genreadme templates/charts

.PHONY: bundle
bundle: ## Build the offline bundle from Go modules alone; seconds when nothing changed
	$(OFFLINE_BUILD)

.PHONY: bundle-embedded
bundle-embedded: ## Build the part of the bundle that an embedded host takes: no node images, no root, no container engine
	$(OFFLINE_BUILD) -only bundle -out "$(EMBEDDED_BUNDLE)"

.PHONY: gitea
gitea: ## Build Gitea, which the end-to-end tests of pull requests run; needs a C compiler
	$(OFFLINE_BUILD) -only gitea

.PHONY: bundle-path
bundle-path: ## Print where the offline bundle is
	@echo "$(BUNDLE)"

.PHONY: bundle-embedded-path
bundle-embedded-path: ## Print where the bundle for embedded hosts is
	@echo "$(EMBEDDED_BUNDLE)"

##@ Check

.PHONY: lint
lint: ## Layering, style and correctness (golangci-lint), shell scripts, workflows
	scripts/lint.sh

.PHONY: fmt
fmt: ## Format the Go files the way lint wants them
	scripts/tool.sh golangci-lint fmt ./...

# Programs and tests are built without C. So a machine without a C compiler builds the same, and tests share the packages that `make
# build` has compiled. Only -race needs C.
GO_TEST := $(if $(filter -race,$(TESTFLAGS)),,env CGO_ENABLED=0 )scripts/gotest.sh

# For benchmarks, and for tests that run alone.
PLAIN_TEST := env CGO_ENABLED=0 $(GO) test -trimpath

# The tests of scripts/offline also read go.mod of this module, and Go's cache of test results does not see a file of another module change.
.PHONY: test
test: ## Unit and command tests: no network, no container engine, no root
	$(GO_TEST) . -trimpath -timeout 25m $(TESTFLAGS) ./...
	$(GO_TEST) scripts/offline -trimpath -count=1 -timeout 15m $(TESTFLAGS) ./...

# Only the tests in files with the tag, because `make test` runs all others; and all tests of a package in which other files have a part
# that stands in for one with the tag. The slowest package is first. More packages run at a time than there are processors, because these
# tests mostly wait.
INTEGRATION_FILES = $(shell grep -rl '^//go:build integration' --include='*_test.go' cmd/fleetctl pkg templates examples)
WITHOUT_INTEGRATION = $(dir $(shell grep -rl '^//go:build !integration' --include='*_test.go' cmd/fleetctl pkg templates examples))
INTEGRATION_PACKAGES = ./pkg/host/embedded/runner $(addprefix ./,$(sort $(dir $(INTEGRATION_FILES))))
INTEGRATION_TESTS = $(shell grep -ohE '^func (Test|Fuzz|Example)[A-Za-z0-9_]*' $(INTEGRATION_FILES) $(wildcard $(addsuffix *_test.go,$(WITHOUT_INTEGRATION))) | cut -d ' ' -f 2 | grep -vx TestMain | sort -u)
empty :=
space := $(empty) $(empty)

.PHONY: test-integration
test-integration: ## Tests against a real kube-apiserver and etcd, built from their Go modules
	$(OFFLINE_BUILD) -only control-plane,flux
	FLEETCTL_TEST_PROGRAMS="$$(cd "$(PROGRAMS)" && readlink -- * | cksum)" \
	  KUBEBUILDER_ASSETS="$(PROGRAMS)" $(GO_TEST) . -trimpath -tags integration -timeout 25m -p 4 \
	  -run '^($(subst $(space),|,$(INTEGRATION_TESTS)))$$' $(TESTFLAGS) $(INTEGRATION_PACKAGES)

# The environment and the command of the end-to-end tests.
define e2e
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" \
	FLEETCTL_E2E_BUNDLE="$(1)" \
	FLEETCTL_E2E_NODE_IMAGE="$(E2E_NODE_IMAGE)" \
	FLEETCTL_E2E_PROGRAMS="$(PROGRAMS)" \
	$(2) $(GO_TEST) . -trimpath -tags e2e -count=1 -v -timeout 100m $(3) $(TESTFLAGS) ./cmd/fleetctl/e2e/...
endef

# Tests that need a container engine, or root for namespaces (TestHandOver, TestSourceLost, TestTransfer, TestOwnProcesses). All other tests
# run only on the embedded host.
WITHOUT_KIND := -skip '^(TestMasterOfMasters|TestStandsAlone|TestStandsAloneInItsOwnRepo|TestSecondEnvironment|TestPivot|TestHandOver|TestSourceLost|TestTransfer|TestOwnProcesses)$$|/^kind$$'
# The part of these tests that runs for every commit: the whole life of a fleet with clusters of containers, and cases of the engine.
# Kills during init, which differ between hosts in only two steps, the pivot and the tests after a pivot run only in e2e-all.
ON_KIND := -run '^(TestFleetWithoutRemote|TestSomebodyElses)$$/^kind$$'
# The embedded host's tests in three parts of about the same duration. .ci/run adds the faults of `make conformance-faults` to the first
# part, and 20 kills to the third. The second part has all tests that are not in the first or the third.
EMBEDDED_FIRST := ^(TestExample.*|TestFleetOnSSH|TestHostExec|TestSomebodyElses)$$
EMBEDDED_THIRD := ^TestRunnerLost$$

.PHONY: e2e
e2e: e2e-embedded e2e-kind ## What CI runs of the main job, offline: on the embedded host, and on kind what only kind can show

.PHONY: e2e-all
e2e-all: build gitea ## The main job on every host, all of it, and conformance: some 50 minutes; sets up Podman if no engine answers (needs root then)
	scripts/with-engine.sh $(MAKE) --no-print-directory bundle
	$(call e2e,$(BUNDLE),scripts/with-engine.sh,)
	$(MAKE) --no-print-directory conformance

.PHONY: e2e-kind
e2e-kind: build ## What only kind can show; sets up Podman if no engine answers (needs root then)
	scripts/with-engine.sh $(MAKE) --no-print-directory bundle
	$(call e2e,$(BUNDLE),scripts/with-engine.sh,$(ON_KIND))

.PHONY: e2e-embedded
e2e-embedded: build bundle-embedded gitea ## The main job on the embedded host alone: no container engine, no root
	$(call e2e,$(EMBEDDED_BUNDLE),,$(WITHOUT_KIND))

# The three parts, for a machine that runs them in parallel, each in a network namespace of its own. They leave out TestQuickstart,
# because .ci/run runs `make quickstart` on a fresh machine, and TestKills, because it runs `make test-kill` with fewer kills.
.PHONY: e2e-embedded-first
e2e-embedded-first: build bundle-embedded
	$(call e2e,$(EMBEDDED_BUNDLE),,$(WITHOUT_KIND) -run '$(EMBEDDED_FIRST)')

.PHONY: e2e-embedded-second
e2e-embedded-second: build bundle-embedded gitea
	$(call e2e,$(EMBEDDED_BUNDLE),,-skip '$(EMBEDDED_FIRST)|$(EMBEDDED_THIRD)|^(TestMasterOfMasters|TestStandsAlone|TestStandsAloneInItsOwnRepo|TestSecondEnvironment|TestPivot|TestSourceLost|TestTransfer|TestRunnerLostInBootstrap|TestStandby|TestRepositoryIsMade|TestQuickstart|TestKills)$$|/^kind$$')

# CI runs this test with 20 clusters, in the second part.
CLUSTERS ?= 20

.PHONY: e2e-handover
e2e-handover: build bundle-embedded ## Hand CLUSTERS clusters over between two embedded hosts with their controllers, killed on the way (needs root)
	$(call e2e,$(EMBEDDED_BUNDLE),,-run '^TestHandOver$$') -args -clusters $(CLUSTERS)

.PHONY: e2e-embedded-third
e2e-embedded-third: build bundle-embedded
	$(call e2e,$(EMBEDDED_BUNDLE),,-run '$(EMBEDDED_THIRD)')

KILLS ?= 200
SEED ?= 0

.PHONY: test-kill
test-kill: build bundle-embedded ## Kill -9 what keeps a fleet, KILLS times at random from SEED, run it to its end and look at what is there; CI kills 20 times
	$(GO_TEST) . -trimpath -count=1 -timeout 30m $(TESTFLAGS) -run '^TestScripts$$/killed' ./cmd/fleetctl -args -kills $(KILLS) -seed $(SEED)
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" FLEETCTL_E2E_BUNDLE="$(EMBEDDED_BUNDLE)" \
	$(GO_TEST) . -trimpath -tags e2e -count=1 -v -timeout 6h $(TESTFLAGS) -run '^TestKills$$' ./cmd/fleetctl/e2e -args -kills $(KILLS) -seed $(SEED)

# A hand-over between two API servers, without controllers. It is killed at its writes, and an independent reader checks the result.
HANDOVER_KILLS = $(if $(filter file,$(origin KILLS)),300,$(KILLS))
handover_test = FLEETCTL_E2E_PROGRAMS="$(PROGRAMS)" $(GO_TEST) . -trimpath -tags e2e -count=1 -v -timeout 5h -parallel 8

.PHONY: test-handover
test-handover: ## Kill a hand-over, a backup, a restore, a standby and a detachment at their writes, run it again or abort it, and look at both sides from outside: KILLS=2000 SEED=
	$(OFFLINE_BUILD) -only control-plane
	$(handover_test) -run '^(TestKills|TestKillsInARow|TestEveryWrite|TestFaults|TestTargetLost|TestSourceLost|TestRestore|TestStandby|TestFenceOnly|TestDetach|TestTransfer|TestTransferIntoOwnRepo|TestFullDisk|TestJournalLost)$$' $(TESTFLAGS) ./cmd/fleetctl/handover -args -kills $(HANDOVER_KILLS) -seed $(SEED)

.PHONY: test-handover-row
test-handover-row: ## Kills of hand-overs, restores and transfers, each a few writes after the last: a fourth of the time for as many of them
	$(OFFLINE_BUILD) -only control-plane
	$(handover_test) -run '^TestKillsInARow$$' $(TESTFLAGS) ./cmd/fleetctl/handover -args -kills $(HANDOVER_KILLS) -seed $(SEED)

.PHONY: test-handover-stock
test-handover-stock: ## The same kills for stock clusterctl move: how many of them it does not come back from
	$(OFFLINE_BUILD) -only control-plane,peers
	$(handover_test) -run '^TestStock' $(TESTFLAGS) ./cmd/fleetctl/handover -args -kills $(KILLS) -seed $(SEED)

.PHONY: bench-handover
bench-handover: ## 200 clusters from one API server to another, by fleetctl's engine and by clusterctl move
	$(OFFLINE_BUILD) -only control-plane,peers
	FLEETCTL_E2E_PROGRAMS="$(PROGRAMS)" $(PLAIN_TEST) -tags e2e -count=1 -timeout 1h -run '^$$' -bench '^BenchmarkHandover$$' \
	  -benchtime 1x ./cmd/fleetctl/handover

# The bundle with the clouds' infrastructure providers. The first build takes long, mostly because of Azure.
PROVIDERS_BUNDLE := $(OFFLINE)/bundle-providers
CLOUDS ?= aws,gcp,azure,vsphere

.PHONY: e2e-providers
e2e-providers: build ## The AWS, Google Cloud, Azure and vSphere providers start on an embedded host and serve their webhooks; not a part of e2e
	$(OFFLINE_BUILD) -only providers -clouds "$(CLOUDS)" -out "$(PROVIDERS_BUNDLE)"
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" \
	FLEETCTL_E2E_BUNDLE="$(PROVIDERS_BUNDLE)" \
	CLOUDS="$(CLOUDS)" \
	$(PLAIN_TEST) -tags e2e,providers -count=1 -v -timeout 45m -run '^TestCloudProviders$$' $(TESTFLAGS) ./cmd/fleetctl/e2e/...

# The bundle of e2e-clouds, with the providers of the simulated clouds, and that of its first part, which takes AWS alone.
CLOUDS_BUNDLE := $(OFFLINE)/bundle-clouds
AWS_BUNDLE := $(OFFLINE)/bundle-aws

# The part of these tests that takes minutes: the infrastructure that a commit makes, what status says of it, credentials, and teardown.
CLOUDS_FIRST := ^TestAWS$$

# The environment and the command of these tests: $(1) are the tests, $(2) is the bundle, and $(3) is another build tag, if any.
comma := ,
define clouds
	python=$$(scripts/moto.sh); \
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" \
	FLEETCTL_E2E_BUNDLE="$(2)" \
	FLEETCTL_E2E_PROGRAMS="$(PROGRAMS)" \
	FLEETCTL_E2E_PYTHON="$$python" \
	FLEETCTL_E2E_VSPHERE="$(CURDIR)/bin/vcsim" \
	$(GO_TEST) . -trimpath -tags e2e,clouds$(addprefix $(comma),$(3)) -count=1 -v -timeout 90m -run '$(1)' $(TESTFLAGS) ./cmd/fleetctl/e2e/...
endef

.PHONY: compile-aws
compile-aws: ## Compile the AWS provider into Go's cache, minutes the first time, while other targets build what they need
	$(OFFLINE_BUILD) -only providers -clouds aws -compile-only

.PHONY: bundle-aws
bundle-aws: ## Build the bundle of e2e-clouds-first
	$(OFFLINE_BUILD) -only control-plane
	$(OFFLINE_BUILD) -only providers -clouds aws -out "$(AWS_BUNDLE)"

.PHONY: bundle-clouds
bundle-clouds: ## Build the bundle of e2e-clouds, and the simulated vSphere
	$(OFFLINE_BUILD) -only control-plane
	$(OFFLINE_BUILD) -only providers -clouds aws,vsphere -out "$(CLOUDS_BUNDLE)"
	CGO_ENABLED=0 $(GO) -C scripts/offline/modules/vcsim build -trimpath -o "$(CURDIR)/bin/vcsim" .

.PHONY: e2e-clouds
e2e-clouds: build bundle-clouds ## Clusters in a simulated AWS and a simulated vSphere by their own providers, on an embedded host; needs Python, and installs moto where it is missing; each night
	$(call clouds,^(TestAWS|TestVSphere),$(CLOUDS_BUNDLE))

CLOUD_KILLS = $(if $(filter file,$(origin KILLS)),10,$(KILLS))

.PHONY: test-kill-clouds
test-kill-clouds: build bundle-aws ## Kill -9 a bootstrap into a simulated AWS, KILLS times at random from SEED, in all of its phases; e2e-clouds kills 10 times
	$(call clouds,^TestAWSBootstrapKilled$$,$(AWS_BUNDLE)) -args -bootstrap-kills $(CLOUD_KILLS) -seed $(SEED)

.PHONY: e2e-clouds-first
e2e-clouds-first: build bundle-aws ## The part of e2e-clouds that takes minutes: AWS alone; for each commit
	$(call clouds,$(CLOUDS_FIRST),$(AWS_BUNDLE))

# The first build of Vault takes long; afterwards Go's own cache has its packages. It is for tests alone: no bundle and no release has it.
.PHONY: test-vault
test-vault: ## Values, leases and logins of a real Vault whose AWS is simulated; needs Python, and installs moto where it is missing; each night
	CGO_ENABLED=0 $(GO) -C scripts/offline/modules/vault build -trimpath -buildvcs=false -ldflags "-s -w" -o "$(CURDIR)/bin/vault" .
	python=$$(scripts/moto.sh); \
	FLEETCTL_TEST_VAULT="$(CURDIR)/bin/vault" FLEETCTL_TEST_PYTHON="$$python" \
	$(GO_TEST) . -trimpath -tags clouds -count=1 -v -timeout 10m -run '^TestRealVault$$' $(TESTFLAGS) ./pkg/vault ./pkg/fromvault

# The bundle with older releases of Cluster API, cert-manager and Flux. The first build takes some ten minutes of processor time.
BEFORE_BUNDLE := $(OFFLINE)/bundle-before

.PHONY: bundle-before
bundle-before: ## Build the bundle of e2e-upgrade
	$(OFFLINE_BUILD) -only before -out "$(BEFORE_BUNDLE)"

.PHONY: e2e-upgrade
e2e-upgrade: build bundle-before ## Real controllers go from an older release to the pinned one, with a cluster alive across it, on an embedded host
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" \
	FLEETCTL_E2E_BUNDLE="$(BEFORE_BUNDLE)" \
	$(GO_TEST) . -trimpath -tags e2e,upgrade -count=1 -v -timeout 20m -run '^TestUpgrade$$' $(TESTFLAGS) ./cmd/fleetctl/e2e/...

# The same bundle with AWS's provider in both releases. What the first build compiles, it shares with bundle-before and bundle-aws for the
# most part: only the older release of the provider is compiled beside them, in some minutes of processor time.
AWS_BEFORE_BUNDLE := $(OFFLINE)/bundle-aws-before

.PHONY: bundle-aws-before
bundle-aws-before: ## Build the bundle of e2e-upgrade-aws
	$(OFFLINE_BUILD) -only control-plane
	$(OFFLINE_BUILD) -only providers,before -clouds aws -out "$(AWS_BEFORE_BUNDLE)"

.PHONY: e2e-upgrade-aws
e2e-upgrade-aws: build bundle-aws-before ## The same for AWS's provider, with a cluster alive in a simulated AWS; needs Python, and installs moto where it is missing; each night
	$(call clouds,^TestAWSUpgrade$$,$(AWS_BEFORE_BUNDLE),upgrade)

# The bundle with Flux's two image controllers. The first build takes three minutes of processor time.
IMAGES_BUNDLE := $(OFFLINE)/bundle-images

.PHONY: e2e-images
e2e-images: build ## Image automation commits what a registry has, on an embedded host; not a part of e2e
	$(OFFLINE_BUILD) -only bundle -image-automation -out "$(IMAGES_BUNDLE)"
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" \
	FLEETCTL_E2E_BUNDLE="$(IMAGES_BUNDLE)" \
	$(PLAIN_TEST) -tags e2e,images -count=1 -v -timeout 20m -run '^TestImageAutomation$$' $(TESTFLAGS) ./cmd/fleetctl/e2e/...

.PHONY: test-renovate
test-renovate: build gitea ## A real Renovate proposes on a real Gitea what the configuration of `fleetctl ci add` finds; needs npm, and installs Renovate; each night
	renovate=$$(scripts/renovate.sh); \
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" \
	FLEETCTL_E2E_PROGRAMS="$(PROGRAMS)" \
	FLEETCTL_E2E_BUNDLE="$(EMBEDDED_BUNDLE)" \
	FLEETCTL_E2E_RENOVATE="$$renovate" \
	$(GO_TEST) . -trimpath -tags e2e,renovate -count=1 -v -timeout 15m -run '^TestRenovate$$' $(TESTFLAGS) ./cmd/fleetctl/e2e/...

.PHONY: conformance
conformance: build ## Stock clusterctl against the embedded host and against kind: what exists afterwards is the same
	scripts/with-engine.sh $(MAKE) --no-print-directory bundle
	$(OFFLINE_BUILD) -only peers
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" \
	FLEETCTL_E2E_BUNDLE="$(BUNDLE)" \
	FLEETCTL_E2E_PROGRAMS="$(PROGRAMS)" \
	scripts/with-engine.sh $(GO_TEST) . -trimpath -tags e2e -count=1 -v -timeout 15m $(TESTFLAGS) ./cmd/fleetctl/conformance/...

# The only test of conformance without a kind cluster and stock programs. It can run without an engine, and in parallel with others.
.PHONY: conformance-faults
conformance-faults: build ## The part of it in which init on the embedded host meets damaged bundles, a taken port and a full disk; needs root
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" \
	FLEETCTL_E2E_BUNDLE="$(BUNDLE)" \
	FLEETCTL_E2E_PROGRAMS="$(PROGRAMS)" \
	$(GO_TEST) . -trimpath -tags e2e -count=1 -v -timeout 15m -run '^TestInitNamesWhatIsWrong$$' $(TESTFLAGS) ./cmd/fleetctl/conformance/...

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (20s)
	scripts/fuzz.sh $(FUZZTIME)

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what the code calls (needs the network)
	scripts/tool.sh govulncheck ./...

##@ Try

.PHONY: quickstart
quickstart: ## From nothing to a fleet with a cluster in it; FLEETCTL_HOST=kind or embedded chooses
	scripts/quickstart.sh

.PHONY: bench-start
bench-start: build ## What starting fleetctl takes, beside clusterctl and kubectl
	$(OFFLINE_BUILD) -only peers
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" FLEETCTL_BENCH_PEERS="$(PROGRAMS)" \
	$(PLAIN_TEST) -tags e2e -count=1 -run '^$$' -bench '^BenchmarkStart$$' -benchtime 1x ./cmd/fleetctl/fleetbench/...

.PHONY: bench-init
bench-init: build ## fleetctl init on each host against the peers' own programs in sequence, with the same images
	scripts/with-engine.sh $(MAKE) --no-print-directory bundle
	$(OFFLINE_BUILD) -only peers
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" \
	FLEETCTL_E2E_BUNDLE="$(BUNDLE)" \
	FLEETCTL_E2E_PROGRAMS="$(PROGRAMS)" \
	scripts/with-engine.sh $(PLAIN_TEST) -tags e2e -count=1 -timeout 30m -run '^$$' -bench '^BenchmarkInit$$' -benchtime 1x ./cmd/fleetctl/e2e/...

# The numbers of clusters that bench-scale declares, one after the other (on two cores 300 take half an hour), and a file with the tuning
# of the managers for a small machine. An empty TUNING leaves them as released.
SCALE ?= 10 100 300
TUNING ?= cmd/fleetctl/e2e/testdata/scale-tuning.yaml

# A benchmark on the embedded host: no container engine, no root.
define bench_embedded
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" \
	FLEETCTL_E2E_BUNDLE="$(EMBEDDED_BUNDLE)" \
	FLEETCTL_E2E_PROGRAMS="$(PROGRAMS)" SCALE="$(SCALE)" TUNING="$(abspath $(TUNING))" \
	$(PLAIN_TEST) -tags e2e -count=1 -timeout 3h -run '^$$' -bench '^$(1)$$' -benchtime 1x ./cmd/fleetctl/e2e/...
endef

.PHONY: bench-scale
bench-scale: build bundle-embedded ## In-memory clusters on an embedded host until all are Available: SCALE="10 100 300" TUNING=FILE
	$(call bench_embedded,BenchmarkScale)

.PHONY: bench-idle
bench-idle: build bundle-embedded ## Memory and processor time of an embedded host with nothing to do
	$(call bench_embedded,BenchmarkIdle)

# The numbers of clusters in the fleets of bench-fleet, and how many of them helm template renders, which would take minutes for all.
SIZES ?= 100 1000 5000
SAMPLE ?= 100

.PHONY: bench-fleet
bench-fleet: build ## Render, compare, list and validate generated fleets beside helm, kustomize and kubeconform: SIZES="100 1000 5000" SAMPLE=100
	mkdir -p bin/peers
	for tool in helm kustomize kubeconform; do ln -sfn "$$(scripts/tool.sh --path $$tool)" bin/peers/$$tool; done
	scripts/fleet-crds.sh bin/crds
	FLEETCTL_E2E_PROGRAM="$(CURDIR)/bin/fleetctl" FLEETCTL_BENCH_PEERS="$(CURDIR)/bin/peers" FLEETCTL_BENCH_CRDS="$(CURDIR)/bin/crds" \
	SIZES="$(SIZES)" SAMPLE="$(SAMPLE)" \
	$(PLAIN_TEST) -tags e2e -count=1 -timeout 2h -run '^$$' -bench '^BenchmarkFleet$$' -benchtime 1x ./cmd/fleetctl/fleetbench/...

##@ Release

.PHONY: release-check
release-check: ## Check .goreleaser.yaml
	scripts/tool.sh goreleaser check

.PHONY: release-snapshot
release-snapshot: ## Build what a release would publish, unsigned, into dist/
	scripts/release.sh --snapshot --skip=sign

.PHONY: release
release: ## Build, sign and publish the release of the tag that is checked out (CI does this)
	scripts/release.sh

##@ Clean

.PHONY: clean
clean: ## Remove what was built in this clone
	rm -rf bin dist _output

.PHONY: clean-cache
clean-cache: ## Remove tools, programs, images and bundles that were built for this project
	rm -rf "$(FLEETCTL_CACHE_DIR)/tools" "$(FLEETCTL_CACHE_DIR)/offline"

##@ Help

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## "; print "usage: make TARGET\n" } \
	  /^##@/ { printf "%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

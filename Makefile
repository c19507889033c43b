# rocebed: see `make help`. Needs Linux, Go ≥ 1.26, make and, for what touches the kernel, root (`sudo make …`); `make setup`
# brings the rest.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# sudo drops what a profile added to PATH, and some leave HOME at the caller's: root-owned
# files in a user's Go cache would break that user's next build.
export PATH := $(PATH):/usr/local/go/bin:/usr/lib/go/bin:/usr/local/sbin:/usr/sbin:/sbin
ifeq ($(shell id -u),0)
export HOME := $(or $(shell getent passwd 0 | cut -d: -f6),/root)
endif
GO ?= go

# ibv: the libibverbs provider, which the kernel backend needs. Where there is no C compiler or no header of libibverbs, all the
# rest is built without it.
TAGS ?= $(if $(and $(wildcard /usr/include/infiniband/verbs.h),$(shell command -v gcc)),ibv)
BACKEND ?=
comma := ,
FUZZTIME ?= 20s
BENCH ?=
PKG ?=
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo devel)

# A clone that git distrusts (another owner's) can still be built, without its commit in `version`.
ifneq ($(shell git rev-parse HEAD >/dev/null 2>&1 && echo yes),yes)
export GOFLAGS := $(GOFLAGS) -buildvcs=false
endif

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: go-there
go-there:
	@command -v $(GO) >/dev/null || { echo "rocebed needs Go 1.26 or later (https://go.dev/doc/install): no '$(GO)' in $$PATH" >&2; exit 3; }

.PHONY: setup
setup: go-there ## install what is missing; build the guest image where this kernel can't do rxe
	@scripts/setup.sh
	@$(MAKE) --no-print-directory build
	@scripts/image.sh

.PHONY: setup-soft
setup-soft: build ## the quick part of it: what runs in virtual time and on software nodes needs a build and no packages

.PHONY: build
build: go-there ## write bin/rocebed
	@mkdir -p bin
	@scripts/shim.sh
	CGO_ENABLED=$(if $(TAGS),1,0) $(GO) build -tags '$(TAGS)' -trimpath -ldflags '-X github.com/rocebed/rocebed/testbed.Version=$(VERSION)' -o bin/ ./cmd/rocebed

.PHONY: testbed
testbed: setup-soft ## run scenarios/quickstart.yaml in virtual time, on software nodes and on real rxe, side by side; BACKEND=sim|soft|kernel: one
	@MAKE='$(MAKE)' scripts/testbed.sh $(BACKEND)

.PHONY: test
test: setup ## units with -race, what needs root here, and the kernel suites in the guest
	@$(GO) run ./internal/leftover -- scripts/test.sh

.PHONY: suites
suites: $(if $(filter sim soft,$(BACKEND)),go-there,setup) ## the Ginkgo suites alone, BACKEND=kernel (default), soft, sim
	@$(GO) run ./internal/leftover -- scripts/suites.sh $(or $(BACKEND),kernel)

.PHONY: soak
soak: setup ## random runs in virtual time, every byte checked: SOAK_RUNS (100000), at most SOAK_TIME (1h) a part, from SOAK_SEED (1) on; then rxe for SOAK_RXE_MINUTES (30)
	@scripts/soak.sh

.PHONY: lint
lint: go-there ## vet (also for darwin), staticcheck, our own rules
	$(GO) run ./internal/lint
	$(GO) vet -tags '$(TAGS)' ./...
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...
	$(GO) tool staticcheck -tags '$(TAGS)' ./...

.PHONY: generate
generate: go-there ## build the eBPF objects (clang) and the tables of the docs anew; fails where they differ from what is committed
	@scripts/generate.sh

.PHONY: fuzz
fuzz: go-there ## every fuzz target for FUZZTIME (20s)
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: go-there ## how fast it is, in data packets a second; BENCH=regexp PKG=./topo/...: any benchmarks
	@TAGS='$(TAGS)' scripts/bench.sh $(if $(BENCH)$(PKG),'$(or $(BENCH),.)' $(or $(PKG),./...))

.PHONY: backends
backends: setup ## measure the quickstart on the three backends again, for docs/backends.md
	@scripts/backends.sh

.PHONY: incidents
incidents: $(if $(findstring kernel,$(BACKEND)),setup,build) ## make published incidents happen and cure them, and print the table; BACKEND=sim,soft (default), kernel
	@bin/rocebed incident table --backend $(or $(BACKEND),sim$(comma)soft)

.PHONY: agreement
agreement: ## the same congestion on three backends, for docs/agreement.md; ARGS=--json prints the table
	@$(MAKE) --no-print-directory setup >&2
	@$(GO) run ./internal/leftover -- scripts/agreement.sh $(ARGS)

.PHONY: clean
clean: ## remove what was built, and what crashed testbeds left
	@[ ! -x bin/rocebed ] || bin/rocebed clean
	rm -rf bin out testbed/kernel/shim/qp.so

# What people and CI call. `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

CARGO   ?= cargo
ARCH    := $(shell uname -m)
STATIC  := $(ARCH)-unknown-linux-musl
PROGRAM := target/$(STATIC)/dist/stockade
HELPER  := target/$(STATIC)/dist/stockade-init

# The grammars of the verifier are C without a C library: without musl-gcc the host's compiler will
# do, as long as it does not put calls of glibc's own into them.
STATIC_ := $(subst -,_,$(STATIC))
export CC_$(STATIC_)     ?= $(shell command -v musl-gcc || echo cc)
export CFLAGS_$(STATIC_) ?= -U_FORTIFY_SOURCE -fno-stack-protector

PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR   = $(DESTDIR)$(PREFIX)/bin
SHAREDIR = $(DESTDIR)$(PREFIX)/share
LIBEXECDIR = $(DESTDIR)$(PREFIX)/libexec

FUZZ_SECONDS ?= 60
CORPORA ?=
SEQUENCES ?= 20000

.PHONY: help lint test conformance adversary bench detection release wheel install uninstall fuzz test-agents test-crowd test-kernels

help:
	@echo 'make lint     formatting, clippy, documentation, other targets'
	@echo 'make test     installs what the tests need (as root), then runs all of them'
	@echo 'make test-agents  installs real agents (scripts/agents.list) and runs them bare and inside; docs/agents.md'
	@echo 'make test-kernels rows of the contract on Debian kernels in QEMU; docs/compatibility.md'
	@echo 'make conformance  foreign suites bare and inside (as root it installs and builds them); docs/compatibility.md'
	@echo 'make adversary    SEQUENCES ($(SEQUENCES)) random attacks on names for each user'
	@echo 'make bench    start-up and planning, side by side with the alternatives'
	@echo 'make detection  docs/detection.md from labelled text in CORPORA (a directory; not in the tree); the verifier on CORPUS files'
	@echo 'make release  the static program and helper: $(PROGRAM)'
	@echo 'make wheel    the Python package with the static program: target/wheels'
	@echo 'make install  program, helper, manual and completions below PREFIX ($(PREFIX)), with DESTDIR'
	@echo 'make fuzz     every fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)) each; needs nightly and cargo-fuzz'

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps
	scripts/check-targets

# The failures come once more at the end: among thousands of lines nobody finds them.
test:
	scripts/test-deps
	mkdir -p target
	$(CARGO) test --workspace --no-fail-fast 2>&1 | tee target/test.log || { scripts/show-failures target/test.log; exit 1; }

# Eight processes in one store for a whole minute, where `make test` gives them some seconds.
test-crowd:
	STOCKADE_CROWD_SECONDS=60 $(CARGO) test -p stockade-workspace --test it -- crowd

# `make test` runs these tests too, with the agents that it finds.
test-agents:
	scripts/test-agents
	$(CARGO) test -p stockade-cli --test it -- agents::

# Boots other kernels in QEMU; the first time it fetches them from this machine's Debian mirror.
test-kernels: release
	STOCKADE_REQUIRE=kernels STOCKADE_BIN=$(CURDIR)/$(PROGRAM) $(CARGO) test -p stockade-cli --test kernels

conformance:
	$(CARGO) build -p stockade-cli
	scripts/conformance --check

adversary:
	STOCKADE_ADVERSARY=$(SEQUENCES) $(CARGO) test -p stockade-cli --test adversary

# Benchmarks that only start the program: cargo builds it once more for them, which need not take
# as long as the real one.
HARNESS := CARGO_PROFILE_BENCH_LTO=off CARGO_PROFILE_BENCH_CODEGEN_UNITS=16 \
	STOCKADE_BIN=$(CURDIR)/$(PROGRAM) $(CARGO) bench

bench: release
	$(HARNESS) -p stockade-cli --bench startup
	$(HARNESS) -p stockade-cli --bench steady
	$(HARNESS) -p stockade-cli --bench names
	scripts/bench-deps
	$(HARNESS) -p stockade-cli --bench network
	STOCKADE_HELPER=$(CURDIR)/$(HELPER) $(CARGO) bench -p stockade --bench spawn
	STOCKADE_HELPER=$(CURDIR)/$(HELPER) $(CARGO) bench -p stockade --bench session
	STOCKADE_BIN=$(CURDIR)/$(PROGRAM) scripts/bench-sdk
	$(HARNESS) -p stockade-cli --bench workspace
	$(CARGO) bench -p stockade-engine --bench plan
	$(HARNESS) -p stockade-container --bench containers
	$(HARNESS) -p stockade-cli --bench verify
	STOCKADE_BIN=$(CURDIR)/$(PROGRAM) $(CARGO) bench -p stockade-inspect --bench throughput
	STOCKADE_BIN=$(CURDIR)/$(PROGRAM) scripts/bench-secrets

detection:
	scripts/detection "$(CORPORA)"
	$(if $(CORPUS),$(CARGO) run --release -p stockade-verify --example recall -- $(CORPUS))

release:
	scripts/add-target $(STATIC)
	$(CARGO) build --profile dist --target $(STATIC) -p stockade-cli -p stockade-init
	@ls -l $(PROGRAM) $(HELPER)

# A static program runs with every C library, so that one wheel is for all of them.
wheel:
	scripts/add-target $(STATIC)
	scripts/test-deps
	cd sdk/python && "$${XDG_CACHE_HOME:-$$HOME/.cache}/stockade-tests/venv/bin/maturin" build --profile dist \
	  --target $(STATIC) --compatibility manylinux2014 musllinux_1_1 --out $(CURDIR)/target/wheels
	@ls -l target/wheels

install: release
	install -d $(BINDIR) $(LIBEXECDIR) $(SHAREDIR)/man/man1 \
	  $(SHAREDIR)/bash-completion/completions $(SHAREDIR)/zsh/site-functions \
	  $(SHAREDIR)/fish/vendor_completions.d
	install -m 755 $(PROGRAM) $(BINDIR)/stockade
	install -m 755 $(HELPER) $(LIBEXECDIR)/stockade-init
	$(PROGRAM) man --out $(SHAREDIR)/man/man1
	$(PROGRAM) completions bash > $(SHAREDIR)/bash-completion/completions/stockade
	$(PROGRAM) completions zsh > $(SHAREDIR)/zsh/site-functions/_stockade
	$(PROGRAM) completions fish > $(SHAREDIR)/fish/vendor_completions.d/stockade.fish

uninstall:
	rm -f $(BINDIR)/stockade $(LIBEXECDIR)/stockade-init $(SHAREDIR)/man/man1/stockade.1 $(SHAREDIR)/man/man1/stockade-*.1 \
	  $(SHAREDIR)/bash-completion/completions/stockade \
	  $(SHAREDIR)/zsh/site-functions/_stockade \
	  $(SHAREDIR)/fish/vendor_completions.d/stockade.fish

fuzz:
	for target in $$(cargo +nightly fuzz list); do \
	  cargo +nightly fuzz run "$$target" -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536; \
	done

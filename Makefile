# The front door: `make` lists what it can do. CMake does the building, see CMakePresets.json.

.DEFAULT_GOAL := help
.PHONY: help deps build run test test-go test-python test-typescript test-rust test-wire \
	model-long direct-long powercut damage pin-growth growth bench bench-languages bench-quick fuzz \
	install uninstall package clean format

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

deps: ## Install the packages that building and testing need
	@scripts/install-deps
	@scripts/fetch-nng

build: deps ## Build everything, optimised, into build/release
	@cmake --preset release
	@cmake --build --preset release

run: deps ## Start a daemon on a store of its own and show the main job end to end
	@[ -e build/release/client/cli/tine ] || echo "building tined and tine: a minute, once"
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target tined tine-cli -- --quiet
	@scripts/tour build/release

test: ## Run every test: release, ASan and UBSan, TSan, fuzzers, tidy, all clients
	@scripts/run-tests

test-go: ## Run the tests of the client for Go
test-python: ## Run the tests of the client for Python
test-typescript: ## Run the tests of the client for TypeScript
test-rust: ## Run the tests of the client for Rust
test-wire: ## Compare the clients of all languages, and plain SP peers

test-go test-python test-typescript test-rust test-wire:
	@scripts/run-tests $(@:test-%=%)

model-long: build ## Run 5 000 000 random operations against the model; MODEL_OPERATIONS=…
	@TINE_MODEL_OPERATIONS=$(or $(MODEL_OPERATIONS),5000000) \
		build/release/tests/test_model --no-fork random

powercut: build ## Cut the power 10 000 times in each mode; POWERCUT_IMAGES=…, TINE_TEST_SEED=…
	@TINE_POWERCUT_IMAGES=$(or $(POWERCUT_IMAGES),10000) \
		build/release/tests/test_powercut --no-fork after_a_power_cut

damage: build ## Damage 2200 copies of a store; TINE_TEST_SEED=…
	@TINE_DAMAGE_SHARE=1 build/release/tests/test_damage --no-fork damaged_copies

pin-growth: build ## Write to a relaxed store for 10 minutes; its file must not grow; GROWTH_SECONDS=…
	@TINE_GROWTH_SECONDS=$(or $(GROWTH_SECONDS),600) \
		build/release/tests/test_kv --no-fork does_not_grow_without_end

direct-long: build ## Read directly under 8 writers and 8 readers for 10 minutes; DIRECT_SECONDS=…
	@TINE_DIRECT_SECONDS=$(or $(DIRECT_SECONDS),600) \
		build/release/tests/test_client --no-fork histories_read_directly

bench: ## Run the benchmarks: tine-bench on many systems, the engine alone, over sockets
	@scripts/install-deps bench
	@$(MAKE) --no-print-directory build
	@bench/run
	@build/release/bench/bench_engine
	@build/release/bench/bench_transport
	@build/release/bench/bench_pi

bench-quick: ## Run tine-bench alone, in less than three minutes
	@scripts/install-deps bench
	@$(MAKE) --no-print-directory build
	@bench/run --quick

bench-languages: ## Compare the client of each language with its gRPC
	@scripts/install-deps bench
	@scripts/install-languages
	@$(MAKE) --no-print-directory build
	@bench/languages/run

growth: build ## Show that a store's costs stay flat as it grows; GROWTH_MESSAGES=10000000
	@mkdir -p build/bench
	@build/release/bench/tine-growth --largest $(or $(GROWTH_MESSAGES),10000000) \
		--directory build/bench

fuzz: ## Run the fuzzers only; FUZZ_SECONDS=600 makes it longer
	@TINE_FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) scripts/run-tests fuzz

PREFIX ?= /usr/local

install: build ## Install tined, tine and libtine; PREFIX=/usr/local DESTDIR=
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX) >/dev/null
	@echo "installed under $(DESTDIR)$(PREFIX)"

uninstall: ## Remove what `make install` installed; the same DESTDIR
	@while read -r file || [ "$$file" ]; do \
		rm -f "$(DESTDIR)$$file"; \
		directory=$$(dirname "$(DESTDIR)$$file"); \
		while case $$directory in */tine | */tine/v1) ;; *) false ;; esac; do \
			rmdir "$$directory" 2>/dev/null || break; \
			directory=$$(dirname "$$directory"); \
		done; \
	done <build/release/install_manifest.txt

package: build ## Make tine's Debian package, in build/release
	@cd build/release && cpack >/dev/null && ls -1 "$$PWD"/*.deb

clean: ## Remove everything that was built
	@rm -rf build

format: ## Lay out all C files with clang-format 14
	@scripts/list-c | xargs -0 "$$(command -v clang-format-14 || echo clang-format)" -i

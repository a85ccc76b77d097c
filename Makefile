# A front end of Meson: `make` builds into build/, where the programs find each other without install.
# `make run` and `make test` are all that a newcomer needs; what is missing is installed by tools/setup.
.PHONY: all setup run test test-mcp test-python test-javascript test-adapters packages test-packages check coverage bench bench-packages fuzz corpus mutants verdicts soak idle kills powercuts overload executions sequences matrix faults simulate snippets guest neighbours stalls template-changes log-size format lint install uninstall clean

BUILD ?= build
# A template that was asked for by name, and the folder that `make run` leaves its results in.
OUT ?= out

all: setup $(BUILD)/build.ninja
	@[ -e $(BUILD)/glovebox ] || echo "== compiling into $(BUILD)/: a minute or two, the first time"
	@ninja -C $(BUILD) --quiet

setup:
	@tools/setup build

$(BUILD)/build.ninja:
	@meson setup $(BUILD) >/dev/null || meson setup $(BUILD)

# The example: a real data set, analysed in a sandbox; the chart and the table end up in out/.
run: all
	@tools/run_example $(BUILD) $(OUT)

test:
	@tools/setup build test
	@tools/test $(BUILD)

# Most mistakes within three minutes: build, format, unit tests, clang-tidy over what differs from SINCE, and every
# sixteenth integration and escape test. CI runs `make lint` and `make test`.
check: all
	@tools/setup build test lint
	@tools/check $(BUILD)

# The official clients of the Model Context Protocol and its conformance suite; they come from PyPI and npm.
test-mcp: all
	@tools/setup build test mcp
	@tools/test-mcp $(BUILD)

# The Python package: types by two checkers, its wheels, its tests against a server of their own.
test-python: all
	@tools/setup build test packages
	@tools/test-python $(BUILD)

# Its adapters with every agent framework as published on PyPI; they are several hundred packages. Writes docs/clients.md.
test-adapters: all
	@tools/setup build test
	@tools/test-adapters $(BUILD)

# Packages, into dist/: the Python wheels, the npm packages, the sources, the Debian packages.
packages: all
	@tools/setup build packages debian mcp
	@tools/make-packages $(BUILD)

# The npm packages in a folder of their own, the Debian packages in a small Debian (SUITE=trixie for another release), the
# wheel in those of three releases and without a C library. Then all of it is made once more, with the same bytes.
SUITE ?= bookworm
test-packages: packages
	@tests/packages/try_npm
	@tests/packages/try_debian $(BUILD) $(SUITE)
	@tests/packages/try_wheel $(BUILD)
	@tests/packages/try_twice $(BUILD)

# The JavaScript package: types by two checkers and its tests against a server of their own.
test-javascript: all
	@tools/setup build test mcp
	@tools/test-javascript $(BUILD)

# Which lines of the parsers their unit tests reach; fails below 90 %.
coverage:
	@tools/setup build test
	@tools/coverage $(BUILD)

# The benchmark: what is compared runs in turns, four minutes each for programs and unseen pandas (BENCH_SECONDS=60 for one), some
# eight for the rest; QUICK=1 gives rough figures. PARTS="cells growth" measures these parts alone and keeps the others.
bench: all
	@/usr/bin/python3 -B tests/bench/bench.py $(BUILD) $(PARTS)

# What the packages for Python and JavaScript cost: import, a warm call, a first result, an environment of 150 packages. Wants a
# machine without other work; httpx, which is compared with, comes from PyPI.
bench-packages: all
	@/usr/bin/python3 -B tests/bench/packages.py $(BUILD)

# Fuzzers, longer than in `make test`: SECONDS_EACH for each target.
SECONDS_EACH ?= 600
fuzz:
	@tools/setup build test
	@tools/fuzz $(BUILD) $(SECONDS_EACH)

# Takes the inputs that `make fuzz` has found into tests/fuzz/corpus, and leaves out those that reach no code of their own.
corpus:
	@tools/fuzz-corpus $(BUILD)

# Mutation test of root's program, the schedule, limits, parsers and the engine: SAMPLE changes of one operator, condition or
# constant, one at a time (0: all of them), chosen by SEED; do the unit tests fail? A few minutes once it is built.
SAMPLE ?= 60
SEED ?=
mutants:
	@tools/setup build test
	@tools/mutants $(BUILD) $(SAMPLE) "$(SEED)" $(SCOPE)

# Verdicts: is the limit that ended a run named correctly? RUNS of each limit, in parallel; `make test` has a short form.
RUNS ?= 1000
verdicts: all
	@/usr/bin/python3 -B tests/soak/verdicts.py $(BUILD) $(RUNS)

# Soak test: do memory, descriptors and latency stay the same? Ordinary and hostile programs from 8 clients; `make test` has a form of 45 s.
soak: RUNS = 100000
soak: all
	@/usr/bin/python3 -B tests/soak/soak.py $(BUILD) $(RUNS)

# Idle sessions: do they use processor time? 200 sessions and 8 hours on gloveboxd's clock; `make test` has 6 and one.
idle: all
	@/usr/bin/python3 -B tests/soak/idle.py $(BUILD)

# Processes of the service are killed again and again under load: how soon are they back, and what do callers get?
kills: all
	@/usr/bin/python3 -B tests/soak/kills.py $(BUILD)

# Power cuts of the state folder's disk under load: is everything there that was promised to be on disk?
CUTS ?= 200
powercuts: all
	@GLOVEBOX_POWER_CUTS=$(CUTS) GLOVEBOX_BUILD=$(abspath $(BUILD)) GLOVEBOX_STATE=$(abspath $(BUILD))/state \
		/usr/bin/python3 -B -m pytest -p no:cacheprovider -q -s tests/integration/test_disks.py -k power_cuts

# Overload: ten times as many requests as can be served. How long do admitted requests take, and how soon do the others
# get 429?
overload: all
	@/usr/bin/python3 -B tests/soak/overload.py $(BUILD)

# Receipts: does every execution leave exactly one, for any names, sizes, ends and killed processes? RUNS of them.
executions: RUNS = 2000
executions: all
	@GLOVEBOX_EXECUTIONS=$(RUNS) GLOVEBOX_BUILD=$(abspath $(BUILD)) /usr/bin/python3 -B -m pytest -p no:cacheprovider -q -s \
		tests/integration/test_every_execution.py

# A log of RECORDS receipts: it is verified, searched, paged through and written on. `make test` takes 10,000.
RECORDS ?= 100000
log-size: all
	@GLOVEBOX_LOG_RECORDS=$(RECORDS) GLOVEBOX_BUILD=$(abspath $(BUILD)) GLOVEBOX_STATE=$(abspath $(BUILD))/state \
		/usr/bin/python3 -B -m pytest -p no:cacheprovider -q tests/integration/test_log_size.py

# A template is built, broken, rolled back and removed again and again: does a run of others fail? CHANGES_SECONDS of it, beside 50 runs a
# second and two sessions.
CHANGES_SECONDS ?= 300
template-changes: all
	@/usr/bin/python3 -B tests/soak/templates.py $(BUILD) $(CHANGES_SECONDS)

# Programs for data work as models write them, in the template python: at least 195 of 200 give the expected output.
snippets: all
	@/usr/bin/python3 -B tests/snippets/run.py $(BUILD)

# Escape tests on a kernel with control groups v2 only, in an emulated machine; `make test` has a shorter form.
guest: all
	@tools/setup build test
	@tests/guest/build_image $(BUILD)/guest $(BUILD) $(BUILD)/state
	@tests/guest/run $(BUILD)/guest 1800 whole

# Random sequences of requests: is every answer in the OpenAPI document, is no other tenant's object visible, is each
# session as its model says? RUNS requests of each of three clients; GLOVEBOX_SEED repeats them.
sequences: RUNS = 5000
sequences: all
	@GLOVEBOX_SEQUENCES=$(RUNS) GLOVEBOX_BUILD=$(abspath $(BUILD)) /usr/bin/python3 -B -m pytest -p no:cacheprovider -q -s \
		tests/integration/test_sequences.py

# Every route, for every state of what it names, with right and wrong bodies: is each answer in the OpenAPI document, and is
# another tenant's object as if it had never been? `make test` has a shorter form.
matrix: all
	@GLOVEBOX_MATRIX=whole GLOVEBOX_BUILD=$(abspath $(BUILD)) GLOVEBOX_STATE=$(abspath $(BUILD))/state \
		/usr/bin/python3 -B -m pytest -p no:cacheprovider -q tests/integration/test_state_matrix.py tests/integration/test_route_matrix.py

# Calls of gloveboxd and glovebox-egress that fail, once or for a second: FAULTS of them while requests are served, half as many
# while the service starts. GLOVEBOX_SEED repeats them, GLOVEBOX_FAULT one of them.
FAULTS ?= 600
faults: all
	@GLOVEBOX_FAULTS=$(FAULTS) GLOVEBOX_BUILD=$(abspath $(BUILD)) /usr/bin/python3 -B -m pytest -p no:cacheprovider -q -s \
		tests/integration/test_faults.py

# Simulation of gloveboxd: clock, disk, spawner and clients follow from a seed (docs/decisions/0131). SEEDS from FROM on;
# SEED=n repeats one and prints its trace.
SEEDS ?= 10000
FROM ?= 1
simulate: all
	@if [ -n "$(SEED)" ]; then $(BUILD)/simulate --policies policies --seed $(SEED) --verbose; \
		else $(BUILD)/simulate --policies policies --kept tests/simulate/kept-seeds && \
		$(BUILD)/simulate --policies policies --from $(FROM) --seeds $(SEEDS); fi

# Isolation of tenants: how much slower is one while another makes load? Some forty kinds (tests/soak/noise.py).
neighbours: all
	@/usr/bin/python3 -B tests/soak/neighbours.py $(BUILD)

# Turns of gloveboxd's loop: does a program that makes it work, by results, output, refused calls or files, delay all other
# requests? STALLS_SECONDS of each kind; a machine without other work.
STALLS_SECONDS ?= 5
stalls: all
	@/usr/bin/python3 -B tests/soak/stalls.py $(BUILD) $(STALLS_SECONDS)

format:
	@tools/setup lint
	@tools/format

lint: all
	@tools/setup test lint
	@tools/lint $(BUILD)

install: all
	@meson install -C $(BUILD) --no-rebuild

uninstall:
	@ninja -C $(BUILD) uninstall

clean:
	rm -rf $(BUILD) $(OUT)

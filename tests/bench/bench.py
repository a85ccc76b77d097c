#!/usr/bin/python3
"""What a run costs, beside bare python3 and other tools: bench.py BUILD [--quick]

All that is compared takes turns within one run, because machines are noisy: ratios hold, absolute
figures only for the machine and the hour. Leaves bench.json, benchmark.md and bench.png in BUILD; a
whole run (not --quick) copies the last two to docs/. A missed budget is reported and is no failure."""
import atexit
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cells
import load
import memory
import network
import peers
import receipts
import report
import starters

HELLO = "print('hello sandbox')"
DATA_HELLO = f'import pandas\n{HELLO}'
DESCRIBE = ('import numpy as np, pandas as pd\n'
            "frame = pd.DataFrame({'a': np.arange(1000.0), 'b': np.arange(1000) % 7})\n"
            "print(frame.groupby('b').a.mean().describe())\nprint(frame.describe())")
SAVEFIG = ("import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n"
           "plt.plot([1, 4, 2, 5])\nplt.title('bench')\nplt.savefig('/tmp/chart.png')\nprint('saved')")
IMPORTS = ("import csv, dataclasses, datetime, io, json, pathlib, random\n"
           "@dataclasses.dataclass\nclass Row:\n    name: str\n    when: datetime.date\n"
           "rows = [Row(name, datetime.date(2024, 1, int(day))) for name, day in csv.reader(io.StringIO('a,1\\nb,2\\n'))]\n"
           "random.shuffle(rows)\n"
           "print(json.dumps([str(row.when) for row in rows]), pathlib.Path('/tmp/rows').name)")
# name, program, what it prints, pauses and warm runs a round
PROGRAMS = [('hello', HELLO, 'hello sandbox', 5), ('describe', DESCRIBE, 'count', 4),
            ('imports', IMPORTS, 'rows', 4), ('savefig', SAVEFIG, 'saved', 2)]
CLIENTS = (1, 2, 8, 64)


class Bench:
    def __init__(self, build, quick):
        self.build, self.quick = os.path.abspath(build), quick
        self.glovebox = f'{self.build}/glovebox'
        self.samples, self.left_out, self.starts = {}, [], {}
        self.scratch = tempfile.mkdtemp(prefix='glovebox-bench-')
        os.chmod(self.scratch, 0o755)
        atexit.register(shutil.rmtree, self.scratch, ignore_errors=True)
        self.template = self.find_template()
        shutil.copytree(f'{self.template}/usr/share/glovebox/skel', f'{self.scratch}/home')
        for folder, _, _ in os.walk(f'{self.scratch}/home'):
            os.chmod(folder, 0o777)

    def find_template(self):
        state = os.environ.get('GLOVEBOX_STATE') or (
            '/var/lib/glovebox' if os.geteuid() == 0 else
            f"{os.environ.get('XDG_STATE_HOME') or os.path.expanduser('~/.local/state')}/glovebox")
        root = f'{state}/templates/python/root'
        if not os.path.isdir(root):
            subprocess.run([self.glovebox, 'template', 'build', 'python'], check=True)
        return root

    # --- daemons ----------------------------------------------------------------------------

    def serve(self, name, *more):
        path = f'{self.scratch}/{name}.sock'
        with open(f'{self.scratch}/{name}.log', 'w', encoding='utf-8') as log:
            daemon = subprocess.Popen([self.glovebox, 'serve', '--socket', path, *more], stdin=subprocess.DEVNULL,
                                      stdout=log, stderr=log)
        atexit.register(self.end, daemon)
        for _ in range(100):
            with contextlib.suppress(OSError):
                return daemon, path, load.Client(path)
            time.sleep(0.1)
        with open(f'{self.scratch}/{name}.log', encoding='utf-8') as log:
            sys.exit(f'bench: glovebox serve does not answer:\n{log.read()}')

    @staticmethod
    def end(daemon):
        if daemon.poll() is None:
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    # --- one measurement --------------------------------------------------------------------

    def add(self, name, took):
        self.samples.setdefault(name, []).append(took)

    def ask(self, name, client, code, expected, wanted):
        took, result = client.run(code)
        if result['status'] != 'ok' or expected not in result['stdout']:
            raise RuntimeError(f"{name}: {result['status']} {result['error']} {result['stderr']}")
        start = result['usage']['start']
        self.starts.setdefault(name, {}).setdefault(start, 0)
        self.starts[name][start] += 1
        if start == wanted:
            self.add(name, took)

    def start(self, name, starter, argv, expected, environment=None):
        """False if it does not work here."""
        took, output = starter.run(argv, environment or dict(os.environ))
        if took is None or expected not in output:
            last = (output or '').strip().splitlines()
            self.left_out.append(f"{name}: {last[-1] if last else 'no output'}")
            return False
        self.add(name, took)
        return True

    # --- rounds -----------------------------------------------------------------------------

    def prepare(self):
        """What takes turns: name -> (function, in every n-th round)."""
        is_root = os.geteuid() == 0
        plain = starters.Starter()
        bare = starters.Starter(lambda: starters.stand_in_template(self.template, self.scratch)) \
            if is_root else plain
        among = starters.Starter(lambda: starters.stand_among_peers(self.template, self.scratch)) \
            if is_root else None
        for starter in {plain, bare, among} - {None}:
            atexit.register(starter.close)
        self.daemon, self.socket, self.client = self.serve('parked')
        _, self.empty_socket, self.empty_client = self.serve('empty', '--pool-max', '0')
        for _, code, _, _ in PROGRAMS[:2]:  # its interpreters are warm from now on
            self.empty_client.run(code)

        turns = {}
        for name, code, expected, paced in PROGRAMS[:2] if self.quick else PROGRAMS:
            turns[f'{name} bare'] = (lambda name=name, code=code, expected=expected: self.start(
                f'{name} bare', bare, [peers.PYTHON, '-c', code], expected, peers.ENVIRONMENT), 1)
            turns[f'{name} warm'] = (lambda name=name, code=code, expected=expected, paced=paced:
                                     self.warm(name, code, expected, paced), 1)
            turns[f'{name} empty'] = (lambda name=name, code=code, expected=expected:
                                      self.empty(name, code, expected), 1)
            turns[f'{name} cold CLI'] = (lambda name=name, code=code, expected=expected: self.start(
                f'{name} cold CLI', plain,
                [self.glovebox, 'run', '--private', '-p', 'data', '-c', code], expected), 1)
            turns[f'{name} CLI with daemon'] = (lambda name=name, code=code, expected=expected: self.start(
                f'{name} CLI with daemon', plain,
                [self.glovebox, 'run', '--daemon', self.socket, '-p', 'data', '-c', code], expected), 1)
            for tool, path, command, every in peers.installed() if among else []:
                if self.quick and every > 1 and name != 'hello':
                    continue
                argv = command(path, self.scratch, name, code)
                turns[f'{name} {tool}'] = (lambda name=f'{name} {tool}', argv=argv, expected=expected:
                                           self.start(name, among, argv, expected, peers.ENVIRONMENT),
                                           every if name != 'hello' else 1)
        its = self.cells = cells.Cells(self.socket)
        atexit.register(its.close)
        turns['cells'] = (lambda: its.measure(self.add), 1)
        turns['sessions'] = (lambda: its.begin(self.add), 1)
        turns['branches'] = (lambda: its.branch(self.add), 1)
        if not among:
            self.left_out.append('other tools: compared only when the bench runs as root')
        known = {tool for tool, *_ in peers.installed()}
        self.left_out += [f'{tool}: not installed' for tool, *_ in peers.TOOLS if tool not in known]
        return turns

    def warm(self, name, code, expected, paced):
        for _ in range(paced):
            time.sleep(random.uniform(0.025, 0.060))
            self.ask(f'{name} warm', self.client, code, expected, 'parked')
        return True

    def empty(self, name, code, expected):
        kinds = [('hello empty pool, light', HELLO), ('hello empty pool, data', DATA_HELLO)] \
            if name == 'hello' else [(f'{name} empty pool', code)]
        for kind, its in kinds:
            time.sleep(random.uniform(0.025, 0.060))
            self.ask(kind, self.empty_client, its, expected, 'built')
        return True

    def take_turns(self, turns, seconds):
        """Two rounds are warm-up; tools that do not work are left out from then on."""
        begin = time.monotonic()
        rounds = 0
        while rounds < 3 or time.monotonic() < begin + seconds:
            for name in list(turns):
                function, every = turns[name]
                if (rounds % every == 0 or rounds < 2) and not function():
                    del turns[name]
            rounds += 1
            if rounds == (1 if self.quick else 2):
                self.samples.clear()
                self.starts.clear()
            if sys.stderr.isatty():
                print(f'\rround {rounds}, {time.monotonic() - begin:.0f} of {seconds:.0f} s', end='',
                      file=sys.stderr)
        return rounds

    # --- flat out ---------------------------------------------------------------------------

    def flat_out(self):
        """Throughput of both kinds, and what one parked sandbox weighs while the pool shrinks again."""
        rates, weights = {}, {}
        for kind, code in (('light', HELLO), ('data', DATA_HELLO)):
            for clients in CLIENTS if not self.quick else (1, 8):
                rate, took, wrong = load.flat_out(self.socket, clients, code, b'hello sandbox',
                                                  1.2 if self.quick else 3, 0.5)
                rates[f'flat out {kind}, {clients} client{"s" * (clients > 1)}'] = (rate, took, wrong)
            weights[kind] = memory.while_it_shrinks(self.daemon.pid, load.Client(self.socket), kind,
                                                    6 if self.quick else 10) if os.geteuid() == 0 else None
            if os.geteuid() == 0 and not weights[kind]:
                self.left_out.append(f'parked {kind}: too few were parked to weigh one')
        return rates, weights

    def receipt(self):
        try:
            return [receipts.measure_all(self.build, 200 if self.quick else 1000)[0]]
        except Exception as failure:  # as for the way out
            self.left_out.append(f'what a receipt adds: {type(failure).__name__}: {failure}')
            return []

    def way_out(self):
        if os.geteuid() != 0:
            self.left_out.append('the way out: measured only when the bench runs as root')
            return []
        try:
            return network.measure_all(self.build, self.scratch, 3 if self.quick else 8)[0]
        except Exception as failure:  # the rows of a whole bench shall not be lost with it
            self.left_out.append(f'the way out: {type(failure).__name__}: {failure}')
            return []


def main():
    quick = '--quick' in sys.argv or bool(os.environ.get('QUICK'))
    build = next(word for word in [*sys.argv[1:], 'build'] if not word.startswith('--'))
    bench = Bench(build, quick)
    loads = [os.getloadavg()[0]]
    turns = bench.prepare()
    rounds = bench.take_turns(turns, 25 if quick else float(os.environ.get('BENCH_SECONDS', '150')))
    bench.cells.close()
    loads.append(os.getloadavg()[0])
    rates, weights = bench.flat_out()
    loads.append(os.getloadavg()[0])
    rows = report.rows_of(bench.samples, rates, weights) + report.judge_all(bench.way_out() + bench.receipt())
    report.publish(rows, bench, rounds, loads)


if __name__ == '__main__':
    main()

#!/usr/bin/python3
"""Measures what a run costs, compared with bare python3 and other tools: bench.py BUILD [--quick] [PART...]

All that is compared takes turns within one run, in random order, because machines are noisy: ratios hold, absolute
figures only for the machine and the hour. Parts (report.PARTS) can be measured one by one; what was not asked for stays as
it was. Leaves bench.json, benchmark.md and bench.png in BUILD, and copies the last two to docs/ unless --quick, when all parts
have been measured. Says which row got worse than in docs/benchmark.md of the last commit. A missed budget is reported and is no failure."""
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
import growth
import load
import memory
import network
import pairs
import peers
import receipts
import report
import services
import starters
import unseen
import watcher

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
BARE = 4  # runs of bare python3 a round: all ratios hang on them
WARM_UP = 2  # rounds that are not counted


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

    def start(self, name, starter, argv, expected, environment=None, opened=None):
        """False if it does not work here."""
        took, output = starter.run(argv, environment or dict(os.environ), opened)
        if took is None or expected not in output:
            last = (output or '').strip().splitlines()
            self.left_out.append(f"{name}: {last[-1] if last else 'no output'}")
            return False
        self.add(name, took)
        return True

    # --- rounds -----------------------------------------------------------------------------

    def set_up(self):
        """The starters of programs without glovebox, and two daemons."""
        is_root = os.geteuid() == 0
        self.plain = starters.Starter()
        self.bare = starters.Starter(lambda: starters.stand_in_template(self.template, self.scratch)) \
            if is_root else self.plain
        self.among = starters.Starter(lambda: starters.stand_among_peers(self.template, self.scratch)) \
            if is_root else None
        for starter in {self.plain, self.bare, self.among} - {None}:
            atexit.register(starter.close)
        self.daemon, self.socket, self.client = self.serve('parked')
        _, _, self.empty_client = self.serve('empty', '--pool-max', '0')
        for _, code, _, _ in PROGRAMS[:2]:  # its interpreters are warm from now on
            self.empty_client.run(code)

    def beside_bare(self, turns, name, code, expected, paced):
        """The turns of a program: bare, each time after something else, and warm."""
        def bare():
            return self.start(f'{name} bare', self.bare, [peers.PYTHON, '-c', code], expected, peers.ENVIRONMENT)
        for number in range(1 if self.quick else BARE):
            turns[f'{name} bare, {number}'] = (bare, 1)
        turns[f'{name} warm'] = (lambda: self.warm(name, code, expected, paced), 1)

    def turns_of_programs(self):
        """What takes turns: name -> (function, in every n-th round)."""
        turns = {}
        for name, code, expected, paced in PROGRAMS[:2] if self.quick else PROGRAMS:
            self.beside_bare(turns, name, code, expected, paced)
            turns[f'{name} empty'] = (lambda name=name, code=code, expected=expected:
                                      self.empty(name, code, expected), 1)
            for kind, where in (('cold CLI', ['--private']), ('CLI with daemon', ['--daemon', self.socket])):
                turns[f'{name} {kind}'] = (lambda name=f'{name} {kind}', where=where, code=code, expected=expected: self.start(
                    name, self.plain, [self.glovebox, 'run', *where, '-p', 'data', '-c', code], expected), 1)
            for tool, path, command, every in peers.installed() if self.among else []:
                if self.quick and every > 1 and name != 'hello':
                    continue
                argv = command(path, self.scratch, name, code)
                turns[f'{name} {tool}'] = (lambda name=f'{name} {tool}', argv=argv, expected=expected: self.start(
                    name, self.among, argv, expected, peers.TOOL_ENVIRONMENT, f'{self.build}/seccomp/default.bpf'),
                    every if name != 'hello' else 1)
        turns['pairs'] = (self.pair, 1)
        if not self.among:
            self.left_out.append('other tools: compared only when the bench runs as root')
        known = {tool for tool, *_ in peers.installed()}
        self.left_out += [f'{tool}: not installed' for tool, *_ in peers.TOOLS if tool not in known]
        return turns

    def pair(self):
        """Two runs of one program without a pause between: the second finds what the first has left of the pool."""
        time.sleep(random.uniform(0.3, 0.5))  # the pool is whole again
        both = [self.client.run(DESCRIBE) for _ in range(2)]
        for _, result in both:
            if result['status'] != 'ok':
                raise RuntimeError(f"pair: {result['status']} {result['error']} {result['stderr']}")
        starts = [result['usage']['start'] for _, result in both]
        for name, (took, _), start in zip(('describe, first of a pair', 'describe, second of a pair'), both, starts):
            self.starts.setdefault(name, {}).setdefault(start, 0)
            self.starts[name][start] += 1
            self.add(name, took)
        return True

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
        """In random order in each round but the first; tools that do not work are left out from then on."""
        begin = time.monotonic()
        rounds, order = 0, []
        while rounds < WARM_UP + 1 or time.monotonic() < begin + seconds:
            for name in random.sample(list(turns), len(turns)) if rounds else list(turns):
                function, every = turns[name]
                if (rounds % every == 0 or rounds < WARM_UP) and not function():
                    del turns[name]
            rounds += 1
            if rounds == 1:
                order = list(self.samples)
            if rounds == WARM_UP:
                self.samples.clear()
                self.starts.clear()
            if sys.stderr.isatty():
                print(f'\rround {rounds}, {time.monotonic() - begin:.0f} of {seconds:.0f} s', end='',
                      file=sys.stderr)
        self.samples = {name: self.samples[name] for name in order if name in self.samples}

    # --- parts: each gives its rows ---------------------------------------------------------

    def seconds(self):
        return 25 if self.quick else float(os.environ.get('BENCH_SECONDS', '240'))

    def programs(self):
        self.take_turns(self.turns_of_programs(), self.seconds())
        rows = report.rows_of(self.samples, self.starts)
        first, second = (self.samples[f'describe, {which} of a pair'] for which in ('first', 'second'))
        compared = pairs.compared(list(zip(second, first)))
        next(row for row in rows if row['name'] == 'describe, second of a pair').update(compared)
        return report.judge_all(rows)

    def unseen(self):
        turns = {}
        for name, (code, expected) in unseen.PROGRAMS.items():
            self.beside_bare(turns, f'unseen {name}', code, expected, 4)
        self.take_turns(turns, self.seconds())
        rows = report.rows_of(self.samples, self.starts)
        middle = report.middle_of([row for row in rows if row['name'].endswith('warm')], 'unseen, median of the six')
        return report.judge_all([*rows, middle])

    def cells(self):
        its = cells.Cells(self.socket)
        atexit.register(its.close)
        self.take_turns({'cells': (lambda: its.measure(self.add), 1), 'sessions': (lambda: its.begin(self.add), 1),
                         'branches': (lambda: its.branch(self.add), 1)}, self.seconds() / 4)
        its.close()
        return report.rows_of(self.samples)

    def load(self):
        """Throughput of both kinds, and what one parked sandbox weighs while the pool shrinks again."""
        rates, weights = {}, {}
        for kind, code in (('light', HELLO), ('data', DATA_HELLO)):
            for clients in CLIENTS if not self.quick else (1, 8):
                rate, took, refused = load.flat_out(self.socket, clients, code, b'hello sandbox',
                                                    1.2 if self.quick else 3, 0.5)
                rates[f'flat out {kind}, {clients} client{"s" * (clients > 1)}'] = (rate, took, refused)
            weights[kind] = memory.while_it_shrinks(self.daemon.pid, load.Client(self.socket), kind,
                                                    6 if self.quick else 10) if os.geteuid() == 0 else None
            if os.geteuid() == 0 and not weights[kind]:
                self.left_out.append(f'parked {kind}: too few were parked to weigh one')
        return report.rows_of_load(rates) + report.rows_of_memory(weights) + self.exact_weights()

    def exact_weights(self):
        import templates  # it imports this file
        try:
            return report.judge_all(templates.rows(self.build, services.STATE, 1 if self.quick else 3)) if os.geteuid() == 0 else []
        except (OSError, RuntimeError) as failure:
            self.left_out.append(f'parked data, 26 against 4: {failure}')
            return []

    def growth(self):
        samples = {name: [] for name in growth.names()}
        growth.measure(self.build, 0.2 if self.quick else 1.0,
                       lambda name, took, used: samples[name].append((took, used)))
        return report.rows_of_growth({name: each for name, each in samples.items() if each})

    def watcher(self):
        return report.judge_all(watcher.measure_all(self.build, 0.2 if self.quick else 1.0))

    def others(self):
        rows = [receipts.measure_all(self.build, 200 if self.quick else 1000)[0]]
        if os.geteuid() == 0:
            rows += network.measure_all(self.build, self.scratch, 3 if self.quick else 8)[0]
        else:
            self.left_out.append('the way out: measured only when the bench runs as root')
        return report.judge_all(rows)

    def measure(self, part):
        """Its rows, and when and beside what they were measured. The rows of a whole bench shall not be lost with one part."""
        self.samples, self.starts, self.left_out, rows = {}, {}, [], []
        before = os.getloadavg()[0]
        try:
            rows = getattr(self, part)()
        except Exception as failure:
            self.left_out.append(f'{part}: {type(failure).__name__}: {failure}')
        return {'when': time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime()), 'is_quick': self.quick, 'left_out': self.left_out,
                'load': [round(before, 1), round(os.getloadavg()[0], 1)], 'starts': self.starts, 'rows': rows}


def main():
    words = [word for word in sys.argv[1:] if not word.startswith('--')]
    quick = '--quick' in sys.argv or bool(os.environ.get('QUICK'))
    wanted = words[1:] or list(report.PARTS)
    if unknown := set(wanted) - set(report.PARTS):
        sys.exit(f"bench: no part is named {', '.join(unknown)}: {', '.join(report.PARTS)}")
    bench = Bench(words[0] if words else 'build', quick)
    if set(wanted) & {'programs', 'unseen', 'cells', 'load'}:
        bench.set_up()
    for part in wanted:
        report.publish(bench.build, part, bench.measure(part), quick)
    report.verdicts(bench.build, wanted, quick)


if __name__ == '__main__':
    main()

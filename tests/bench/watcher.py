#!/usr/bin/python3
"""What it costs that glovebox-init watches memory and processes where no control group counts them: watcher.py BUILD.

Two services of an ordinary user take turns, run by run: one as it is, and one whose glovebox-init is linked without the
watcher (without_watcher.c). The second time both have one processor between them, so that what the watcher uses is taken
from the program."""
import os
import random
import subprocess
import sys
import tempfile
import time

import pairs
import report
import services

PLAIN = 'glovebox-init_without_watcher'
ALLOCATIONS = ("for turn in range(8):\n    held = []\n    for _ in range(40): held.append(bytearray(b'x' * (1 << 20)))\n"
               "print('allocated')")
SHELL = ("import subprocess\n"
         "subprocess.run(['sh', '-c', 'i=0; while [ $i -lt 60 ]; do /bin/true; (:); i=$((i + 1)); done'], check=True)\n"
         "print('forked')")
# name, program, what it prints, pairs
PROGRAMS = [('hello', "print('hello sandbox')", 'hello sandbox', 200), ('allocations', ALLOCATIONS, 'allocated', 60),
            ('shell loop', SHELL, 'forked', 60),
            ('describe', ("import numpy as np, pandas as pd\nframe = pd.DataFrame({'a': np.arange(1000.0)})\n"
                          "print(frame.describe())"), 'count', 80)]
PLACES = {'': None, ', one processor': {0}}


def ask(client, code, expected):
    time.sleep(random.uniform(0.02, 0.04))
    took, result = client.run(code)
    if result['status'] != 'ok' or expected not in result['stdout']:
        raise RuntimeError(f"watcher: {result['status']} {result['error']} {result['stderr']}")
    if 'cgroup_memory' not in result['isolation']['degraded']:
        raise RuntimeError('a control group counts here, and nothing is watched')
    return took, result['usage']['start']


def measure(build, scratch, processors, part):
    """{name: [(milliseconds with the watcher, without)]}; `part` of the pairs."""
    took = {}
    user = services.USER if os.geteuid() == 0 else os.geteuid()
    with services.service(build, scratch, f'watched{part}{bool(processors)}', {}, user, processors) as (_, watched), \
            services.service(build, scratch, f'plain{part}{bool(processors)}', {'glovebox-init': PLAIN}, user, processors) \
            as (_, plain):
        clients = [('with', watched), ('without', plain)]
        turns = [program for program in PROGRAMS for _ in range(max(8, int(program[3] * part)))]
        random.shuffle(turns)
        for name, code, expected, _ in PROGRAMS:  # what is first used is loaded
            for _, client in clients * 3:
                ask(client, code, expected)
        for name, code, expected, _ in turns:
            each = {kind: ask(client, code, expected) for kind, client in random.sample(clients, 2)}
            if {start for _, start in each.values()} == {'parked'}:
                took.setdefault(name, []).append((each['with'][0], each['without'][0]))
    return took


def measure_all(build, part=1.0):
    """The rows of the bench."""
    subprocess.run(['ninja', '-C', build, '--quiet', PLAIN], check=True)
    rows = []
    for place, processors in PLACES.items():
        with tempfile.TemporaryDirectory(prefix='glovebox-watcher-') as scratch:
            os.chmod(scratch, 0o755)
            took = measure(os.path.abspath(build), scratch, processors, part)
        for name, *_ in PROGRAMS:
            both = took[name]
            rows.append(report.timed(f'watched {name}{place}, of unwatched', [each for each, _ in both]) | pairs.compared(both))
    return rows


def main():
    for row in measure_all(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1.0):
        print('{name:48} × {share:.3f} ({share_interval[0]:.3f} to {share_interval[1]:.3f}), {difference_ms:+.2f} ms '
              '({difference_interval[0]:+.2f} to {difference_interval[1]:+.2f}), {runs} pairs'.format(**row))


if __name__ == '__main__':
    main()

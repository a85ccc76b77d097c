#!/usr/bin/python3
"""What a template costs beside another: templates.py BUILD TEMPLATE OTHER [PAIRS], two folders of templates with a set of
imports for pandas, as STATE/templates/python and STATE/templates/python-small.

Two services take turns, run by run, in random order; each has one of both under the name `python`. Then what a parked sandbox
of each weighs (memory.py), three times by turns."""
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

import bench
import load
import memory
import pairs
import report
import services

PROGRAMS = {'describe': (bench.DESCRIBE, 'count'), 'savefig': (bench.SAVEFIG, 'saved'), 'import pandas': (bench.DATA_HELLO, 'hello')}
WEIGHED, SHRINKS_S = 3, 10


def state_of(scratch, name, template):
    """A state folder in which the template is called python."""
    place = pathlib.Path(scratch, f'state-{name}', 'templates')
    place.mkdir(parents=True)
    (place / 'python').symlink_to(pathlib.Path(template).resolve())
    return str(place.parent)


def start(build, scratch, name, template):
    services.STATE = state_of(scratch, name, template)  # service() reads it when it begins
    return services.service(os.path.abspath(build), scratch, name, {})


def ask(client, code, expected):
    time.sleep(random.uniform(0.1, 0.15))
    took, result = client.run(code)
    if result['status'] != 'ok' or expected not in result['stdout']:
        raise RuntimeError(f"templates: {result['status']} {result['error']} {result['stderr']}")
    return took, result['usage']['start']


def turns(clients, count):
    """{program: [(milliseconds in the first template, in the other)]}, of sandboxes that were parked."""
    took = {}
    for _ in range(4):  # what is first used is loaded
        for code, expected in PROGRAMS.values():
            for client in clients.values():
                ask(client, code, expected)
    order = [name for name in PROGRAMS for _ in range(count)]
    random.shuffle(order)
    for name in order:
        each = {which: ask(clients[which], *PROGRAMS[name]) for which in random.sample(list(clients), 2)}
        if {begin for _, begin in each.values()} == {'parked'}:
            took.setdefault(name, []).append((each['this'][0], each['other'][0]))
    return took


def weights(served):
    found = {which: [] for which in served}
    for _ in range(WEIGHED):
        for which, (process, _) in random.sample(list(served.items()), 2):
            path = next(word for word in process.args if word.endswith('/socket'))
            load.flat_out(path, 8, bench.DATA_HELLO, b'hello sandbox', 3, 0.5)
            weight = memory.while_it_shrinks(process.pid, load.Client(path), 'data', SHRINKS_S)
            if weight:
                found[which].append(weight)
    return found


def main():
    build, this, other = sys.argv[1:4]
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 60
    with tempfile.TemporaryDirectory(prefix='glovebox-bench-') as scratch:
        os.chmod(scratch, 0o755)
        with start(build, scratch, 'this', this) as one, start(build, scratch, 'other', other) as two:
            served = {'this': one, 'other': two}
            for name, both in turns({which: client for which, (_, client) in served.items()}, count).items():
                row = report.timed(name, [each for each, _ in both]) | pairs.compared(both)
                print(f"{name:14} {row['p50_ms']:.2f} ms, of the other's {statistics.median(each for _, each in both):.2f}: "
                      f"× {row['share']:.3f} ({row['share_interval'][0]:.3f} to {row['share_interval'][1]:.3f}), {row['runs']} pairs")
            weighed = weights(served) if os.geteuid() == 0 else {}
    for key in ('mib', 'leaf_mib', 'leaf_most_mib', 'beside_mib'):
        print(f"parked data, {key}: " + '; '.join(
            f"{which} {statistics.median(one[key] for one in each):.3f} ({', '.join(f'{one[key]:.3f}' for one in each)})"
            for which, each in weighed.items() if each))


if __name__ == '__main__':
    main()

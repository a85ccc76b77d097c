#!/usr/bin/python3
"""What a template costs beside another: templates.py BUILD TEMPLATE OTHER [PAIRS], two folders of templates with a set of
imports for pandas, as STATE/templates/python and STATE/templates/python-small.

Two services take turns, run by run, in random order; each has one of both under the name `python`. Then what a parked sandbox
of each weighs (memory.py), three times by turns: while the pool shrinks after a burst, and by 26 and 4 that wait of each set. Of
the latter the light set's part is taken off, as weighed alone with the template `minimal` beside the first one."""
import contextlib
import os
import pathlib
import random
import signal
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


def state_of(scratch, name, template, called):
    """A state folder in which the template has this name."""
    place = pathlib.Path(scratch, f'state-{name}', 'templates')
    place.mkdir(parents=True)
    (place / called).symlink_to(pathlib.Path(template).resolve())
    return str(place.parent)


def start(build, scratch, name, template, called='python'):
    state = state_of(scratch, name, template, called)
    pathlib.Path(scratch, f'{name}.yaml').write_text('pool_min: 2\n', encoding='utf-8')
    return services.service(os.path.abspath(build), scratch, name, {}, slots=128, config=f'{scratch}/{name}.yaml',
                            state=state)


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


def weigh_by_turns(scratch, served, times):
    """{service: [MiB of a parked sandbox of each of its sets together]}"""
    found = {which: [] for which in served}
    for _ in range(times):
        for which, (process, _) in random.sample(list(served.items()), len(served)):
            path = next(word for word in process.args if word.endswith('/socket'))

            def use(path=path, what=('1', 'minimal') if which == 'light' else (bench.DATA_HELLO, 'data')):
                load.Client(path).run(what[0], policy=what[1])

            def set_least(count, which=which, process=process):
                pathlib.Path(scratch, f'{which}.yaml').write_text(f'pool_min: {count}\n', encoding='utf-8')
                process.send_signal(signal.SIGHUP)

            if weight := memory.of_one(process.pid, set_least, use):
                found[which].append(weight)
    return found


def weigh(build, templates, times=WEIGHED):
    """{name: MiB of a parked sandbox of its data set, not prewarmed}, and how it came about; `templates`: name -> folder."""
    light = pathlib.Path(next(iter(templates.values()))).parent / 'minimal'
    with tempfile.TemporaryDirectory(prefix='glovebox-bench-') as scratch, contextlib.ExitStack() as stack:
        os.chmod(scratch, 0o755)
        served = {name: stack.enter_context(start(build, scratch, name, folder)) for name, folder in templates.items()}
        served['light'] = stack.enter_context(start(build, scratch, 'light', light, 'minimal'))
        found = weigh_by_turns(scratch, served, times)
    if not all(found.values()):
        raise RuntimeError('the pool did not stand still at 26 and 4')
    each = statistics.median(found['light'])
    return {name: statistics.median(found[name]) - each for name in templates}, found


def rows(build, state, times):
    """Of `make bench`: the template python, and python-small where it is built."""
    folders = {name: f'{state}/templates/{name}' for name in ('python', 'python-small') if os.path.isdir(f'{state}/templates/{name}')}
    return [{'name': f'parked data of {name}, 26 against 4', 'mib': mib} for name, mib in weigh(build, folders, times)[0].items()]


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
    if os.geteuid() == 0:
        mib, found = weigh(build, {'this': this, 'other': other})
        print(f"parked data, 26 against 4: this {mib['this']:.3f} MiB, other {mib['other']:.3f}: × {mib['this'] / mib['other']:.3f}; "
              'with the light set: ' + '; '.join(f"{name} {', '.join(f'{one:.3f}' for one in each)}" for name, each in found.items()))


if __name__ == '__main__':
    main()

#!/usr/bin/python3
"""What the receipt adds to a warm run: receipts.py BUILD [RUNS]. Two services take turns, run by run: gloveboxd as it
is, and one that is linked without receipts (without_receipts.c). The difference of their medians is the receipt."""
import contextlib
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import load

HELLO = "print('hello sandbox')"
PLAIN = 'gloveboxd_without_receipts'
STATE = os.environ.get('GLOVEBOX_STATE', '/var/lib/glovebox')


def parts(build, scratch, name, daemon):
    """A folder in which `glovebox` finds its parts, with another gloveboxd."""
    folder = f'{scratch}/{name}'
    os.mkdir(folder)
    for part in ('glovebox-spawner', 'glovebox-init', 'glovebox-egress', 'glovebox-notify'):
        shutil.copy(f'{build}/{part}', f'{folder}/{part}')
    shutil.copy(f'{build}/{daemon}', f'{folder}/gloveboxd')
    return folder


@contextlib.contextmanager
def service(build, scratch, name, daemon):
    """Gives a client. Each has a state of its own, and so a log of its own."""
    state = f'{scratch}/{name}-state'
    os.mkdir(state)
    os.symlink(f'{STATE}/templates', f'{state}/templates')
    environment = os.environ | {'GLOVEBOX_LIBEXEC': parts(build, scratch, name, daemon), 'GLOVEBOX_MEASURE_TEMPLATES': 'false'}
    with open(f'{scratch}/{name}.log', 'w', encoding='utf-8') as log:
        process = subprocess.Popen([f'{build}/glovebox', 'serve', '--state', state, '--socket', f'{scratch}/{name}.sock',
                                    '--slots', '32'], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        for _ in range(100):
            with contextlib.suppress(OSError):
                client = load.Client(f'{scratch}/{name}.sock')
                break
            time.sleep(0.1)
        else:
            raise RuntimeError(f'{name} does not answer')
        yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def measure(build, scratch, runs):
    """Milliseconds of warm runs: {name: [each]}, and how many of them had a receipt."""
    took, receipts = {'with': [], 'without': []}, {'with': 0, 'without': 0}
    with service(build, scratch, 'with', 'gloveboxd') as one, service(build, scratch, 'without', PLAIN) as other:
        clients = {'with': one, 'without': other}
        for turn in range(runs + 20):
            for name in random.sample(sorted(clients), 2):
                time.sleep(random.uniform(0.015, 0.025))
                each, result = clients[name].run(HELLO)
                if result['status'] != 'ok':
                    raise RuntimeError(f"{name}: {result['status']} {result['error']}")
                if turn >= 20 and result['usage']['start'] == 'parked':
                    took[name].append(each)
                    receipts[name] += result['receipt'] is not None
    if receipts['with'] != len(took['with']) or receipts['without'] != 0:
        raise RuntimeError(f'receipts where there should be none, or none where there should be: {receipts}')
    return took


def measure_all(build, runs):
    """The row of the bench."""
    subprocess.run(['ninja', '-C', build, '--quiet', PLAIN], check=True)
    with tempfile.TemporaryDirectory(prefix='glovebox-receipts-') as scratch:
        os.chmod(scratch, 0o755)
        took = measure(os.path.abspath(build), scratch, runs)
    middle = {name: statistics.median(each) for name, each in took.items()}
    return {'name': 'receipt, added to a warm run', 'p50_ms': middle['with'] - middle['without'], 'p95_ms': None,
            'min_ms': None, 'ratio_to_bare': None}, took


def main():
    row, took = measure_all(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
    for name, each in took.items():
        cut = statistics.quantiles(each, n=20)
        print(f'{name:8} {len(each)} runs: p50 {statistics.median(each):.3f} ms, p5 {cut[0]:.3f}, p25 {cut[4]:.3f}, '
              f'p75 {cut[14]:.3f}, p95 {cut[18]:.3f}')
    print(f"{row['name']}: {row['p50_ms']:.3f} ms at the median")


if __name__ == '__main__':
    main()

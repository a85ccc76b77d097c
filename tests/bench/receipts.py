#!/usr/bin/python3
"""What the receipt adds to a warm run: receipts.py BUILD [RUNS]. Two services take turns, run by run: gloveboxd as it
is, and one that is linked without receipts (without_receipts.c). The difference of their medians is the receipt."""
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import pairs
import services

HELLO = "print('hello sandbox')"
PLAIN = 'gloveboxd_without_receipts'


def measure(build, scratch, runs):
    """Milliseconds of warm runs: {name: [each]}, and how many of them had a receipt."""
    took, receipts = {'with': [], 'without': []}, {'with': 0, 'without': 0}
    with services.service(build, scratch, 'with', {}) as (_, one), \
            services.service(build, scratch, 'without', {'gloveboxd': PLAIN}) as (_, other):
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
    added = pairs.between(statistics.median, took['with'], took['without'], lambda one, other: one - other)
    return {'name': 'receipt, added to a warm run', 'p50_ms': added[0], 'p50_ms_interval': added[1],
            'runs': len(took['with'])}, took


def main():
    row, took = measure_all(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
    for name, each in took.items():
        cut = statistics.quantiles(each, n=20)
        print(f'{name:8} {len(each)} runs: p50 {statistics.median(each):.3f} ms, p5 {cut[0]:.3f}, p25 {cut[4]:.3f}, '
              f'p75 {cut[14]:.3f}, p95 {cut[18]:.3f}')
    print(f"{row['name']}: {row['p50_ms']:.3f} ms at the median")


if __name__ == '__main__':
    main()

#!/usr/bin/python3
"""Measures the part of a branch's memory copy that this machine needs in any case: branch_floor.py BUILD [ROUNDS
[REST]]. In random order, each at once and after REST seconds: 170 MiB (a branch's) and 110 (what differs from its
zygote), touched or copied from another process through a pipe, in pages of 4 KiB and in huge ones: branch_floor.c."""
import itertools
import os
import random
import statistics
import subprocess
import sys
import time

import pairs

WAYS = ('touch', 'huge', 'copy', 'copyhuge')
SIZES = (170, 110)


def main():
    build = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    rest = float(sys.argv[3]) if len(sys.argv) > 3 else 10
    subprocess.run(['ninja', '-C', build, '--quiet', 'bench_branch_floor'], check=True)
    took = {one: [] for one in itertools.product(WAYS, SIZES, (0, rest))}
    with subprocess.Popen([f'{build}/bench_branch_floor'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as floor:
        def measure(way, size):
            floor.stdin.write(f'{way} {size}\n')
            floor.stdin.flush()
            return float(floor.stdout.readline())

        measure('touch', SIZES[0])  # after which its source has its memory, too
        measure('copy', SIZES[0])
        for _ in range(rounds):
            for way, size, seconds in random.sample(sorted(took), len(took)):
                if seconds:
                    time.sleep(seconds)
                else:
                    measure('touch', SIZES[0])  # frees what the next one gets
                took[way, size, seconds].append(measure(way, size))
        floor.stdin.close()
    print('load average', *os.getloadavg())
    for (way, size, seconds), each in took.items():
        low, high = pairs.interval(each)
        print(f'{way:8} {size} MiB after {seconds:2.0f} s, {len(each)}: min {min(each):.1f} ms, '
              f'p50 {statistics.median(each):.1f} ({low:.1f} to {high:.1f}), max {max(each):.1f}')


if __name__ == '__main__':
    main()

"""From samples to rows, and from rows to a table, JSON, a page and a chart that glovebox itself draws."""
import json
import math
import os
import platform
import re
import shutil
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def read_budgets():
    """budgets.yaml, of which only "name: { key: number, ... }" is needed."""
    budgets = {}
    with open(f'{HERE}/budgets.yaml', encoding='utf-8') as file:
        for line in file:
            if found := re.match(r'([^#:]+):\s*{(.*)}', line):
                pairs = (pair.split(':') for pair in found[2].split(','))
                budgets[found[1]] = {key.strip(): float(value) for key, value in pairs}
    return budgets


def quantile(values, share):
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def judge(row, budget):
    """Held or not. The ratio decides where there is one; the absolute figure is given beside it."""
    row['budget'] = budget
    if not budget:
        return
    facts = {'p50_ms': row.get('p50_ms'), 'ratio': row.get('ratio_to_bare'), 'mib': row.get('mib'),
             'per_second_least': row.get('per_second'), 'share_least': row.get('share'), 'share': row.get('share')}
    verdicts = {key: facts[key] >= limit if key.endswith('_least') else facts[key] <= limit
                for key, limit in budget.items() if facts[key] is not None}
    row['held'] = verdicts.get('ratio', all(verdicts.values()) if verdicts else None)
    row['held_each'] = verdicts


def rows_of(samples, rates, weights):
    rows = []
    for name, values in samples.items():
        bare = samples.get(f"{name.split()[0]} bare")
        # The bare run of "hello, data" is another program: no ratio.
        ratio = quantile(values, 0.5) / quantile(bare, 0.5) if bare and not name.endswith(', data') else None
        rows.append({'name': name, 'p50_ms': quantile(values, 0.5), 'p90_ms': quantile(values, 0.9),
                     'p95_ms': quantile(values, 0.95), 'min_ms': min(values), 'runs': len(values), 'ratio_to_bare': ratio,
                     'ratio_of_min': min(values) / min(bare) if ratio else None})
    for name, (rate, took, wrong) in rates.items():
        rows.append({'name': name, 'per_second': rate, 'wrong': wrong, 'runs': len(took),
                     'p50_ms': quantile(took, 0.5) if took else None,
                     'p90_ms': quantile(took, 0.9) if took else None,
                     'p95_ms': quantile(took, 0.95) if took else None,
                     'min_ms': min(took) if took else None, 'ratio_to_bare': None})
    for kind, weight in weights.items():
        if weight:
            rows.append({'name': f'parked {kind}', **weight, 'p50_ms': None, 'p90_ms': None,
                         'p95_ms': None, 'min_ms': None, 'ratio_to_bare': None})
    return judge_all(rows)


def judge_all(rows):
    budgets = read_budgets()
    for row in rows:
        row.setdefault('held', None)
        judge(row, budgets.get(row['name']))
    return rows


def number(value, places=None):
    if value is None:
        return ''
    return f'{value:.{places if places is not None else 2 if value < 10 else 1 if value < 100 else 0}f}'


def spell(budget):
    texts = {'p50_ms': 'p50 ≤ {:g} ms', 'ratio': 'ratio ≤ {:g}', 'mib': '≤ {:g} MiB',
             'per_second_least': '≥ {:g}/s', 'share_least': 'share ≥ {:g}', 'share': 'share ≤ {:g}'}
    return ', '.join(texts[key].format(value) for key, value in (budget or {}).items())


def verdict(row):
    if row['held'] is None:
        return ''
    others = [key for key, held in row['held_each'].items() if key != 'ratio' and held != row['held']]
    word = 'held' if row['held'] else '**missed**'
    # A ratio that is held while the machine is too slow for the absolute figure, or the other way.
    return f"{word} (by ratio; p50 {'missed' if row['held'] else 'held'})" if others else word


def table(rows):
    lines = ['| what | min ms | p50 ms | p90 ms | to bare | share | runs/s | MiB | runs | budget | verdict |',
             '|---|--:|--:|--:|--:|--:|--:|--:|--:|---|---|']
    for row in rows:
        cells = [row['name'], number(row['min_ms']), number(row['p50_ms']), number(row.get('p90_ms')),
                 number(row['ratio_to_bare'], 3) if (row['ratio_to_bare'] or 9) < 1 else
                 number(row['ratio_to_bare']),
                 number(row.get('share')), number(row.get('per_second'), 0), number(row.get('mib')), str(row.get('runs', '')),
                 spell(row['budget']), verdict(row)]
        lines.append(f"| {' | '.join(cells)} |")
    return '\n'.join(lines) + '\n'


def for_terminal(text):
    rows = [[cell.strip().replace('**', '') for cell in line.strip('|').split('|')]
            for line in text.splitlines() if '---' not in line]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return '\n'.join('  '.join(cell.ljust(width) if i in (0, 9, 10) else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
                     for row in rows)


def machine():
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        model = next((line.split(':', 1)[1].strip() for line in file if line.startswith('model name')),
                     platform.machine())
    with open('/proc/meminfo', encoding='utf-8') as file:
        memory = int(next(line for line in file if line.startswith('MemTotal')).split()[1]) / (1 << 20)
    groups = 'v2' if os.path.exists('/sys/fs/cgroup/cgroup.controllers') else 'v1 or hybrid'
    return f'{os.cpu_count()} processors ({model}), {memory:.0f} GiB, control groups {groups}'


def publish(rows, bench, rounds, loads):
    with open(f'{HERE}/benchmark.md.in', encoding='utf-8') as file:
        page = file.read()
    facts = {'machine': machine(), 'kernel': platform.release(), 'load': [round(one, 1) for one in loads],
             'rounds': rounds, 'when': time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime()),
             'is_quick': bench.quick, 'left_out': bench.left_out, 'starts': bench.starts}
    with open(f'{bench.build}/bench.json', 'w', encoding='utf-8') as file:
        json.dump({**facts, 'rows': rows}, file, indent=1)
    told = [row for row in rows if row['held'] is not None]
    missed = [row['name'] for row in told if not row['held']]
    text = table(rows)
    print(f"\n{for_terminal(text)}\n")
    print(f"{len(told) - len(missed)} of {len(told)} budgets held"
          f"{'; missed: ' + '; '.join(missed) if missed else ''}; load {facts['load']}, {rounds} rounds")
    for one in bench.left_out:
        print(f'left out: {one}')
    parked = {row['name']: row for row in rows if row['name'].startswith('parked')}
    leaf = '; '.join(f"{name.split()[1]} {row['leaf_mib']:.2f} MiB in the sandbox's own group "
                     f"({row['leaf_most_mib']:.2f} if it has been prewarmed), {row['mib']:.2f} MiB with all that is charged elsewhere "
                     f"({row['most']} to {row['least']} parked)" for name, row in parked.items())
    page = (page.replace('@TABLE@', text).replace('@MACHINE@', facts['machine'])
            .replace('@KERNEL@', facts['kernel']).replace('@WHEN@', facts['when'])
            .replace('@LOAD@', ', '.join(map(str, facts['load']))).replace('@ROUNDS@', str(rounds))
            .replace('@HELD@', f'{len(told) - len(missed)} of {len(told)}')
            .replace('@MISSED@', '; '.join(missed) or 'none')
            .replace('@PARKED@', leaf or 'not measured')
            .replace('@LEFT_OUT@', '; '.join(bench.left_out) or 'none'))
    with open(f'{bench.build}/benchmark.md', 'w', encoding='utf-8') as file:
        file.write(page)
    drawn = subprocess.run([bench.glovebox, 'run', '--private', '-p', 'data', '--file',
                            f'{bench.build}/bench.json', '--out', bench.build, f'{HERE}/chart.py'],
                           check=False)
    if drawn.returncode == 0 and not bench.quick:
        docs = f'{HERE}/../../docs'
        for name in ('benchmark.md', 'bench.png'):
            shutil.copyfile(f'{bench.build}/{name}', f'{docs}/{name}')

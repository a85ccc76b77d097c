"""Makes rows from samples, and from rows a table, JSON, a page and a chart, which glovebox itself draws."""
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import textwrap

import pairs

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(HERE, '../../docs')
# Each can be measured alone, in the order of the page.
PARTS = {'programs': 'Programs, beside bare python3 and other tools', 'unseen': 'Pandas programs that are not rehearsed',
         'cells': 'Cells, sessions and branches', 'load': 'Throughput, and memory of parked sandboxes',
         'growth': 'Time by number of inputs, outputs and sessions', 'watcher': 'Limits without control groups',
         'others': 'Network egress, and receipts'}


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


# What a budget is compared with: key of budgets.yaml -> key of the row.
FIGURES = {'p50_ms': 'p50_ms', 'ratio': 'ratio_to_bare', 'mib': 'mib', 'per_second_least': 'per_second', 'share_least': 'share',
           'share': 'share', 'daemon_ms': 'daemon_ms'}


def judge(row, budget):
    """Held or not. The ratio decides where there is one; the absolute figure is given beside it."""
    row['budget'] = budget
    if not budget:
        return
    verdicts = {key: row[FIGURES[key]] >= limit if key.endswith('_least') else row[FIGURES[key]] <= limit
                for key, limit in budget.items() if row.get(FIGURES[key]) is not None}
    row['held'] = verdicts.get('ratio', all(verdicts.values()) if verdicts else None)
    row['held_each'] = verdicts


def timed(name, values, **more):
    """The row of some times of one kind."""
    return {'name': name, 'p50_ms': statistics.median(values), 'p50_ms_interval': pairs.interval(values),
            'p90_ms': quantile(values, 0.9), 'p95_ms': quantile(values, 0.95), 'min_ms': min(values), 'runs': len(values), **more}


def rows_of(samples, starts=None):
    """`starts`: of warm runs, how many found a parked sandbox; the others are misses of the pool."""
    rows = []
    for name, values in samples.items():
        row = timed(name, values)
        bare = samples.get(bare_of(name, samples))
        if bare:
            row['ratio_to_bare'], row['ratio_to_bare_interval'] = pairs.between(
                statistics.median, values, bare, lambda one, other: one / other)
            row['ratio_of_min'] = min(values) / min(bare)
        if name.endswith(('warm', 'of a pair')):
            row['misses'] = sum((starts or {}).get(name, {}).values()) - len(values)
        rows.append(row)
    return judge_all(rows)


def bare_of(name, samples):
    """The row "hello bare" of "hello warm". That of "hello empty pool, data" is another program."""
    names = [one for one in samples if one.endswith(' bare') and name.startswith(one.removesuffix('bare'))]
    return names[0] if names and not name.endswith(', data') else None


def middle_of(rows, name):
    """Of several programs the one in the middle, by its ratio; the interval is its own."""
    ordered = sorted((row for row in rows if row.get('ratio_to_bare')), key=lambda row: row['ratio_to_bare'])
    middle = ordered[len(ordered) // 2]
    return {key: middle[key] for key in ('ratio_to_bare', 'ratio_to_bare_interval', 'p50_ms', 'p50_ms_interval')} | {'name': name}


def rows_of_load(rates):
    return judge_all([{**(timed(name, took) if took else {'name': name}), 'per_second': rate, 'refused': refused}
                      for name, (rate, took, refused) in rates.items()])


def rows_of_memory(weights):
    """Of each kind: the slope, one that waits and has not been prewarmed, and one that is taken next and has."""
    rows = []
    for kind, weight in weights.items():
        if weight:
            rows += [{'name': f'parked {kind}', **weight},
                     {'name': f'parked {kind}, not prewarmed', 'mib': weight['leaf_mib'] + weight['beside_mib']},
                     {'name': f'parked {kind}, the largest', 'mib': weight['leaf_most_mib'] + weight['beside_mib']}]
    return judge_all(rows)


def rows_of_growth(samples):
    rows = []
    for name, each in samples.items():
        took, used = [one for one, _ in each if one is not None], [used for _, used in each]
        row = timed(name, took) if took else {'name': name, 'runs': len(each)}
        rows.append(row | {'daemon_ms': statistics.median(used), 'daemon_ms_interval': pairs.interval(used)})
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
    return f'{value:.{places if places is not None else 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0}f}'


def with_interval(row, key):
    text = number(row.get(key))
    low, high = row.get(f'{key}_interval') or (None, None)
    return f'{text} ({number(low)} to {number(high)})' if low is not None else text


def spell(budget):
    texts = {'p50_ms': 'p50 ≤ {:g} ms', 'ratio': 'ratio ≤ {:g}', 'mib': '≤ {:g} MiB', 'daemon_ms': 'gloveboxd ≤ {:g} ms',
             'per_second_least': '≥ {:g}/s', 'share_least': 'share ≥ {:g}', 'share': 'share ≤ {:g}'}
    return ', '.join(texts[key].format(value) for key, value in (budget or {}).items())


def verdict(row):
    if row['held'] is None:
        return ''
    others = [key for key, held in row['held_each'].items() if key != 'ratio' and held != row['held']]
    word = 'held' if row['held'] else '**missed**'
    # A ratio that is held while the machine is too slow for the absolute figure, or the other way.
    return f"{word} (by ratio; p50 {'missed' if row['held'] else 'held'})" if others else word


# Heading and text of each column. A table has those in which one of its rows has something to say.
COLUMNS = {'what': lambda row: row['name'], 'min ms': lambda row: number(row.get('min_ms')),
           'p50 ms': lambda row: with_interval(row, 'p50_ms'), 'p90 ms': lambda row: number(row.get('p90_ms')),
           'to bare': lambda row: with_interval(row, 'ratio_to_bare'), 'share': lambda row: with_interval(row, 'share'),
           'gloveboxd ms': lambda row: with_interval(row, 'daemon_ms'), 'runs/s': lambda row: number(row.get('per_second'), 0),
           'MiB': lambda row: number(row.get('mib')), 'runs': lambda row: str(row.get('runs') or ''),
           'refused': lambda row: str(row.get('refused') or ''), 'misses': lambda row: str(row.get('misses', '')), 'budget': lambda row: spell(row['budget']), 'verdict': verdict}
WORDS = ('what', 'budget', 'verdict')  # the others are numbers


def table(rows):
    cells = {head: [text(row) for row in rows] for head, text in COLUMNS.items()}
    heads = [head for head, column in cells.items() if any(column)]
    lines = [heads, ['---' if head in WORDS else '--:' for head in heads], *zip(*(cells[head] for head in heads))]
    return '\n'.join(f"| {' | '.join(line)} |" for line in lines) + '\n'


def for_terminal(text):
    rows = [[cell.strip().replace('**', '') for cell in line.strip('|').split('|')]
            for line in text.splitlines() if '---' not in line]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return '\n'.join('  '.join(cell.ljust(width) if rows[0][i] in WORDS else cell.rjust(width)
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


# What decides whether a row got worse, and whether more is better.
JUDGED = (('to bare', False), ('share', False), ('gloveboxd ms', False), ('runs/s', True), ('MiB', False), ('p50 ms', False))


def figures_of(page):
    """{row: {column: (value, least, most)}} of all tables of a page. Without an interval it is taken for a tenth."""
    found, heads = {}, []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip('|').split('|')] if line.startswith('|') else []
        if cells and cells[0] == 'what':
            heads = cells
        elif cells and len(cells) == len(heads) and not cells[0].startswith('---'):
            row = found.setdefault(cells[0], {})
            for head, cell in zip(heads, cells):
                if numbers := [float(word) for word in re.findall(r'[\d.]+', cell)] if head in dict(JUDGED) else None:
                    row[head] = tuple(numbers) if len(numbers) == 3 else (numbers[0], numbers[0] * 0.9, numbers[0] * 1.1)
        elif not cells:
            heads = []
    return found


def worse(page, before, names):
    """Lines on which of the named rows got worse: the intervals of both do not meet. The first of JUDGED that both have decides."""
    lines, old = [], figures_of(before)
    for name, row in figures_of(page).items():
        head, more_is_better = next(((head, more) for head, more in JUDGED if head in row and head in old.get(name, {})), (None, 0))
        if head is None or name not in names:
            continue
        more_is_better |= name.endswith('beside loopback')
        (now, low, high), (then, low_then, high_then) = row[head], old[name][head]
        if high < low_then if more_is_better else low > high_then:
            lines.append(f'worse: {name}, {head}: {then:g} ({low_then:g} to {high_then:g}) -> {now:g} ({low:g} to {high:g})')
    return lines


def assemble(bench):
    """The page, of all parts that have been measured, and what the budgets say."""
    with open(f'{HERE}/benchmark.md.in', encoding='utf-8') as file:
        page = file.read()
    parts = [bench['parts'][name] for name in PARTS if name in bench['parts']]
    told = [row for row in bench['rows'] if row['held'] is not None]
    missed = [row['name'] for row in told if not row['held']]
    tables = '\n'.join(f"### {PARTS[name]}\n\n{part['when']}, load average before and after {part['load'][0]}, {part['load'][1]}"
                       f"{', quick' if part['is_quick'] else ''}.\n\n{table(part['rows'])}"
                       for name, part in bench['parts'].items() if name in PARTS)
    left_out = [one for part in parts for one in part['left_out']]
    summary = [f"Machine: kernel {bench['kernel']}, {bench['machine']}. Budgets held: {len(told) - len(missed)} of {len(told)}. "
               f"Left out: {'; '.join(left_out) or 'nothing'}.",
               f"Missed ([where their time goes](#missed-budgets)): {'; '.join(missed) or 'none'}."]
    page = page.replace('@TABLES@', tables).replace('@SUMMARY@', '\n\n'.join(
        textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) for text in summary))
    return page, f"{len(told) - len(missed)} of {len(told)} budgets held{'; missed: ' + '; '.join(missed) if missed else ''}"


def read_bench(build):
    if not os.path.exists(f'{build}/bench.json'):
        return {'parts': {}}
    with open(f'{build}/bench.json', encoding='utf-8') as file:
        return json.load(file)


def publish(build, name, part, is_quick):
    """Prints a part and keeps it in bench.json, beside the others that are there, but for quick ones beside a whole one."""
    kept = read_bench(build).get('parts', {})
    parts = {each: its for each, its in kept.items() if is_quick or not its['is_quick']} | {name: part}
    bench = {'machine': machine(), 'kernel': platform.release(), 'when': part['when'], 'load': part['load'], 'is_quick': is_quick,
             'parts': {each: parts[each] for each in PARTS if each in parts}}
    bench['rows'] = [row for each in bench['parts'].values() for row in each['rows']]
    with open(f'{build}/bench.json', 'w', encoding='utf-8') as file:
        json.dump(bench, file, indent=1)
    print(f"\n{PARTS[name]}\n{for_terminal(table(part['rows']))}")
    print(''.join(f'left out: {one}\n' for one in part['left_out']), end='', flush=True)


def page_before():
    """As the last commit has it: the file may be one that was written a moment ago."""
    shown = subprocess.run(['git', '-c', 'safe.directory=*', '-C', DOCS, 'show', 'HEAD:./benchmark.md'], capture_output=True, check=False)
    if shown.returncode == 0:
        return shown.stdout.decode()
    with open(f'{DOCS}/benchmark.md', encoding='utf-8') as file:
        return file.read()


def verdicts(build, names, is_quick):
    """What holds, what got worse, and the page, which takes its place in docs/ when all parts have been measured."""
    bench = read_bench(build)
    page, text = assemble(bench)
    print(f'\n{text}')
    lines = worse(page, page_before(), {row['name'] for name in names for row in bench['parts'][name]['rows']})
    print('\n'.join(lines) or 'nothing got worse than in docs/benchmark.md')
    with open(f'{build}/benchmark.md', 'w', encoding='utf-8') as file:
        file.write(page)
    drawn = subprocess.run([f'{build}/glovebox', 'run', '--private', '-p', 'data', '--file',
                            f'{build}/bench.json', '--out', build, f'{HERE}/chart.py'],
                           check=False) if 'programs' in bench['parts'] else None
    if lacking := [name for name in PARTS if name not in bench['parts']]:
        print(f"docs/benchmark.md stays: not measured yet: {', '.join(lacking)}")
    elif not is_quick:
        shutil.copyfile(f'{build}/benchmark.md', f'{DOCS}/benchmark.md')
        if drawn and drawn.returncode == 0:
            shutil.copyfile(f'{build}/bench.png', f'{DOCS}/bench.png')

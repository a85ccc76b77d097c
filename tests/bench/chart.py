"""Draws bench.png from bench.json. Runs inside a sandbox: glovebox draws the chart of itself."""
import json

import matplotlib.pyplot as plt

OURS, BARE, OTHERS = '#1b7f5c', '#444444', '#b9bec6'
NAMES = {'warm': 'glovebox, parked', 'empty pool, light': 'glovebox, empty pool',
         'empty pool': 'glovebox, empty pool', 'CLI with daemon': 'glovebox run, daemon',
         'cold CLI': 'glovebox run, no daemon', 'bare': 'bare python3'}
TITLES = {'hello': "print('hello sandbox')", 'describe': 'pandas describe', 'imports': 'eight lines with imports', 'savefig': 'matplotlib savefig'}

with open('bench.json', encoding='utf-8') as file:
    bench = json.load(file)
measured = bench['parts']['programs']
programs = [name for name in TITLES if any(row['name'] == f'{name} bare' for row in bench['rows'])]
figure, axes = plt.subplots(len(programs), 1, figsize=(8, 3.1 * len(programs)), squeeze=False)
for axis, program in zip(axes[:, 0], programs):
    rows = [(row['name'].removeprefix(f'{program} '), row) for row in bench['rows']
            if row['name'].startswith(f'{program} ') and not row['name'].endswith(', data')]
    rows.sort(key=lambda pair: -pair[1]['p50_ms'])
    values = [row['p50_ms'] for _, row in rows]
    colours = [OURS if 'glovebox' in NAMES.get(name, name) else BARE if name == 'bare' else OTHERS
               for name, _ in rows]
    bars = axis.barh([NAMES.get(name, name) for name, _ in rows], values, color=colours, height=0.68)
    labels = [f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f} ms  ({row['ratio_to_bare']:.2g}x)" for value, (_, row) in zip(values, rows)]
    axis.bar_label(bars, labels, padding=4, fontsize=8)
    axis.set_xscale('log')
    axis.set_xlim(min(values) / 2, max(values) * 6)
    axis.set_title(TITLES[program], loc='left', fontsize=11, fontweight='bold')
    axis.tick_params(axis='y', length=0, labelsize=9)
    axis.tick_params(axis='x', labelsize=8)
    for side in ('top', 'right', 'left'):
        axis.spines[side].set_visible(False)
axes[-1, 0].set_xlabel('median milliseconds from start to answer, logarithmic; in brackets: times bare python3',
                       fontsize=8)
figure.text(0.01, 0.004, f"{bench['machine']}; kernel {bench['kernel']}; load {max(measured['load'])}; {measured['when']}; "
            'drawn inside a glovebox sandbox', fontsize=6, color='#666666')
figure.tight_layout(rect=(0, 0.012, 1, 1))
figure.savefig('bench.png', dpi=110)

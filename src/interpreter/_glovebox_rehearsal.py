"""Uses the libraries of a zygote as programs do, once for all its children: it loads the modules that a library imports at
first use, and fills its caches and those of the interpreter. It covers many functions, and is none of the benchmarks.

A line that fails with this version of a library is left out, with those that need its names."""

import io
import random
import sys
import warnings

# module -> (its imports, lines that follow each other)
PIECES = {
    "numpy": ("import numpy as n", (
        "a = n.linspace(0, 1, 12).reshape(3, 4)\nprint(a, a.T @ a, a.mean(axis=0), n.median(a), a.std(), a > 0.5)",
        "print(n.unique([3, 1, 3], return_counts=True), n.argsort([2, 1]), n.where(n.eye(2) > 0, 1, n.nan))",
        "print(n.concatenate([n.zeros(2), n.ones(2)]), n.stack([n.arange(3)] * 2), n.percentile(n.arange(9), [25, 75]))",
        "print(n.linalg.solve(n.eye(2), n.ones(2)), n.random.default_rng(1).normal(size=2), n.array(['x', 'yy']))",
    )),
    "pandas": ("import io as i, numpy as n, pandas as p", (
        # frames, their dtypes and how they are printed
        "f = p.DataFrame({'k': ['x', 'y', 'x', None], 'i': [1, 2, 3, 4], 'r': [0.5, None, 2.5, 1.0], 'o': [True, False, True, True]})",
        "print(f, f.dtypes, f.shape, f.head(2), f.T, f.i.to_list(), f.index, f.columns, f.to_string(), f.i.values)",
        "print(f.astype({'r': 'Float64'}), f.k.astype('category').cat.codes, f.select_dtypes('number').mean(), f.sum(numeric_only=True))",
        # rows and columns
        "print(f[f.i > 1], f.loc[1:2, ['i', 'r']], f.iloc[-1], f.at[0, 'i'], f[['k', 'o']], f.query('i > 2'), f.i.isin([1]))",
        "f['s'] = f.i * 2 + f.r\nf.loc[f.i == 2, 'r'] = 9.0\nprint(f.drop(columns='o').sort_values(['i', 'r'], ascending=False))",
        "print(f.assign(v=lambda t: t.i ** 2).rename(columns={'i': 'j'}), f.nlargest(2, 'i'), f.sample(2, random_state=1), f.i.idxmax())",
        "print(f.drop_duplicates('k'), f.duplicated('k').any(), f.i.between(1, 2), f.i.apply(lambda v: v + 1), f.k.map({'x': 1}))",
        # what is missing
        "print(f.isna().sum(), f.dropna(), f.fillna({'r': 0.0}), f.r.interpolate(), f.r.clip(0, 2), f.r.where(f.o), f.r.mask(f.o, 0))",
        # groups
        "g = f.groupby('k')\nprint(g.i.sum(), g.agg({'i': 'max', 'r': ['min', 'mean']}), g.size(), g.i.transform('mean'), g.cumcount())",
        "print(f.groupby(['k', 'o'], as_index=False).r.mean(), g.i.apply(lambda s: s.iloc[0]), g.i.rank(), g.first(), g.ngroups)",
        # merged and reshaped
        "print(f.merge(p.DataFrame({'k': ['x', 'y'], 'w': [7, 8]}), on='k', how='left'), p.concat([f, f], ignore_index=True).shape)",
        "print(f.join(f[['i']], rsuffix='_2'), f.pivot_table(index='k', columns='o', values='i', aggfunc='sum', fill_value=0))",
        "print(f.melt(id_vars='k', value_vars=['i', 'r']), f.set_index(['k', 'i']).r.unstack(), f[['i', 'r']].stack())",
        "print(p.crosstab(f.k, f.o), p.get_dummies(f.k), p.cut(f.i, 2), p.qcut(f.i, 2, labels=['lo', 'hi']), f.reset_index().index)",
        # statistics
        "print(f.i.describe(), f.k.value_counts(), f.k.unique(), f.k.nunique(), f.i.quantile([0.5]), f.i.mode(), f[['i', 'r']].corr())",
        "print(f.i.cumsum(), f.r.round(1), f.i.value_counts(normalize=True), f.i.rank(), f.memory_usage(deep=True).sum())",
        # text
        "c = p.Series(['a-1', 'b-22', None])\nprint(c.str.split('-', expand=True), c.str.contains('b'), c.str.extract(r'([a-z])-(\\d+)'))",
        "print(c.str.upper(), c.str.replace('-', '_').str.len(), c.str.strip().str[0], c.explode(), p.to_numeric(p.Series(['1', '2'])))",
        # time
        "d = p.DataFrame({'t': p.date_range('2024-01-01', periods=8, freq='12h'), 'v': range(8)})\ne = d.set_index('t')\nprint(d, e)",
        "print(e.resample('D').sum(), e.v.rolling(3).mean(), e.v.expanding().max(), e.v.ewm(span=3).mean(), e.v.shift(1), e.v.diff())",
        "print(d.t.dt.month, d.t.dt.strftime('%d.%m.%Y'), d.t.dt.day_name(), p.to_datetime(['2024-02-03']), e.loc['2024-01-02'])",
        "print(p.merge_asof(d, d.rename(columns={'v': 'w'}), on='t'), d.groupby(d.t.dt.date).v.sum(), p.Timedelta('2h'))",
        "print(e.between_time('6:00', '13:00'), d.t.max() - d.t.min(), e.tz_localize('UTC').index, e.v.pct_change())",
        # files
        "print(f.to_csv(index=False), f.to_dict('records'), f.to_json(), p.json_normalize([{'a': {'b': 1}}]))",
        "q = p.read_csv(i.StringIO('a,t\\n1,2024-01-01\\n'), parse_dates=['t'], dtype={'a': 'float'})\nq.info(buf=i.StringIO())",
    )),
}


def rehearse():
    """In the zygote. Output is discarded, and random streams are renewed in each child."""
    kept = random.getstate()
    stdout, sys.stdout = sys.stdout, io.StringIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, (imports, lines) in 2 * tuple(PIECES.items()):  # some caches are filled by the second use
                if name in sys.modules:
                    run(imports, lines)
    finally:
        sys.stdout = stdout
        random.setstate(kept)


def run(imports, lines):
    names = {}
    for line in (imports, *lines):
        try:
            exec(compile(line, "<rehearsal>", "exec"), names)
        except Exception:
            pass

"""Six programs with pandas that nothing in the tree has rehearsed. They stand here alone: `tools/unseen_programs` looks in every
other file for their lines, so that no interpreter is prewarmed with what is measured."""

# name -> (program, what it prints)
PROGRAMS = {
    'ranks': ("""import numpy as np, pandas as pd
shop = pd.DataFrame({'town': np.arange(900) % 9, 'takings': (np.arange(900) * 37 % 101).astype(float)})
shop['place'] = shop.groupby('town').takings.rank(method='dense', ascending=False)
best = shop.nlargest(12, 'takings').assign(so_far=lambda top: top.takings.cumsum())
print(best[['so_far', 'place']].tail(3))
print(shop.place.quantile([0.1, 0.9]))
""", 'so_far'),
    'words': ("""import pandas as pd
notes = pd.Series(['red apple 3kg', 'green pear 12kg', None, 'dark plum 7kg'] * 60)
parts = notes.str.extract(r'(?P<colour>\\w+) (?P<fruit>\\w+) (?P<weight>\\d+)kg')
parts['weight'] = pd.to_numeric(parts.weight).fillna(0)
print(parts.fruit.str.upper().str.split('P').explode().value_counts(dropna=False).head())
print(parts.weight.where(parts.weight > 5).sum())
""", '1140.0'),
    'bands': ("""import numpy as np, pandas as pd
people = pd.DataFrame({'age': np.arange(800) % 83 + 5, 'member': np.arange(800) % 3 == 0})
people['band'] = pd.cut(people.age, [0, 18, 40, 65, 120], labels=['young', 'adult', 'middle', 'old'])
people['fifth'] = pd.qcut(people.age, 5, labels=False)
print(pd.crosstab(people.band, people.member, normalize='index').round(3))
print(people.fifth.mode().iloc[0])
""", 'middle'),
    'shapes': ("""import numpy as np, pandas as pd
wide = pd.DataFrame({'plant': np.arange(200), 'may_1': np.arange(200) * 2, 'may_2': np.arange(200) * 5})
long = wide.melt(id_vars='plant', var_name='day', value_name='height').set_index(['plant', 'day'])
print(long.unstack('day').height.corr(method='spearman'))
print(long.swaplevel().sort_index().xs('may_2').head(2))
""", 'may_1'),
    'series': ("""import numpy as np, pandas as pd
ticks = pd.DataFrame({'at': pd.date_range('2021-03-01', periods=500, freq='7min'), 'price': np.sin(np.arange(500) / 9)})
trades = pd.DataFrame({'at': pd.date_range('2021-03-01 00:03', periods=90, freq='31min'), 'lot': np.arange(90)})
both = pd.merge_asof(trades, ticks, on='at').set_index('at')
print(both.price.ewm(halflife=4).mean().diff().abs().idxmax())
print(both.lot.between_time('09:00', '11:30').sum())
""", '2021-03-'),
    'records': ("""import io, pandas as pd
orders = [{'id': n, 'buyer': {'name': f'b{n % 7}', 'town': {'code': n % 4}}, 'due': None if n % 5 else n} for n in range(150)]
flat = pd.json_normalize(orders, sep='/').drop_duplicates(['buyer/name', 'buyer/town/code'])
text = flat.rename(columns=lambda name: name.rpartition('/')[2]).to_csv(index=False)
back = pd.read_csv(io.StringIO(text), dtype={'name': 'category'})
print(back.due.interpolate().clip(upper=40).isna().sum(), back.memory_usage(deep=True).index.tolist())
""", 'Index'),
}

"""Which measurements distinguish three kinds of wine? 178 wines from one region of Italy, three grapes, thirteen
chemical measurements each: the wine recognition data of the UCI repository (Aeberhard and Forina, 1991),
as it comes with scikit-learn.

    glovebox run --policy data --out out examples/wine.py

Prints the analysis; leaves wine.png (a chart) and wine.csv (the table) in the working directory."""

import matplotlib.pyplot as plt
import pandas as pd
from scipy import stats
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

data = load_wine(as_frame=True)
wines, grape = data.data, data.target.map(lambda number: "grape " + "ABC"[number]).rename("grape")
print(f"{len(wines)} wines, {wines.shape[1]} measurements, by grape: {grape.value_counts().sort_index().to_dict()}")

# How far apart are the three grapes in each measurement, compared with how much one grape varies?
rows = []
for name in wines.columns:
    groups = [wines.loc[grape == one, name] for one in sorted(grape.unique())]
    separation, chance = stats.f_oneway(*groups)
    rows.append({"measurement": name, **{f"mean {one}": group.mean() for one, group in zip("ABC", groups)},
                 "F": separation, "p": chance})
table = pd.DataFrame(rows).sort_values("F", ascending=False).set_index("measurement")
table.to_csv("wine.csv", float_format="%.6g")
print("\nHow well single measurements tell the grapes apart (analysis of variance):\n")
print(table.to_string(float_format="{:.3g}".format))

# Can a simple model name the grape of a wine that it has not seen?
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
guess = cross_val_predict(model, wines, grape, cv=10)
print(f"\nGrape named right in ten-fold cross-validation: {(guess == grape).mean():.1%}\n")
print(pd.crosstab(grape, guess, rownames=["truth"], colnames=["model says"]).to_string())

best, second = table.index[:2]
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5))
for one, group in wines.groupby(grape):
    left.scatter(group[best], group[second], label=one, alpha=0.7)
left.set(xlabel=best, ylabel=second, title="The two measurements that separate best")
left.legend(loc="upper left")
table["F"].sort_values().plot.barh(ax=right, color="tab:red")
right.set(xlabel="F (variance between grapes / within)", ylabel="", title="Separation by measurement")
figure.tight_layout()
figure.savefig("wine.png", dpi=110)
print("\nwrote wine.png and wine.csv")

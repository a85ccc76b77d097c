"""What model-written data programs do, in the shipped template `python`: each of these is after a page of a public gallery
(pandas, matplotlib, seaborn, scikit-learn, scipy, statsmodels, SymPy, NetworkX, Pillow, polars, duckdb, plotly and the documents'
libraries), in words of our own. They failed, or could not be tried, with the libraries of a Debian release."""

import pytest

from conftest import STATE

pytestmark = pytest.mark.skipif(not list((STATE / "templates/python/root").glob("usr/local/lib/python3.*/dist-packages/polars")),
                                reason="the template python is not built from wheels: glovebox template build python")

FRAME = "import pandas as pd, numpy as np\ndf = pd.DataFrame({'g': list('aabb'), 'x': [1.0, 2.5, 4.0, 8.0]})\n"
# name: (program, what its output or its last value has to hold)
TEXTS = {
    "numpy 2": ("import numpy as np\nprint(np.trapezoid([1, 2, 3]), np.__version__ >= '2')", "4.0 True"),
    "pandas month ends": ("import pandas as pd\ns = pd.Series(range(90), pd.date_range('2024-01-01', periods=90))\n"
                          "print(s.resample('ME').sum().tolist())", "[465, 1305, 2235]"),
    "pandas map": (FRAME + "print(df[['x']].map(lambda v: v * 2).x.tolist())", "[2.0, 5.0, 8.0, 16.0]"),
    "pandas pyarrow types": ("import pandas as pd\nprint(pd.Series([1, None], dtype='int64[pyarrow]').sum())", "1"),
    "parquet": (FRAME + "df.to_parquet('t.parquet')\nprint(pd.read_parquet('t.parquet').equals(df))", "True"),
    "feather": (FRAME + "df.to_feather('t.feather')\nprint(pd.read_feather('t.feather').shape)", "(4, 2)"),
    "markdown table": (FRAME + "print(df.to_markdown(index=False))", "| g   |"),
    "styled html": (FRAME + "print('<table' in df.style.highlight_max('x').to_html())", "True"),
    "xlsx by xlsxwriter": (FRAME + "with pd.ExcelWriter('t.xlsx', engine='xlsxwriter') as w: df.to_excel(w)\n"
                           "print(pd.read_excel('t.xlsx').shape)", "(4, 3)"),
    "polars": ("import polars as pl\nd = pl.DataFrame({'g': ['a', 'a', 'b'], 'x': [1, 2, 3]})\n"
               "print(d.group_by('g').agg(pl.col('x').sum()).sort('g').rows())", "[('a', 3), ('b', 3)]"),
    "duckdb over a frame": (FRAME + "import duckdb\nprint(duckdb.sql('select g, sum(x) from df group by g order by g').fetchall())",
                            "[('a', 3.5), ('b', 12.0)]"),
    "scikit-learn pipeline": ("from sklearn.datasets import load_iris\nfrom sklearn.pipeline import make_pipeline\n"
                              "from sklearn.preprocessing import StandardScaler, TargetEncoder\n"
                              "from sklearn.linear_model import LogisticRegression\nX, y = load_iris(return_X_y=True)\n"
                              "print(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y).score(X, y) > .9)", "True"),
    "scipy optimum": ("from scipy import optimize\nprint(round(optimize.brentq(lambda x: x**2 - 2, 0, 2), 6))", "1.414214"),
    "statsmodels": (FRAME + "import statsmodels.formula.api as smf\ndf['y'] = df.x * 3 + 1\n"
                    "print(round(smf.ols('y ~ x', df).fit().params['x'], 6))", "3.0"),
    "sympy": ("import sympy as s\nx = s.symbols('x')\nprint(s.integrate(s.exp(-x**2), (x, -s.oo, s.oo)))", "sqrt(pi)"),
    "networkx": ("import networkx as nx\nprint(nx.shortest_path(nx.karate_club_graph(), 16, 26)[0])", "16"),
    "docx": ("import docx\nd = docx.Document(); d.add_heading('Title'); d.save('t.docx')\nprint(docx.Document('t.docx').paragraphs[0].text)",
             "Title"),
    "pptx": ("import pptx\np = pptx.Presentation(); p.slides.add_slide(p.slide_layouts[0]).shapes.title.text = 'Hi'; p.save('t.pptx')\n"
             "print(len(pptx.Presentation('t.pptx').slides))", "1"),
    "pdf written and read": ("from reportlab.pdfgen import canvas\nc = canvas.Canvas('t.pdf'); c.drawString(72, 720, 'Hello'); c.save()\n"
                             "import pypdf\nprint(pypdf.PdfReader('t.pdf').pages[0].extract_text())", "Hello"),
    "html by beautifulsoup": ("from bs4 import BeautifulSoup\nprint(BeautifulSoup('<p>a<b>c', 'lxml').b.text, "
                              "BeautifulSoup('<i>d', 'html5lib').i.text)", "c d"),
    "tables of html": ("import io, pandas as pd\nprint(pd.read_html(io.StringIO('<table><tr><td>1<td>2</table>'))[0].shape)", "(1, 2)"),
    "yaml": ("import yaml\nprint(yaml.safe_load('a: [1, 2]'))", "{'a': [1, 2]}"),
    "jinja": ("import jinja2\nprint(jinja2.Template('{{ n }}!').render(n=3))", "3!"),
    "nltk without downloads": ("from nltk.stem import PorterStemmer\nfrom nltk.tokenize import wordpunct_tokenize\n"
                               "print([PorterStemmer().stem(w) for w in wordpunct_tokenize('running quickly')])", "['run', 'quickli']"),
    "scikit-image": ("from skimage import data, filters, measure\nprint(measure.label(filters.sobel(data.camera()) > .1).max() > 9)", "True"),
    "opencv": ("import cv2, numpy as np\nprint(cv2.Canny(np.eye(20, dtype='uint8') * 255, 50, 100).shape)", "(20, 20)"),
    "pytest": ("open('test_x.py', 'w').write('def test_a():\\n    assert 1 + 1 == 2\\n')\nimport subprocess\n"
               "print(subprocess.run(['python3', '-m', 'pytest', '-q', '-p', 'no:cacheprovider'], capture_output=True, text=True).stdout)",
               "1 passed"),
    "hypothesis": ("from hypothesis import given, settings, strategies as st\n@settings(max_examples=20, database=None)\n"
                   "@given(st.integers())\ndef check(n):\n    assert n + 0 == n\ncheck()\nprint('held')", "held"),
    "plotly": ("import plotly.graph_objects as go\nprint(len(go.Figure(go.Scatter(y=[1, 2])).to_html(include_plotlyjs=False)) > 500)", "True"),
    "altair": (FRAME + "import altair as alt\nprint(alt.Chart(df).mark_bar().encode(x='g', y='x').to_dict()['mark']['type'])", "bar"),
    "tools of the shell": ("import subprocess\nprint(subprocess.run('echo \\'{\"a\": 5}\\' | jq .a; sqlite3 :memory: \"select 6\"; "
                           "echo 7 8 | awk \"{print \\\\$1}\"; git --version; ffmpeg -version | head -1; curl --version | head -1', "
                           "shell=True, capture_output=True, text=True).stdout.split())", "'5', '6', '7', 'git', 'version'"),
    "an animation": ("import matplotlib.pyplot as plt\nfrom matplotlib.animation import FuncAnimation, FFMpegWriter\n"
                     "fig, ax = plt.subplots(figsize=(2, 2)); line, = ax.plot([0, 1])\n"
                     "FuncAnimation(fig, lambda i: line.set_ydata([0, i]), 4).save('t.mp4', writer=FFMpegWriter(fps=4))\n"
                     "plt.close(fig); import os\nprint(os.path.getsize('t.mp4') > 500)", "True"),
    "requests and httpx": ("import requests, httpx\nprint(requests.Request('GET', 'http://a/').prepare().url, httpx.URL('http://a/b').path)",
                           "http://a/ /b"),
}
FIGURES = {
    "letters of many scripts": "import matplotlib.pyplot as plt\nplt.title('höhe 高度 높이 日本語 Ελληνικά Привет ✓'); plt.plot([1, 2])",
    "emoji": "import matplotlib.pyplot as plt\nplt.bar(['🍎', '🍌 kg'], [3, 5]); plt.title('Sales 📈 ✅')",
    "xkcd": "import matplotlib.pyplot as plt\nwith plt.xkcd(): plt.plot([1, 3, 2]); plt.title('notes')\nplt.show()",
    "seaborn": FRAME + "import seaborn as sns\nsns.boxplot(df, x='g', y='x');",
    "grouped bars": FRAME + "df.pivot_table(index='g', values='x', aggfunc=['min', 'max']).plot.bar();",
    "a picture": "from PIL import Image, ImageDraw\ni = Image.new('RGB', (40, 40)); ImageDraw.Draw(i).ellipse((5, 5, 30, 30), fill='red'); i",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_program(daemon, name):
    code, words = TEXTS[name]
    _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "mode": "cell", "code": code})
    assert answer["status"] == "ok" and words in answer["stdout"], answer


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure(daemon, name):
    _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "mode": "cell", "code": FIGURES[name]})
    assert answer["status"] == "ok" and any("image/png" in result["data"] for result in answer["results"]), answer
    assert "missing from" not in answer["stderr"] and "findfont" not in answer["stderr"], answer["stderr"]


def test_cores_are_counted_without_a_warning(daemon):
    """What scikit-learn asks joblib before it works in parallel."""
    code = "from joblib import cpu_count\nprint(cpu_count(only_physical_cores=True) == cpu_count() > 0)"
    _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "code": code})
    assert (answer["stdout"], answer["stderr"]) == ("True\n", ""), answer

"""A data analysis agent: data_analysis.py FILE.csv QUESTION. Prints the answer and saves its charts as chart-1.png, …"""

import base64
import pathlib
import sys

import glovebox
from chat import work

ROLE = """You analyse data with Python: pandas and matplotlib are installed, and variables stay between calls. Look at the
table first. Draw a chart where it helps; open figures are shown to the user. End with the answer in plain words."""


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path, question = pathlib.Path(sys.argv[1]), sys.argv[2]
    if not path.is_file():
        sys.exit(f"{path} is no file")
    with glovebox.tools(template="python") as tools:
        tools.sandbox.files.write(path.name, path.read_bytes())
        answer, executions = work(tools, ROLE, f"The table is in {path.name}. {question}")
    print(answer)
    charts = [result.png for execution in executions for result in execution.results if result.png]
    for number, chart in enumerate(charts, 1):
        pathlib.Path(f"chart-{number}.png").write_bytes(base64.b64decode(chart))
        print(f"chart-{number}.png")


if __name__ == "__main__":
    main()

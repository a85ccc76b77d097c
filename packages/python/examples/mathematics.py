"""A mathematics agent: mathematics.py QUESTION. It computes instead of guessing, and each step has ten seconds."""

import sys

import glovebox
from chat import work

ROLE = """You answer questions of mathematics. Compute every number with Python; sympy, numpy and scipy are installed. Check the
result in a second way. A step that meets its limit of time needs a better method, not more time. End with the answer."""


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with glovebox.tools(names=["execute_python"], template="python", network="none", limits={"wall_ms": 10_000}) as tools:
        answer, executions = work(tools, ROLE, sys.argv[1])
    print(answer)
    seconds = sum(execution.usage["wall_ms"] for execution in executions) / 1000
    print(f"({len(executions)} computations, {seconds:.1f} s)", file=sys.stderr)


if __name__ == "__main__":
    main()

"""An interpreter is written down, and another process goes on as it: what it has then, and what is refused."""

import json
import os
import pathlib
import subprocess

import pytest

from conftest import BUILD, STATE

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts the template's files, as root")
RIG = pathlib.Path(__file__).with_name("image_rig.py")


def take(*steps, template=None):
    """[code, stdout, stderr] of each step (image_rig.py)."""
    template = template or next(name for name in ("minimal", "python") if (STATE / "templates" / name).exists())
    done = subprocess.run(["unshare", "-m", "/usr/bin/python3", "-B", RIG, BUILD,
                           STATE / "templates" / template / "root"], input=json.dumps(steps), timeout=120,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def both(before, after, **how):
    """The code before the image, and after it: in the original, then in what is restored."""
    (first, first_out, first_err), *rest = take(
        {"run": f"{before}\nrestored = image('/workspace/image')\n{after}\n"}, {"restore": "/workspace/image"}, **how)
    assert (first, first_err) == (0, ""), first_err
    code, out, err = rest[0]
    assert (code, err) == (0, ""), err
    return first_out, out


def test_variables_go_on_in_both():
    before = """
import math, os
numbers, text = [1, 2.5, 3], 'ä' * 1000
def count():
    for i in range(10):
        yield i
counter = count()
next(counter), next(counter)
try:
    1 / 0
except ZeroDivisionError as error:
    kept = error
"""
    after = """
numbers.append(os.getpid())
print(restored, len(numbers), len(text), next(counter), next(counter), repr(kept), kept.__traceback__.tb_lineno > 0)
"""
    first, then = both(before, after)
    assert first == "False 4 1000 2 3 ZeroDivisionError('division by zero') True\n"
    assert then == first.replace("False", "True")

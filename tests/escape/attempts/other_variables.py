"""Environment variables that neither template, policy nor request set."""

import os

from escape import attempt, stopped


@attempt
def other_variables():
    known = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "PWD", "SHELL", "PYTHONPATH",
             "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "MPLBACKEND", "LC_CTYPE", "OLDPWD", "_", "SHLVL"}
    more = {name for name in os.environ if name not in known and not name.endswith("_NUM_THREADS")
            and not name.startswith("MPL")}
    return f"has {more}" if more else stopped("bounded")

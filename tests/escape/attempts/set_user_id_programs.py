"""Any set-user-id or set-group-id program in the tree."""

import os
import stat

from escape import attempt, stopped


@attempt
def set_user_id_programs():
    for folder, names, files in os.walk("/"):
        if folder == "/":
            names[:] = [name for name in names if name not in ("proc", "workspace", "tmp")]
        for name in files:
            try:
                mode = os.lstat(f"{folder}/{name}").st_mode
            except OSError:
                continue
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                return f"{folder}/{name} gives rights"
    return stopped("bounded")

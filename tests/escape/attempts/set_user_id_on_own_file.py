"""A set-user-id program of one's own: the mount must ignore the bit."""

import os

from escape import attempt, stopped


@attempt
def set_user_id_on_own_file():
    flags = os.statvfs("/workspace").f_flag
    return stopped("bounded") if flags & os.ST_NOSUID and flags & os.ST_NODEV else "/workspace honours set-user-id or devices"

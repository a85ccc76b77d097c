"""Empty files in /tmp until no inode is left: 200 were granted."""

from escape import attempt, fill_inodes, stopped

LIMITS = {"inodes": 200, "wall_ms": 20000}


@attempt
def fill_inodes_of_tmp():
    made, code = fill_inodes("/tmp", 2000)
    return stopped("bounded") if code and made <= 220 else f"made {made} files, errno {code}"

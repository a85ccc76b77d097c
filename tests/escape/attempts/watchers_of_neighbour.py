"""inotify instances are counted for each user id; the neighbour has used most of them."""

import os

from escape import attempt, libc, stopped


@attempt
def watchers_of_neighbour():
    made = 0
    while made < 100 and libc.inotify_init1(0) >= 0:
        made += 1
    return stopped("bounded") if made >= 100 else f"got {made}: the neighbour's count for us"

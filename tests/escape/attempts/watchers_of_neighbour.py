"""The neighbour has made all the inotify instances that it may; we need some."""

from escape import attempt, libc, stopped


@attempt
def watchers_of_neighbour():
    made = 0
    while made < 8 and libc.inotify_init1(0) >= 0:
        made += 1
    return stopped("bounded") if made >= 8 else f"got {made}: the neighbour took the rest"

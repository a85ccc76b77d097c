"""neighbour.py - another sandbox that attempts look for: it holds one of everything that could be shared."""

import ctypes
import fcntl
import os
import socket
import sys
import time

KEY = 0x45534331
libc = ctypes.CDLL(None, use_errno=True)

for path in ("/tmp/escape-neighbour", "/dev/shm/escape-neighbour"):
    open(path, "w", encoding="utf-8").close()
    os.chmod(path, 0o666)

libc.shmget(KEY, 4096, 0o1666)
libc.msgget(KEY, 0o1666)
libc.semget(KEY, 1, 0o1666)
libc.mq_open(b"/escape-neighbour", 0o102, 0o666, None)

listener = socket.socket(socket.AF_UNIX)
listener.bind("\0escape-neighbour")
listener.listen(8)

locked = open("/usr/bin/env", "rb")
fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)

while libc.inotify_init1(0) >= 0:
    pass

# Where all sandboxes have the caller's id, this would stop every other one from being built.
flying, never_read = socket.socketpair()
try:
    while sys.argv[1:] == ["own-id"]:
        socket.send_fds(flying, [b"x"], [0] * 200)
except OSError:
    pass

print("ready", flush=True)
while True:
    open("/etc/passwd", "rb").close()
    time.sleep(0.02)

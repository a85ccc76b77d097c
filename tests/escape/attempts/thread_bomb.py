"""Two hundred threads where 16 were granted."""

import threading
import time

from escape import attempt, stopped

LIMITS = {"processes": 16}


@attempt
def thread_bomb():
    try:
        for _ in range(200):
            threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
    except RuntimeError:
        return stopped("bounded")
    return "has 200 threads"

"""A FIFO and a socket with names of artifacts."""

import os
import socket

from escape import attempt, stopped


@attempt
def artifact_is_fifo():
    os.mkfifo("/workspace/data.csv")
    socket.socket(socket.AF_UNIX).bind("/workspace/model.bin")
    return stopped("not-returned")

"""Interfaces other than the loopback."""

import socket

from escape import attempt, stopped


@attempt
def network_interfaces():
    names = [name for _, name in socket.if_nameindex()]
    return f"sees {names}" if set(names) - {"lo"} else stopped("bounded")

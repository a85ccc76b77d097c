"""Sockets of daemons that give root away."""

import os
import socket

from escape import HOST, attempt


@attempt
def docker_socket():
    wanted = ["/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
              "/run/podman/podman.sock", "/run/dbus/system_bus_socket", "/run/systemd/private", HOST["socket"]]
    for path in wanted:
        if os.path.exists(path):
            socket.socket(socket.AF_UNIX).connect(path)
            return f"connected to {path}"
    os.stat(wanted[-1])

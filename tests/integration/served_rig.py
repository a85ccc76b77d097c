"""served_rig.py - `glovebox serve` with a way out: it stands in a namespace of the test, beside another that plays the
internet."""

import contextlib
import json
import os
import shutil
import signal

import pytest

from conftest import TOP, Glovebox
from egress_rig import PUBLIC, gate_and_internet
from internet import NameServer, close_server
from test_receipts import payload_of
from test_rest import Daemon


class Served(Daemon):
    """`policies`: texts by name, beside those that come with glovebox; `words`: more options of serve."""

    def __init__(self, folder, gate, policies, words=(), env=None):
        place = folder / "policies"
        shutil.copytree(TOP / "policies", place)
        for name, text in policies.items():
            (place / f"{name}.yaml").write_text(text)
        self.glovebox = Glovebox(folder)
        with gate:
            self.start(self.glovebox, folder, "--slots", 8, "--resolver", f"{PUBLIC}:53", *words,
                       env={"GLOVEBOX_POLICIES": str(place)} | (env or {}))
        self.wait_until_it_serves()

    def run(self, code, **request):
        return super().run(code, **{"policy": "web"} | request)

    def receipt(self, result):
        return payload_of(json.dumps(self.get(f"/v1/receipts/{result['receipt']}")[1]))


@contextlib.contextmanager
def served_world(folder, policies, serve, **how):
    """`serve(outside)` gives the servers of the internet."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("needs root and iproute2: network namespaces")
    with contextlib.ExitStack() as stack:
        gate, outside = gate_and_internet()
        stack.callback(gate.close)
        stack.callback(outside.close)
        names = NameServer(outside)
        stack.callback(names.close)
        servers = serve(outside)
        for server in servers:
            stack.callback(close_server, server)
        daemon = Served(folder, gate, policies, **how)
        daemon.servers = servers
        stack.callback(daemon.process.wait, 30)
        stack.callback(daemon.process.send_signal, signal.SIGTERM)
        yield daemon

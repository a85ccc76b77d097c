"""Without a network every kind of socket to the outside fails at once, and each attempt is reported."""

import json

CODE = """import socket, time
kinds = {"inet": (2, 1, 0), "inet datagram": (2, 2, 0), "inet raw": (2, 3, 1), "inet6": (10, 1, 0), "inet6 datagram": (10, 2, 0),
         "inet6 raw": (10, 3, 58), "sctp": (2, 1, 132), "mptcp": (2, 1, 262), "packet": (17, 3, 768), "vsock": (40, 1, 0),
         "bluetooth": (31, 3, 0), "alg": (38, 5, 0), "xdp": (44, 3, 0), "can": (29, 3, 1), "tipc": (30, 1, 0), "key": (15, 3, 2)}
def abstract():
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\\0of-somebody")
tries = {name: lambda kind=kind: socket.socket(*kind) for name, kind in kinds.items()}
tries |= {"abstract": abstract, "to an address": lambda: socket.create_connection(("93.184.216.34", 80), 5),
          "to a name": lambda: socket.getaddrinfo("example.org", 80)}
for name, attempt in tries.items():
    best = 1000
    for _ in range(5):
        began = time.perf_counter()
        try:
            attempt()
            print(name, "was let out")
        except OSError:
            best = min(best, (time.perf_counter() - began) * 1000)
    if best > 5:
        print(name, "took", best, "ms")
"""


def test_every_kind_of_socket_fails_at_once_and_is_reported(glovebox):
    done = glovebox.run("--json", "--policy", "data", "-c", CODE)
    result = json.loads(done.stdout)
    assert (result["status"], result["stdout"]) == ("ok", ""), result
    told = {denial["target"] for denial in result["denials"]}
    assert told >= {"socket(AF_INET, SOCK_STREAM)", "socket(AF_INET, SOCK_DGRAM)", "socket(AF_INET, SOCK_RAW)",
                    "socket(AF_INET6, SOCK_STREAM)", "socket(AF_PACKET, SOCK_RAW)", "socket(AF_VSOCK, SOCK_STREAM)",
                    "socket(AF_BLUETOOTH, SOCK_RAW)", "socket(family 29)"}

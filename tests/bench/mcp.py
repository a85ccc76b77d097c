#!/usr/bin/python3
"""What the Model Context Protocol costs beside the native interface: mcp.py BUILD STATE [ROUNDS]

Calls take turns on one kept connection each, so that load and noise meet both alike: the difference holds, absolute
figures only for the machine and the hour. Prints a table for docs/benchmark.md."""
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

META = 'io.modelcontextprotocol/'
NEWEST = '2026-07-28'
WARM_TURNS = 20
PAUSE = 0.02  # in which the pool parks the next sandbox
HELLO = {'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': {
    'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'bench', 'version': '1'}}}
LIST = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list', 'params': {}}


class Kept(http.client.HTTPConnection):
    """One connection to the daemon's socket."""

    def __init__(self, path):
        super().__init__('localhost')
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def post(self, place, message, headers):
        body = json.dumps(message)
        began = time.perf_counter()
        self.request('POST', place, body, headers)
        answer = self.getresponse().read()
        took = time.perf_counter() - began
        return took * 1000, json.loads(answer)


def mcp(connection, method, params):
    meta = {META + 'protocolVersion': NEWEST, META + 'clientCapabilities': {}}
    headers = {'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream',
               'MCP-Protocol-Version': NEWEST, 'Mcp-Method': method}
    if 'name' in params:
        headers['Mcp-Name'] = params['name']
    message = {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params | {'_meta': meta}}
    took, answer = connection.post('/mcp', message, headers)
    assert 'result' in answer, answer
    return took, answer['result']


def native(connection):
    """The same work: a run of Python as a cell, in a sandbox of its own."""
    took, answer = connection.post('/v1/runs', {'code': 'print(1)', 'language': 'python', 'mode': 'cell'},
                                   {'Content-Type': 'application/json'})
    assert answer['stdout'] == '1\n', answer
    return took


def first_list(glovebox, env, *options):
    """From the start of `glovebox mcp` to its first list of tools."""
    began = time.perf_counter()
    with subprocess.Popen([glovebox, 'mcp', *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as host:
        for message in (HELLO, LIST):
            host.stdin.write(json.dumps(message).encode() + b'\n')
            host.stdin.flush()
            answer = json.loads(host.stdout.readline())
        took = time.perf_counter() - began
        assert answer['result']['tools'], answer
        host.stdin.close()
    return took * 1000


def main(build, state, rounds=300):
    glovebox = os.path.abspath(build) + '/glovebox'
    env = os.environ | {'GLOVEBOX_STATE': os.path.abspath(state), 'GLOVEBOX_MEASURE_TEMPLATES': 'false'}
    with tempfile.TemporaryDirectory(prefix='glovebox-bench-') as scratch:
        os.chmod(scratch, 0o755)
        place = scratch + '/s'
        with subprocess.Popen([glovebox, 'serve', '--socket', place], env=env, stderr=subprocess.DEVNULL) as daemon:
            while not os.path.exists(place):
                time.sleep(0.05)
            one, two = Kept(place), Kept(place)
            calls = {'run_code': lambda: mcp(one, 'tools/call', {'name': 'run_code', 'arguments': {'code': 'print(1)'}})[0],
                     'POST /v1/runs': lambda: native(two), 'tools/list': lambda: mcp(one, 'tools/list', {})[0]}
            times = {name: [] for name in calls}
            for turn in range(rounds + WARM_TURNS):
                for name in random.sample(sorted(calls), len(calls)):
                    time.sleep(PAUSE)
                    took = calls[name]()
                    if turn >= WARM_TURNS:
                        times[name].append(took)
            times['first list, with a daemon'] = [first_list(glovebox, env, '--socket', place) for _ in range(15)]
            times['first list, private daemon'] = [first_list(glovebox, env, '--private') for _ in range(5)]
            daemon.terminate()
    print('| | p50 | p90 |\n|---|---|---|')
    for name, took in times.items():
        print(f'| {name} | {statistics.median(took):.2f} ms | {statistics.quantiles(took, n=10)[-1]:.2f} ms |')
    more = statistics.median(a - b for a, b in zip(times['run_code'], times['POST /v1/runs']))
    print(f'run_code takes {more:+.2f} ms at the median of {rounds} pairs')


main(*sys.argv[1:3], *(int(word) for word in sys.argv[3:4]))

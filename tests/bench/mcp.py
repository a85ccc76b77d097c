#!/usr/bin/python3
"""Measures what the Model Context Protocol costs compared with the native interface: mcp.py BUILD STATE [ROUNDS]

Calls take turns on one kept connection each, so that load and noise meet both alike: the difference holds, absolute
figures only for the machine and the hour. Prints a table for docs/benchmark.md."""
import http.client
import json
import multiprocessing
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


def serve_one(path, is_mcp, begins, ends, done):
    """One client of a crowd: how many calls it gets answered between two moments."""
    connection = Kept(path)
    call = (lambda: mcp(connection, 'tools/call', {'name': 'run_code', 'arguments': {'code': 'print(1)'}})) if is_mcp \
        else lambda: native(connection)
    call()
    time.sleep(max(0, begins - time.time()))
    count = 0
    while time.time() < ends:
        call()
        count += 1
    done.put(count)


def rate(path, is_mcp, clients=8, seconds=3):
    """Calls a second of as many clients, each a process of its own."""
    done, begins = multiprocessing.Queue(), time.time() + 1
    crowd = [multiprocessing.Process(target=serve_one, args=(path, is_mcp, begins, begins + seconds, done)) for _ in range(clients)]
    for client in crowd:
        client.start()
    total = sum(done.get(timeout=seconds + 60) for _ in crowd)
    for client in crowd:
        client.join()
    return total / seconds


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
            rates = [(rate(place, True), rate(place, False)) if turn % 2 else (rate(place, False), rate(place, True))[::-1]
                     for turn in range(6)]
            times['first list, with a daemon'] = [first_list(glovebox, env, '--socket', place) for _ in range(15)]
            times['first list, private daemon'] = [first_list(glovebox, env, '--private') for _ in range(5)]
            daemon.terminate()
    print('| | p50 | p90 |\n|---|---|---|')
    for name, took in times.items():
        print(f'| {name} | {statistics.median(took):.2f} ms | {statistics.quantiles(took, n=10)[-1]:.2f} ms |')
    more = statistics.median(a - b for a, b in zip(times['run_code'], times['POST /v1/runs']))
    print(f'run_code takes {more:+.2f} ms at the median of {rounds} pairs')
    ratio = statistics.median(one / other for one, other in rates)
    print(f'8 clients: {statistics.median(one for one, _ in rates):.0f} calls of run_code a second, {ratio:.2f} of POST /v1/runs')


main(*sys.argv[1:3], *(int(word) for word in sys.argv[3:4]))

"""The rehearsal of libraries in a zygote has no visible effect in its children."""

import json
import os
import time

import pytest

import zygote_rig
from conftest import BUILD, STATE, zygote_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="maps a block of ids, as root")

MODULES = ["numpy", "pandas", "matplotlib.pyplot"]
PRIME = 3  # of contract/agent.h


@pytest.fixture(scope="module")
def data():
    rig = zygote_of("python", MODULES)
    yield rig
    rig.close()


def ran(one, code):
    outcome = one.execute(code)
    assert outcome["executed"]["code"] == 0 and outcome["stderr"] == b"", outcome
    return outcome["stdout"].decode()


def fresh(rig, code):
    one = rig.fork()
    assert one.os_error == 0, one.failure
    text = ran(one, code)
    one.close()
    return text


def test_the_contract_has_these_numbers():
    assert zygote_rig.enum_of("agent.h", "agent_mode")["AGENT_MODE_PRIME"] == PRIME


def test_every_line_is_known_to_these_libraries(data):
    """A line that fails is left out in silence; here none is."""
    code = """
import io, sys, warnings
pieces, out, failed = sys.modules['_glovebox_rehearsal'].PIECES, sys.stdout, []
sys.stdout = io.StringIO()
with warnings.catch_warnings():
    warnings.simplefilter('error')
    for imports, lines in pieces.values():
        names = {}
        for line in (imports, *lines):
            try:
                exec(line, names)
            except Exception as error:
                failed.append((line, repr(error)))
sys.stdout = out
print(failed)
"""
    assert fresh(data, code) == "[]\n"


LOOK = """
import json, logging, matplotlib, numpy, os, pandas, sys, threading, warnings
filters = [repr(row) for row in warnings.filters]
told = [name for name, module in sorted(sys.modules.items()) if getattr(module, '__warningregistry__', None)]
warnings.simplefilter('ignore')  # some options are deprecated
print(json.dumps({
    'options': [(name, repr(pandas.get_option(name))) for name in sorted(pandas._config.config._registered_options)],
    'printing': repr(sorted(numpy.get_printoptions().items())),
    'errors': numpy.geterr(),
    'warnings': filters, 'told': told,
    'main': sorted(vars(sys.modules['__main__'])),
    'logging': len(logging.getLogger().handlers),
    'threads': threading.active_count(),
    'figures': matplotlib._pylab_helpers.Gcf.get_num_fig_managers(),
    'settings': sorted((k, repr(v)) for k, v in matplotlib.rcParams.items()),
    'files': sorted(os.listdir('/tmp')) + sorted(os.listdir('/workspace')),
}))
"""


def test_nothing_of_it_is_seen(data):
    """As in an interpreter whose zygote has rehearsed nothing."""
    root = str(STATE / "templates/python/root")
    plain = zygote_rig.Rig(root, str(BUILD / "python"), ["random"])
    try:
        imports = "import numpy, pandas, matplotlib.pyplot\n"
        expected = json.loads(fresh(plain, imports + LOOK))
    finally:
        plain.close()
    for way in (fresh, primed):
        seen = json.loads(way(data, LOOK))
        for name, value in expected.items():
            assert seen[name] == value, (way, name)


def primed(rig, code):
    one = rig.fork()
    payload = zygote_rig.EXECUTE.pack(PRIME, 0, 0, 0, 0) + b"/\0\0"
    one.control.sendall(zygote_rig.FRAME.pack(len(payload), rig.inside["AGENT_EXECUTE"], 0, 1, 0) + payload)
    assert one.gather(time.perf_counter(), 10)["executed"]["ends"] == 0
    text = ran(one, code)
    one.close()
    return text


WARNS = """
import sys, warnings
sys.stderr = sys.stdout
warnings.simplefilter('default')
import pandas
pandas.DataFrame({'a': [1]}).groupby('a', observed=False).sum()
for _ in range(2):
    warnings.warn_explicit('told', UserWarning, pandas.core.frame.__file__, 1, 'pandas.core.frame',
                           pandas.core.frame.__dict__.setdefault('__warningregistry__', {}))
"""


def test_a_library_still_warns_once(data):
    assert fresh(data, WARNS).count("told") == 1


STREAMS = """
import random, uuid, numpy, pandas
print(random.random(), random.getstate()[1][:5], uuid.uuid4(), numpy.random.rand(), numpy.random.default_rng().random(),
      pandas.Series(range(1000)).sample(5).tolist(), numpy.random.get_state()[1][:4].tolist(), sep='\\n')
"""


def test_two_hundred_interpreters_draw_their_own_numbers(data):
    """Every other one has been prewarmed."""
    streams = [(primed if number % 2 else fresh)(data, STREAMS).splitlines() for number in range(200)]
    assert {len(stream) for stream in streams} == {7}
    for row in zip(*streams):
        assert len(set(row)) == 200, row


FIGURES = """
import gc, sys
gc.unfreeze()
print([type(thing).__name__ for thing in gc.get_objects() if type(thing).__name__ in ('Figure', 'RendererAgg', 'DataFrame')])
"""


def test_no_chart_and_no_frame_of_it_is_kept(data):
    assert fresh(data, FIGURES) == "[]\n"


def resident(pid, name):
    """KiB of the library's code that this process has a page table for."""
    kib, counts = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
        for line in file:
            if "-" in line.split()[0]:
                counts = " r-xp " in line and name in line
            elif counts and line.startswith("Rss:"):
                kib += int(line.split()[1])
    return kib


ARROW = """
import os, numpy, pyarrow, pyarrow.compute, pyarrow.parquet, threading
table = pyarrow.table({'a': list(range(200000)), 'b': numpy.random.default_rng(1).normal(size=200000)})
for pool in (pyarrow.system_memory_pool(), pyarrow.jemalloc_memory_pool(), pyarrow.mimalloc_memory_pool()):
    pyarrow.set_memory_pool(pool)
    for where in ('here', 'child'):
        if where == 'child' and (pid := os.fork()):
            assert os.waitpid(pid, 0)[1] == 0
            continue
        pyarrow.parquet.write_table(table, '/tmp/t.parquet')
        back = pyarrow.parquet.read_table('/tmp/t.parquet', use_threads=True)
        total = back.group_by('a').aggregate([('b', 'sum')]).num_rows
        assert total == 200000 and pyarrow.compute.sum(back['a']).as_py() == 199999 * 100000
        square = numpy.ones((300, 300)) @ numpy.ones((300, 300))
        assert square[0, 0] == 300
        if where == 'child':
            os._exit(0)
print('done', threading.active_count())
"""


def test_arrow_works_in_a_child_whose_fork_called_no_handler_of_it(data):
    """Its handlers run in what the program forks, as ever, and in children of a set with other libraries."""
    one = data.fork()
    assert resident(one.host_pid(), "/libarrow.so") == 0
    assert ran(one, ARROW) == "done 1\n"
    one.close()
    rig = zygote_of("python", [*MODULES, "unittest.mock"])
    try:
        one = rig.fork()
        assert resident(one.host_pid(), "/libarrow.so") > 0
        one.close()
    finally:
        rig.close()

"""Renews what forked interpreters must not share with each other: random streams, names, environment. Likewise
for an interpreter that is restored from the image of another."""

import os
import sys
import time

import _glovebox

numpy_bits = None  # the state of numpy.random, if its place in memory is known
seed_plainly = None  # what random.seed() calls without arguments
HERE = ()  # the rows of RENEW whose modules the zygote has imported


def reseed():
    """Renews the state that two children would otherwise share; each row is a module. os.urandom, secrets and uuid4
    read from the kernel. OpenSSL detects a fork by the process id, which is the same in every sandbox, so it is
    reseeded here."""
    for module, renew in HERE:
        renew(module)


def renew_random(module):
    seed_plainly()


def renew_numpy(module):
    """seed() would touch 140 pages of numpy to do the same."""
    if numpy_bits is None or not _glovebox.renew_bits(numpy_bits):
        module.seed()


def prepare():
    """In the zygote, after all imports: does what is the same for all children, so that a child touches only modules
    that are imported. Each touched object copies a page."""
    global HERE, seed_plainly
    prepare_numpy()
    for name, renew in ALIKE:
        if name in sys.modules:
            renew(sys.modules[name])
    if "random" in sys.modules:
        module = sys.modules["random"]
        module.seed()  # this also drops a stored second normal number
        seed_plainly = super(module.Random, module._inst).seed
    HERE = tuple((sys.modules[name], renew) for name, renew in RENEW if name in sys.modules)


def prepare_numpy():
    """In the zygote: checks that the 624 words of numpy.random's Mersenne Twister are where numpy's C interface says
    (numpy/random/bitgen.h); if not, each child calls seed()."""
    global numpy_bits
    module = sys.modules.get("numpy.random")
    if module is None:
        return
    module.seed()  # this also drops a stored second normal number
    name, words, position, *_ = module.get_state()
    try:
        bits = module.mtrand._rand._bit_generator.capsule
    except AttributeError:  # of another version
        return
    if name == "MT19937" and _glovebox.has_bits(bits, words.tobytes(), int(position)):
        numpy_bits = bits


def renew_threading(module):
    if hasattr(module._main_thread, "_native_id"):
        module._main_thread._native_id = module.get_native_id()


def renew_uuid(module):
    module._node = None
    module._last_timestamp = None


def renew_tempfile(module):
    module._name_sequence = None
    module.tempdir = None


def renew_ssl(module):
    module.RAND_add(os.urandom(32), 32.0)


def renew_logging(module, now=time.time):
    module.__dict__["_startTime"] = now()


def renew_multiprocessing(module):
    module.current_process()._config["authkey"] = module.AuthenticationString(os.urandom(32))


RENEW = (
    ("random", renew_random),
    ("numpy.random", renew_numpy),
    ("threading", renew_threading),
    ("logging", renew_logging),
    ("_ssl", renew_ssl),
    ("multiprocessing.process", renew_multiprocessing),
)
ALIKE = (
    ("uuid", renew_uuid),
    ("tempfile", renew_tempfile),
)


def keep():
    """Saves the state of the program that Python's own fork hooks would change."""
    module = sys.modules.get("random")
    try:
        return module and module._inst.getstate()
    except Exception:  # the program has put something else in its place
        return None


def renew(kept):
    """In a process restored from an image: random streams of the program go on, so that those it has seeded stay
    reproducible; what must differ between two processes is renewed."""
    for name, of_module in RENEW_RESTORED:
        module = sys.modules.get(name)
        if module is None:
            continue
        try:
            of_module(module)
        except Exception:
            pass
    try:
        if kept:
            sys.modules["random"]._inst.setstate(kept)
    except Exception:
        pass


def renew_names(module):
    module._name_sequence = None


# Not random and numpy.random: their streams go on.
RENEW_RESTORED = (
    ("threading", renew_threading),
    ("uuid", renew_uuid),
    ("tempfile", renew_names),
    ("_ssl", renew_ssl),
    ("multiprocessing.process", renew_multiprocessing),
)


def set_environment(variables):
    """Sets the whole environment of the program, which comes with the request; that of the zygote is empty."""
    known = os.environ._data  # as os.environb[name] = value, but touches fewer pages
    for variable in variables:
        name, _, value = variable.partition(b"=")
        os.putenv(name, value)
        known[name] = value
    if known.get(b"TZ", b"UTC") != b"UTC":
        time.tzset()

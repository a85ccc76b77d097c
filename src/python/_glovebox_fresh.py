"""What a forked interpreter must not share with its siblings: random streams, names, environment. And what one
that goes on as another's copy must not share with that."""

import os
import sys

import _glovebox

numpy_bits = None  # of numpy.random, if their place in memory is known

def reseed():
    """Each row is a module that keeps state which two children would otherwise share. os.urandom,
    secrets and uuid4 read the kernel. OpenSSL notices a fork by the process id, which is the same in every sandbox: it is told."""
    for name, renew in RENEW:
        module = sys.modules.get(name)
        if module is not None:
            renew(module)


def renew_random(module):
    module.seed()


def renew_numpy(module):
    """seed() would touch 140 pages of numpy to do the same."""
    if numpy_bits is None or not _glovebox.renew_bits(numpy_bits):
        module.seed()


def prepare_numpy():
    """In the zygote: numpy.random draws from a Mersenne Twister whose 624 words lie where numpy's C interface says
    (numpy/random/bitgen.h), if they are seen there; else each child calls seed()."""
    global numpy_bits
    module = sys.modules.get("numpy.random")
    if module is None:
        return
    module.seed()  # and no half of a pair of normal numbers is kept back
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


def renew_multiprocessing(module):
    module.current_process()._config["authkey"] = module.AuthenticationString(os.urandom(32))



RENEW = (
    ("random", renew_random),
    ("numpy.random", renew_numpy),
    ("threading", renew_threading),
    ("uuid", renew_uuid),
    ("tempfile", renew_tempfile),
    ("_ssl", renew_ssl),
    ("multiprocessing.process", renew_multiprocessing),
)


def keep():
    """What a fork changes of the program's own state, in Python's own hooks."""
    module = sys.modules.get("random")
    try:
        return module and module._inst.getstate()
    except Exception:  # the program has put something else in its place
        return None


def renew(kept):
    """In a process made from an image: streams that a program draws from go on where they were, so that what it
    has seeded stays so; what must never be the same in two processes is made anew."""
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


# random, numpy.random: their streams go on as they were.
RENEW_RESTORED = (
    ("threading", renew_threading),
    ("uuid", renew_uuid),
    ("tempfile", renew_names),
    ("_ssl", renew_ssl),
    ("multiprocessing.process", renew_multiprocessing),
)


def set_environment(variables):
    """Sets the whole environment of the program, which comes with the request; the zygote has emptied its
    own."""
    for variable in variables:  # os.environb[name] = value, by a shorter way
        name, _, value = variable.partition(b"=")
        os.putenv(name, value)
        os.environ._data[name] = value
    if os.environ.get("TZ", "UTC") != "UTC":
        import time

        time.tzset()

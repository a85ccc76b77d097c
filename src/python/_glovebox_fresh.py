"""What a forked interpreter must not share with its siblings: random streams, names, environment."""

import os
import sys


def reseed():
    """Each row is a module that keeps state which two children would otherwise share. The random module
    and threading look after themselves (os.register_at_fork); os.urandom, secrets and uuid4 read the
    kernel. OpenSSL notices a fork by the process id, which is the same in every sandbox: it is told."""
    for name, renew in RENEW:
        module = sys.modules.get(name)
        if module is not None:
            renew(module)


def renew_random(module):
    module.seed()


def renew_numpy(module):
    module.seed()


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
    ("uuid", renew_uuid),
    ("tempfile", renew_tempfile),
    ("_ssl", renew_ssl),
    ("multiprocessing.process", renew_multiprocessing),
)


def set_environment(variables):
    """Sets the whole environment of the program, which comes with the request; the zygote has emptied its
    own."""
    for variable in variables:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    if os.environ.get("TZ", "UTC") != "UTC":
        import time

        time.tzset()

"""A file system of its own for a test: ext4 on a loop device, which can lose its power."""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import struct
import subprocess
import tempfile
import time

import pytest

EXT4_IOC_SHUTDOWN, NOTHING_IS_FLUSHED = 0x8004587D, 2
CLONE_NEWNS = 0x20000
libc = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), what)


@contextlib.contextmanager
def mounts_of_its_own():
    """What is mounted meanwhile only this thread and its children see: a mount namespace that any other process of the
    machine makes has no copy of it, which would hold the file system after its end here."""
    before, folder = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY), os.getcwd()
    try:
        must(libc.unshare(CLONE_NEWNS), "unshare")
        # what is unmounted outside goes here, too; nothing goes the other way
        subprocess.run(["mount", "--make-rslave", "/"], check=True)
        yield
    finally:
        must(libc.setns(before, CLONE_NEWNS), "setns")
        os.chdir(folder)
        os.close(before)


class Disk:
    def __init__(self, top, mib, *options):
        self.image, self.folder = top / "image", top / "disk"
        self.folder.mkdir()
        with open(self.image, "wb") as image:
            image.truncate(mib << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", *options, self.image], check=True)

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.image, self.folder], check=True)

    def unmount(self):
        """Waits for the mount namespaces of sandboxes that are on their way out: they hold the file system."""
        subprocess.run(["umount", "-l", self.folder], check=True)
        for _ in range(300):
            if not subprocess.run(["losetup", "-j", self.image], check=True, capture_output=True).stdout:
                return
            time.sleep(0.1)
        raise AssertionError("somebody still holds the disk")

    def cut_power(self):
        """From now on nothing reaches the device, not what was written before either unless it was synced."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, struct.pack("I", NOTHING_IS_FLUSHED))
        finally:
            os.close(folder)

    def fill(self):
        """Takes all blocks; gives the file to be removed."""
        filler = self.folder / "filler"
        with open(filler, "wb", buffering=0) as file:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
            with contextlib.suppress(OSError):
                os.fsync(file.fileno())
        return filler


def place_of(mib):
    """Where there is room in memory: syncs do not wait for the disk of the machine, whatever else is written there."""
    memory = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    return "/dev/shm" if memory and memory.f_bavail * memory.f_frsize > 2 * mib << 20 else None


@contextlib.contextmanager
def disk(mib, *options):
    """A mounted disk. However the test ends, its mount and its loop device go."""
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        pytest.skip("no loop devices can be made here")
    with tempfile.TemporaryDirectory(prefix="glovebox-disk-", dir=place_of(mib)) as top, mounts_of_its_own():
        os.chmod(top, 0o755)
        made = Disk(pathlib.Path(top), mib, *options)
        try:
            made.mount()
        except subprocess.CalledProcessError:
            pytest.skip("ext4 on a loop device cannot be mounted here")
        try:
            yield made
        finally:
            while subprocess.run(["umount", "-l", made.folder], check=False, capture_output=True).returncode == 0:
                pass

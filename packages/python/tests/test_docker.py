"""DockerSandbox: results, limits and arguments."""

import pytest
from glovebox import DockerSandbox
from glovebox.docker import bytes_of, template_of
from glovebox.errors import InvalidArgumentException


@pytest.fixture
def docker(server):
    return lambda **options: DockerSandbox(policy="minimal", socket=server.socket, **options)


def test_output_error_and_exit_code(docker):
    with docker(image="python:3.11-slim", timeout=5, mem_limit="128m", cpu_quota=50000, read_only=True,
                tmpfs={"/tmp": "size=64m,noexec"}, network="none") as sandbox:
        assert sandbox.execute("print(1)") == {"exit_code": 0, "output": "1\n", "error": ""}
        assert sandbox.last.raw["limits"]["memory_bytes"] == 128 << 20 and sandbox.last.raw["limits"]["cpus"] == 0.5
        assert sandbox.last.raw["limits"]["disk_bytes"] == 64 << 20
        failed = sandbox.execute("import sys; print('e', file=sys.stderr); sys.exit(3)")
        assert failed == {"exit_code": 3, "output": "", "error": "e\n"}
        assert "ZeroDivisionError" in sandbox.execute("1 / 0")["error"]


def test_a_timeout_exits_with_137_and_a_message(docker):
    result = docker(timeout=0.3).execute("while True: pass")
    assert result["exit_code"] == 137 and "wall" in result["error"]


def test_each_run_is_fresh(docker):
    sandbox = docker()
    sandbox.execute("open('/tmp/a', 'w')")
    assert "FileNotFoundError" in sandbox.execute("open('/tmp/a')")["error"]


@pytest.mark.parametrize("options", [{"read_only": False}, {"network": "host"}, {"mem_limit": "much"}])
def test_what_is_not_served_is_refused(docker, options):
    with pytest.raises(InvalidArgumentException):
        docker(**options)


@pytest.mark.parametrize("size, count", [(5, 5), ("5", 5), ("5b", 5), ("1k", 1024), ("512M", 512 << 20), ("2gb", 2 << 30)])
def test_sizes(size, count):
    assert bytes_of(size) == count


@pytest.mark.parametrize("image, template", [(None, None), ("python:3.11-slim", None), ("docker.example/library/python", None),
                                             ("minimal", "minimal"), ("own/node:20", "node")])
def test_images(image, template):
    assert template_of(image) == template

"""With --log-sync each a record is synced by itself, and no group follows it. If that sync fails, the next request for a
checkpoint or a proof begins one."""

import pytest
from conftest import Glovebox
from fault_rig import Fault, Plans
from serving import Serving, let_others_in, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")


def test_a_checkpoint_covers_records_whose_own_sync_has_failed(tmp_path):
    glovebox = Glovebox(tmp_path)
    state_of_its_own(glovebox)
    let_others_in(tmp_path)
    plans = Plans(tmp_path / "plans")
    glovebox.program = str(plans.build / "glovebox")
    with Serving(glovebox, "--log-sync", "each", tcp=False) as service:
        assert service.run("print('x')").status == 200
        plans.arm(Fault.of("gloveboxd fdatasync.file 2 EIO once"))  # the first is that of the note
        run = service.run("print('x')").json
        assert run["status"] == "lost" and plans.of["gloveboxd"].failed == 1, run
        checkpoint = service.call("GET", "/v1/log/checkpoint")
        listed = service.call("GET", "/v1/receipts").json["receipts"]
        assert checkpoint.status == 200 and int(checkpoint.body.split()[1]) == listed[-1]["index"] + 1

"""The model never reads a secret, and can use it all the same."""

from __future__ import annotations

import json

from tests.examples.test_examples import load

from crow.testing import Pilot, call

KEY = "AKIA" + "ABCDEFGHIJKLMNOP"


def test_a_secret_reaches_tools_and_not_the_model(crow: Pilot):
    (crow.cwd / ".env").write_text(f"KEY={KEY}\n")
    crow.configure(allow=["Bash"])
    crow.use(load("redact").Redact)
    use = call("Bash", command="echo '<secret-2>' > used; echo password=hunter2 >> used; cat used")
    crow.run("The password=opensesame", call("Bash", command="cat .env"), use, "Done.")
    assert (crow.cwd / "used").read_text() == f"{KEY}\npassword=hunter2\n"
    sent = json.dumps(crow.model.asked)
    assert KEY not in sent
    assert "opensesame" not in sent
    assert "hunter2" not in sent.replace("echo password=hunter2", "")
    crow.sent("KEY=<secret-2>")
    assert KEY not in json.dumps(crow.session.messages)
    crow.prefix_stable()

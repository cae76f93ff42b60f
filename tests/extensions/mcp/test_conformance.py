"""The official conformance suite against the MCP client, in the two versions that are in use.

Each scenario starts a server of the suite and a session of Crow's with it. What a later version adds
is in neither table, and fails the first test here.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.npm import Packages

FOLDER = Path(__file__).with_name("node")
CLIENT = Path(__file__).with_name("conformance_client.py")
SUITES = {"0.1.16": "@modelcontextprotocol/conformance", "0.2.0-alpha.12": "conformance-next"}

OLD = ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry")
NEW = (
    *("request-metadata", "sep-2322-client-request-state", "json-schema-ref-no-deref"),
    *("http-standard-headers", "http-custom-headers", "http-invalid-tool-headers"),
    "json-schema-2020-12-preservation",
)
AUTH = (
    *("auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3"),
    *("auth/basic-cimd", "auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported"),
    *("auth/scope-omitted-when-undefined", "auth/scope-step-up", "auth/scope-retry-limit"),
    *("auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post"),
    *("auth/token-endpoint-auth-none", "auth/pre-registration", "auth/resource-mismatch"),
    *("auth/2025-03-26-oauth-endpoint-fallback", "auth/offline-access-scope"),
    *("auth/offline-access-not-supported", "auth/client-credentials-jwt"),
    "auth/client-credentials-basic",
)
OLD_AUTH = ("auth/cross-app-access-complete-flow",)
NEW_AUTH = (
    *("auth/2025-03-26-oauth-metadata-backcompat", "auth/authorization-server-migration"),
    *("auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing"),
    *("auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized"),
    *("auth/metadata-issuer-mismatch", "auth/enterprise-managed-authorization"),
)
PASSED = {"0.1.16": OLD + AUTH + OLD_AUTH, "0.2.0-alpha.12": OLD + NEW + AUTH + NEW_AUTH}
FAILED = {
    ("0.1.16", "auth/2025-03-26-oauth-metadata-backcompat"): "the suite's fault: its server says"
    " that its issuer has a path which the address of that metadata lacks; the later suite mends it",
    ("0.2.0-alpha.12", "auth/dpop"): "an extension, which the library does not have: proofs of"
    " possession for tokens",
    ("0.2.0-alpha.12", "auth/dpop-nonce"): "the same extension",
    ("0.2.0-alpha.12", "auth/wif-jwt-bearer"): "an extension: a workload's own token in the place"
    " of a client's secret, which the library takes only together with a secret",
}
LATER = ("sep-2640-client-",)
"""An extension, skills over MCP, which Crow does not have."""

pytestmark = pytest.mark.node


@pytest.fixture(scope="session")
def suite(request: pytest.FixtureRequest) -> str:
    """The program `node`; the suites are installed where they are asked for by name."""
    return Packages(FOLDER, "the conformance suite").node(request)


def run(node: str, version: str, *argv: str) -> tuple[int, str]:
    """Run the suite; its exit status and what it printed."""
    script = FOLDER / "node_modules" / SUITES[version] / "dist/index.js"
    done = subprocess.run(
        [node, str(script), *argv], capture_output=True, text=True, cwd=FOLDER, timeout=55
    )
    return done.returncode, done.stdout + done.stderr


def conforms(node: str, version: str, scenario: str) -> tuple[bool, str]:
    """Whether a scenario passes; a client that fails is a failure, whatever the checks say."""
    client = f"{shlex.quote(sys.executable)} {shlex.quote(str(CLIENT))}"
    argv = ("--command", client, "--scenario", scenario, "--timeout", "52000")
    status, told = run(node, version, "client", *argv)
    return status == 0, told


@pytest.mark.parametrize("version", SUITES)
def test_every_scenario_of_a_suite_is_known_here(suite: str, version: str) -> None:
    _, told = run(suite, version, "list")
    listed = told.partition("Client scenarios")[2].partition("\n\n")[0]
    found = set(re.findall(r"^  - (\S+)", listed, re.MULTILINE))
    known = {*PASSED[version], *(name for which, name in FAILED if which == version)}
    assert known <= found
    assert [name for name in found - known if not name.startswith(LATER)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "version, scenario", [(version, each) for version in PASSED for each in PASSED[version]]
)
def test_the_client_conforms(suite: str, version: str, scenario: str) -> None:
    is_fine, told = conforms(suite, version, scenario)
    assert is_fine, told


@pytest.mark.slow
@pytest.mark.parametrize("version, scenario", FAILED)
def test_what_does_not_conform_still_does_not(suite: str, version: str, scenario: str) -> None:
    is_fine, told = conforms(suite, version, scenario)
    assert not is_fine, told


def test_the_lock_names_no_registry() -> None:
    assert '"resolved"' not in (FOLDER / "package-lock.json").read_text("utf-8")

"""A client for the official conformance suite: a session of Crow's with the server that is named last.

Its scripted model calls every tool once, with the arguments that the suite gives or any that fit, and
its user accepts whatever a server proposes, and signs in where that is wanted, with a browser that
clicks nothing away. Prompts are typed and resources read as well.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit
from urllib.request import urlopen

from crow import Agent
from crow.core.ports.client import NullClient, Question
from crow.core.session import Session
from crow.extensions import McpHook
from crow.testing import ScriptedModel, call

BROWSER = Path(__file__).with_name("browser.py")
DOCUMENT = "https://conformance-test.local/client-metadata.json"
ACCEPTING = ("Answer", "Accept", "Leave it out", "Open the page")
VALUES: dict[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


class User(NullClient):
    """Somebody who accepts, and takes what is proposed."""

    answers = True
    opens_pages = True

    async def ask(self, session_id: str, question: Question) -> Any:
        """The first choice that accepts or leaves the default, else nothing typed."""
        if question.kind != "select":
            return ""
        wanted = [each for each in question.choices if each in ACCEPTING]
        return (wanted or list(question.choices))[0]


def fitting(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a schema takes; where a schema is wanted, that of another tool."""
    properties = schema.get("properties", {})
    args = {name: VALUES.get(told.get("type"), "text") for name, told in properties.items()}
    return {**args, **({"schema": next(iter(schemas.values()))} if "schema" in args else {})}


def issuer_of(url: str) -> str:
    """Who gives tokens for a server: a company's user has it in the settings."""
    where = urljoin(url, f"/.well-known/oauth-protected-resource{urlsplit(url).path}")
    with urlopen(where, timeout=10) as answer:
        return json.load(answer)["authorization_servers"][0]


def oauth(url: str) -> dict[str, Any]:
    """What the settings of a user say of signing in, for the scenario."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    told = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    client = {"clientId": told.get("client_id"), "clientSecret": told.get("client_secret")}
    match scenario:
        case "auth/pre-registration":
            return client
        case "auth/client-credentials-basic":
            return {**client, "grantType": "client_credentials"}
        case "auth/client-credentials-jwt":
            signing = {
                "privateKey": told["private_key_pem"],
                "algorithm": told["signing_algorithm"],
            }
            named = {"clientId": told["client_id"], **signing}
            return {**named, "grantType": "client_credentials"}
        case "auth/enterprise-managed-authorization" | "auth/cross-app-access-complete-flow":
            company = {"idToken": told["idp_id_token"], "idpClientId": told["idp_client_id"]}
            where = {"idpTokenUrl": told["idp_token_endpoint"], "issuer": issuer_of(url)}
            return {**client, **company, **where, "grantType": "identity_assertion"}
        case _:
            return {"clientMetadataUrl": DOCUMENT}


def calls(session: Session) -> list[Any]:
    """All calls, those with which a suite is particular first."""
    tools = {t.name: t for t in session.tools.values() if hasattr(t, "raw_name")}
    named = {getattr(tool, "raw_name"): name for name, tool in tools.items()}  # noqa: B009
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    given = [(each["name"], each.get("arguments", {})) for each in context.get("toolCalls", [])]
    schemas = {name: getattr(tool, "schema") for name, tool in tools.items()}  # noqa: B009
    rest = set(named) - {name for name, _ in given}
    made = [(name, fitting(tools[named[name]].parameters, schemas)) for name in sorted(rest)]
    return [call(named[name], **args) for name, args in (*given, *made) if name in named]


async def main(url: str) -> int:
    """Connect, and use all that there is; 1 where the server could not be reached."""
    model = ScriptedModel("Hello.", leftover="allow")
    os.environ["BROWSER"] = f"{sys.executable} {BROWSER} %s"
    servers = {"it": {"type": "http", "url": url, "oauth": oauth(url)}}
    async with Agent(
        llm=model, hooks=[McpHook(servers, wait=40, call_timeout=10)], tools=[]
    ) as agent:
        session = await agent.new_session(Path.cwd(), client=User())
        await agent.prompt(session, "/mcp login it")
        await agent.prompt(session, "Hello.")
        made = calls(session)
        if "ReadMcpResourceTool" in session.tools:
            made.append(call("ListMcpResourcesTool"))
        model.extend(*made, "Done.")
        await agent.prompt(session, "Use everything.")
        for listed in [m for m in session.messages if m.get("name") == "ListMcpResourcesTool"]:
            print(listed)
        await read_all(agent, session, model)
        for name in [name for name in session.commands if name.startswith("mcp__")]:
            model.extend("Read.")
            await agent.prompt(session, f"/{name} one two")
        state = (await agent.prompt(session, "/mcp")).text
    print(state)
    return 0 if "): ready" in state else 1


async def read_all(agent: Agent, session: Session, model: ScriptedModel) -> None:
    """Read every resource that was listed."""
    told = str(session.messages)
    for uri in dict.fromkeys(part.split('"')[0] for part in told.split('"uri": "')[1:]):
        model.extend(call("ReadMcpResourceTool", server="it", uri=uri), "Read.")
        await agent.prompt(session, "Read it.")


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))

"""Models at Bedrock and Vertex AI: where they are, and requests that their own libraries vouch for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt

from crow.core.errors import ModelError
from crow.core.messages import user
from crow.core.ports.llm import Request
from crow.llm import resolve
from crow.llm.models import model_info
from crow.testing import Endpoint, StrictMessages
from crow.testing.endpoint import Received, answer, respond, stream

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG"}
CLAUDE = "anthropic.claude-opus-5"


@pytest.fixture(autouse=True)
def _no_accounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials but those that a test has, and no machine of a cloud is looked for."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "aws-credentials"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))


async def hear(llm: Any) -> str:
    """What a model says to a greeting."""
    items = [item async for item in llm.stream(Request([user("hello")]))]
    await llm.aclose()
    return items[-1].text


def signed_by_botocore(received: Received, url: str, secret: str, token: str | None = None) -> str:
    """The signature that botocore gives the request that arrived, at the time that it names."""
    said = received.headers["authorization"]
    names = said.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    sent = {name: received.headers[name] for name in names}
    key, _, scope = said.partition("Credential=")[2].partition(",")[0].partition("/")
    _, region, service, _ = scope.split("/")
    request = AWSRequest("POST", url, headers=sent, data=received.raw)
    request.context["timestamp"] = received.headers["x-amz-date"]
    signer = SigV4Auth(Credentials(key, secret, token), service, region)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return str(signer.signature(text, request))


@pytest.mark.parametrize(
    "name, url, wire",
    [
        (f"bedrock/{CLAUDE}", "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1", "AnthropicMessages"),
        (f"aws/global.{CLAUDE}", "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1", "AnthropicMessages"),
        ("bedrock/openai.gpt-5.4", "https://bedrock-mantle.eu-west-1.api.aws/openai/v1", "Responses"),
        ("bedrock/openai.gpt-oss-120b", "https://bedrock-mantle.eu-west-1.api.aws/v1", "ChatCompletions"),
        ("bedrock/qwen.qwen3-coder-480b-a35b-instruct", "https://bedrock-mantle.eu-west-1.api.aws/v1", "ChatCompletions"),
        ("vertex/gemini-3.8-flash", "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google", "Gemini"),
        ("vertex/claude-opus-5@20260101", "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic", "AnthropicMessages"),
        ("vertex/deepseek-ai/deepseek-v3.2-maas", "https://aiplatform.googleapis.com/v1/projects/p/locations/global/endpoints/openapi", "ChatCompletions"),
    ],
)  # fmt: skip
def test_a_cloud_has_each_model_at_the_wire_of_its_maker(name: str, url: str, wire: str) -> None:
    env = {"AWS_REGION": "eu-west-1", "GOOGLE_CLOUD_PROJECT": "p"}
    model = name.partition("/")[2]
    assert repr(resolve(name, {}, env)) == f"{wire}({model!r}, {url!r})"


@pytest.mark.parametrize(
    "location, host",
    [
        ("europe-west1", "europe-west1-aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_a_location_of_vertex_has_a_host_of_its_own(location: str, host: str) -> None:
    env = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": location}
    llm: Any = resolve("vertex/gemini-3.8-flash", {}, env)
    assert llm.base_url.startswith(f"https://{host}/v1/projects/p/locations/{location}/")


def test_what_is_known_of_a_model_is_what_is_known_of_its_makers() -> None:
    own, sold = model_info("anthropic", "claude-opus-5"), model_info("bedrock", f"us.{CLAUDE}-v1:0")
    assert (sold.context_window, sold.levels, sold.refuses) == (
        own.context_window,
        own.levels,
        own.refuses,
    )
    assert sold.prices is None  # a cloud has its own


async def test_a_request_to_bedrock_is_signed_with_the_credentials_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**KEYS, "AWS_SESSION_TOKEN": "session"}.items():
        monkeypatch.setenv(name, value)
    async with StrictMessages() as bedrock:
        bedrock.say("Hi.")
        settings = {"providers": {"bedrock": {"base_url": bedrock.url}}}
        env = {"AWS_REGION": "us-east-1"}
        assert await hear(resolve(f"bedrock/{CLAUDE}", settings, env)) == "Hi."
        assert bedrock.refused == []
        received = bedrock.requests[0]
    said = received.headers["authorization"]
    assert said.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/us-east-1/bedrock-mantle/aws4_request" in said
    assert received.headers["x-amz-security-token"] == "session"
    url, secret = f"{bedrock.url}/messages", KEYS["AWS_SECRET_ACCESS_KEY"]
    assert said.endswith(signed_by_botocore(received, url, secret, "session"))
    assert not said.endswith(signed_by_botocore(received, url, "another", "session"))


async def test_a_profile_has_credentials_and_a_region(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = "[profile work]\nregion = ap-south-1\naws_access_key_id = AKIDWORK\naws_secret_access_key = s3cret\n"
    (tmp_path / "aws-config").write_text(config)
    monkeypatch.setenv("AWS_PROFILE", "work")
    endpoint.play(answer("Hi."))
    settings = {"providers": {"bedrock": {"base_url": endpoint.url}}}
    assert await hear(resolve("bedrock/openai.gpt-oss-120b", settings, {})) == "Hi."
    said = endpoint.requests[0].headers["authorization"]
    assert "Credential=AKIDWORK/" in said
    assert "/ap-south-1/bedrock-mantle/" in said
    url = f"{endpoint.url}/chat/completions"
    assert said.endswith(signed_by_botocore(endpoint.requests[0], url, "s3cret"))


async def test_a_key_of_bedrock_needs_no_library_and_is_a_bearers() -> None:
    async with StrictMessages() as bedrock:
        bedrock.say("Hi.")
        settings = {"providers": {"bedrock": {"base_url": bedrock.url}}}
        env = {"AWS_BEARER_TOKEN_BEDROCK": "bedrock-api-key-1", "AWS_REGION": "us-east-1"}
        assert await hear(resolve(f"bedrock/{CLAUDE}", settings, env)) == "Hi."
        assert bedrock.requests[0].headers["authorization"] == "Bearer bedrock-api-key-1"


async def test_the_runtime_endpoint_is_signed_for_its_own_service_and_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from crow.llm.clouds.bedrock import credentials

    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    url = "https://bedrock-runtime.us-west-2.amazonaws.com/anthropic/v1"
    headers: Mapping[str, str] = await credentials(url, {"AWS_REGION": "eu-west-1"})["sign"](
        url, b"{}"
    )
    assert "/us-west-2/bedrock/aws4_request" in headers["authorization"]
    assert f"/{headers['x-amz-date'][:8]}/" in headers["authorization"]


async def test_without_credentials_for_bedrock_one_line_says_what_to_do(endpoint: Endpoint) -> None:
    settings = {"providers": {"bedrock": {"base_url": endpoint.url}}}
    with pytest.raises(ModelError, match=r"no AWS credentials were found: run aws configure"):
        await hear(resolve("bedrock/m.x", settings, {"AWS_REGION": "us-east-1"}))
    assert endpoint.requests == []


def test_a_region_and_a_project_are_asked_for() -> None:
    with pytest.raises(ModelError, match="bedrock needs a region: set AWS_REGION"):
        resolve(f"bedrock/{CLAUDE}", {}, {})
    with pytest.raises(ModelError, match=r"vertex needs a project .*: set GOOGLE_CLOUD_PROJECT"):
        resolve("vertex/gemini-3.8-flash", {}, {})


@pytest.mark.parametrize(
    "library, name, said",
    [
        ("botocore", f"bedrock/{CLAUDE}", "pip install 'crow-acp[bedrock]', or set AWS_BEARER_TOKEN_BEDROCK"),
        ("google.auth", "vertex/gemini-3.8-flash", "pip install 'crow-acp[vertex]', or an apiKeyHelper"),
    ],
)  # fmt: skip
def test_a_missing_library_is_one_line_with_the_command_that_installs_it(
    library: str, name: str, said: str
) -> None:
    script = (
        f"import sys; sys.modules[{library!r}] = None\n"
        f"from crow.cli import main; sys.exit(main(['run', '--model', {name!r}, 'Hi']))"
    )
    env = {
        "AWS_REGION": "us-east-1",
        "GOOGLE_CLOUD_PROJECT": "p",
        "PATH": "",
        "HOME": str(Path.home()),
    }
    ran = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode != 0
    assert said in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_neither_library_is_imported_before_a_request() -> None:
    script = (
        "import sys\nfrom crow.llm import resolve\n"
        "resolve('bedrock/anthropic.claude-opus-5', {}, {'AWS_REGION': 'us-east-1'})\n"
        "resolve('vertex/gemini-3.8-flash', {}, {'GOOGLE_CLOUD_PROJECT': 'p'})\n"
        "print([name for name in sys.modules if name.startswith(('botocore', 'google.'))])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.stdout.strip() == "[]", ran.stderr


GOOGLE = "https://oauth2.googleapis.com/token"
GEMINI_SAYS = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1},
}


def as_service(folder: Path, tokens: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Application Default Credentials of a service, whose tokens come from an endpoint; its key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(*kind, serialization.NoEncryption()).decode()
    said = {"type": "service_account", "client_email": "crow@p.iam.gserviceaccount.com",
            "private_key": pem, "private_key_id": "1", "project_id": "p",
            "token_uri": f"{tokens.url}/token"}  # fmt: skip
    file = folder / "adc.json"
    file.write_text(json.dumps(said))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, public)


def token(text: str) -> Any:
    return respond(200, {"access_token": text, "expires_in": 3600, "token_type": "Bearer"})


async def test_vertex_gets_a_token_of_the_default_credentials_and_another_when_it_is_refused(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with Endpoint() as tokens:
        public = as_service(tmp_path, tokens, monkeypatch)
        tokens.play(token("ya29.first"), token("ya29.second"))
        said = stream(GEMINI_SAYS, done=False)
        endpoint.play([*said, b"0\r\n\r\n"], respond(401, "expired"), [*said, b"0\r\n\r\n"])
        settings = {"providers": {"vertex": {"base_url": endpoint.url, "wire": "gemini"}}}
        llm: Any = resolve("vertex/gemini-3.8-flash", settings, {"GOOGLE_CLOUD_PROJECT": "p"})
        assert await hear(llm) == "Hi."
        assert await hear(llm) == "Hi."
        asked = [parse_qs(each.raw.decode())["assertion"][0] for each in tokens.requests]
        claims = [jwt.decode(each, certs=public, audience=GOOGLE) for each in asked]
    assert [each["iss"] for each in claims] == ["crow@p.iam.gserviceaccount.com"] * 2
    assert claims[0]["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    sent = [each.headers["authorization"] for each in endpoint.requests]
    assert sent == ["Bearer ya29.first", "Bearer ya29.first", "Bearer ya29.second"]


async def test_claude_at_vertex_has_its_model_in_the_path_and_its_version_in_the_body(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with Endpoint() as tokens, StrictMessages() as vertex:
        as_service(tmp_path, tokens, monkeypatch)
        tokens.play(token("ya29.first"))
        vertex.say("Hi.")
        url = vertex.url + "/projects/p/locations/global/publishers/anthropic"
        settings = {"providers": {"vertex": {"base_url": url}}}
        llm: Any = resolve("vertex/claude-opus-4-8", settings, {"GOOGLE_CLOUD_PROJECT": "p"})
        assert await hear(llm) == "Hi."
        received = vertex.requests[0]
    assert received.path.endswith("/publishers/anthropic/models/claude-opus-4-8:streamRawPredict")
    assert received.headers["authorization"] == "Bearer ya29.first"
    assert "anthropic-version" not in received.headers
    assert "model" not in received.body
    assert received.body["anthropic_version"] == "vertex-2023-10-16"
    assert received.body["stream"] is True


async def test_a_login_that_google_refuses_says_how_to_log_in_again(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with Endpoint() as tokens:
        as_service(tmp_path, tokens, monkeypatch)
        tokens.play(respond(400, {"error": "invalid_grant", "error_description": "revoked"}))
        settings = {"providers": {"vertex": {"base_url": endpoint.url, "wire": "gemini"}}}
        llm = resolve("vertex/gemini-3.8-flash", settings, {"GOOGLE_CLOUD_PROJECT": "p"})
        with pytest.raises(
            ModelError, match=r"invalid_grant.* run gcloud auth application-default login"
        ):
            await hear(llm)


async def test_without_credentials_for_vertex_one_line_says_how_to_log_in(
    endpoint: Endpoint,
) -> None:
    settings = {"providers": {"vertex": {"base_url": endpoint.url, "wire": "gemini"}}}
    llm = resolve("vertex/gemini-3.8-flash", settings, {"GOOGLE_CLOUD_PROJECT": "p"})
    with pytest.raises(ModelError, match=r"no credentials of Google Cloud .*: run gcloud auth"):
        await hear(llm)

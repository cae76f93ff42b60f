"""Protected paths of a workspace, and secret ones of a home and a system: three tables.

Everything here runs programs when somebody opens the folder, starts a shell or calls git.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from crow.extensions.sandbox.mounts import is_below
from crow.extensions.sandbox.repositories import folders, repositories
from crow.extensions.sandbox.repository import named_paths

IN_ROOT = """
.crow .claude .codex .agents .gemini .cursor .mcp.json .opencode opencode.json opencode.jsonc .pi
.vscode .idea .zed .devcontainer .devcontainer.json .envrc .husky .hg/hgrc .jj/repo/config.toml
.bashrc .bash_profile .bash_login .bash_logout .profile .inputrc .zshrc .zshenv .zprofile .zlogin
.gitconfig .gitmodules .npmrc .yarnrc .yarnrc.yml .pnp.cjs .pnp.loader.mjs .ripgreprc
.pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .cargo .mvn .bazelrc
""".split()
IN_REPOSITORY = ("config", "hooks")
OWN = ("~/.gitconfig", "~/.config/git/config")
"""The settings of git for all repositories of a person."""
SECRETS = """
.ssh .aws .azure .gnupg .kube .docker/config.json .netrc .git-credentials .pgpass .pypirc
.config/gh .config/gcloud .config/op .config/crow/credentials.json .config/git/credentials
.password-store .local/share/keyrings .mozilla .config/google-chrome .config/chromium
.cargo/credentials.toml .gem/credentials .terraform.d/credentials.tfrc.json
""".split()
SYSTEM_SECRETS = """
/etc/shadow /etc/shadow- /etc/ssl/private /etc/pki/tls/private
/etc/krb5.keytab /etc/wireguard /etc/kubernetes /etc/rancher /etc/NetworkManager/system-connections
/etc/ssh/ssh_host_rsa_key /etc/ssh/ssh_host_ecdsa_key /etc/ssh/ssh_host_ed25519_key
""".split()


def protected_paths(root: str) -> tuple[str, ...]:
    """What may not be written in a root, there or not; with the repositories of its folders.

    So is what git's settings name: further settings, and another folder of hooks.
    """
    found = [f"{root}/{name}" for name in IN_ROOT]
    named = [path for name in OWN for path in named_paths(os.path.expanduser(name), (root,))]
    for repository in repositories(root):
        found += [f"{repository}/{name}" for name in IN_REPOSITORY]
        named += named_paths(f"{repository}/config", (root, repository.removesuffix("/.git")))
    found += [path for path in named if path != root and is_below(path, (root,))]
    if os.path.isfile(f"{root}/.git"):  # noqa: PTH113 - of a linked worktree
        found.append(f"{root}/.git")
    return tuple(dict.fromkeys(found))


def all_secrets() -> Iterator[str]:
    """Keys and credentials that are there and could be read; root has those of every home."""
    homes = [str(Path.home()), *(folders("/home") if os.geteuid() == 0 else ())]
    with suppress(ImportError, KeyError):
        import pwd

        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)  # $HOME may be another one
    for home in dict.fromkeys(homes):
        yield from secret_paths(home)
    yield from (path for path in SYSTEM_SECRETS if os.access(path, os.R_OK))


def secret_paths(home: str) -> tuple[str, ...]:
    """Keys and credentials of a home that are there."""
    paths = (f"{home}/{name}" for name in SECRETS)
    return tuple(path for path in paths if os.path.lexists(path))

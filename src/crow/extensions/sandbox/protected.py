"""What is protected in a workspace, and what is secret in a home and a system: three tables.

Everything here runs programs when somebody opens the folder, starts a shell or calls git.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_MANY = 200  # folders of a root that are looked into for repositories of their own

IN_ROOT = """
.crow .claude .codex .agents .gemini .cursor .mcp.json
.vscode .idea .zed .devcontainer .devcontainer.json .envrc .husky .hg/hgrc .jj/repo/config.toml
.bashrc .bash_profile .bash_login .bash_logout .profile .inputrc .zshrc .zshenv .zprofile .zlogin
.gitconfig .gitmodules .npmrc .yarnrc .yarnrc.yml .pnp.cjs .pnp.loader.mjs .ripgreprc
.pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .cargo .mvn .bazelrc
""".split()
IN_REPOSITORY = ("config", "hooks")
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
    """What may not be written in a root, there or not; with the repositories of its folders."""
    found = [f"{root}/{name}" for name in IN_ROOT]
    found += [f"{repository}/{name}" for repository in repositories(root) for name in IN_REPOSITORY]
    if os.path.isfile(f"{root}/.git"):  # noqa: PTH113 - of a linked worktree
        found.append(f"{root}/.git")
    return tuple(found)


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


def repositories(root: str) -> Iterator[str]:
    """Git's folders in a root: its own, there or not, those of submodules and of its folders.

    A linked worktree's own is the one that it shares. A folder with ``HEAD``, ``objects`` and
    ``refs`` is one as well.
    """
    own = f"{root}/.git"
    shared = shared_repository(root)
    yield shared or own
    yield from (path for path in folders(f"{own}/modules") if is_repository(path))
    for folder in (root, *folders(root)):
        for path in (f"{folder}/.git", folder):
            if path != own and is_repository(path):
                yield path


def is_repository(path: str) -> bool:
    """True for a folder that git takes for a repository."""
    return all(os.path.exists(f"{path}/{name}") for name in ("HEAD", "objects", "refs"))  # noqa: PTH110


def folders(path: str) -> list[str]:
    """Its folders, a bounded number of them; none where it cannot be read."""
    found: list[str] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.append(entry.path)
                if len(found) == _MANY:
                    break
    except OSError:
        return []
    return found


def shared_repository(root: str) -> str | None:
    """The repository that a linked worktree belongs to, if the repository says so too.

    The worktree's own word is not enough: a command may have written it.
    """
    try:
        with open(f"{root}/.git") as pointer:  # noqa: PTH123
            word, _, inner = pointer.read(4096).strip().partition(": ")
        with open(f"{inner}/gitdir") as back:  # noqa: PTH123
            claimed = os.path.realpath(back.read(4096).strip())
    except (OSError, ValueError):
        return None
    if word != "gitdir" or claimed != os.path.realpath(f"{root}/.git"):
        return None
    common = os.path.dirname(os.path.dirname(os.path.realpath(inner)))  # noqa: PTH120
    return common if is_repository(common) else None

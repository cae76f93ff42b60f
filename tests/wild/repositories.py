"""The repositories that the entries and plugins are from, and the commits that they were driven at.

In ``.wild``, or wherever ``CROW_WILD`` points, ``PYTHONPATH=.. ../.venv/bin/python -m
tests.wild.repositories | sh`` has them. They are programs of others, and run as you: read them first.
"""

from __future__ import annotations

REPOSITORIES = {
    "affaan-m/everything-claude-code": "c40b6c0cf5968f606ff0d45071a0495b015d0ff5",
    "anthropics/claude-code": "5cfc0a1905ce0c0a9bd81d8a90fe6b62ff614357",
    "anthropics/claude-plugins-official": "340e33aef211d95769d252324854497af871dafe",
    "bartolli/claude-code-typescript-hooks": "43a5b4eb21833fe64e2363af9a889b28cebb4492",
    "davila7/claude-code-templates": "c2b584d4b8493e98a885b1b9aabb0736bccfe7cf",
    "dazuiba/CCNotify": "512a344e4601bd979bcf5094fc6136bc89817c13",
    "decider/claude-hooks": "5278ebda86544cf3d06cfdde6d1c0f8f36727a46",
    "Dev-GOM/claude-code-marketplace": "94cb02fe4f6794e01ae10dcf18b461a6ec6f41e5",
    "diet103/claude-code-infrastructure-showcase": "a5818cb99f54f360303feacdeebe2ded291fdf71",
    "disler/claude-code-damage-control": "f4792c4350f894991292dcfd3f62319abf36360e",
    "disler/claude-code-hooks-mastery": "052ad1cbd5aeb1ec4a1def22012d1293c6225625",
    "disler/claude-code-hooks-multi-agent-observability": "8a6e5cf795df50767cea7123703751282a819697",
    "EveryInc/compound-engineering-plugin": "925b4ef71cbee0b4205693c4cafc9b2c557a603a",
    "karanb192/claude-code-hooks": "811aeb7279e2517efb86acf800b73ff2089f3da8",
    "kenryu42/claude-code-safety-net": "1819ca2d7527e261fbfaee17237bc54d857a726c",
    "obra/superpowers": "44c9b2d6e889982ac18c27d05a19fefe335194e1",
    "OthmanAdi/planning-with-files": "9e94390e5912b1ff296556505cd999ff84838160",
    "pchalasani/claude-code-tools": "c222978367db632e026c8a2be0a605b1b5bf14e0",
    "severity1/claude-code-prompt-improver": "cf00dfcd4543f235584be13367d9dccc96c9f361",
    "trailofbits/skills": "293fb74c3151cceda32a85a545fe8acd67f8f5c6",
    "webdevtodayjason/claude-hooks": "8d84406218496bcfd1a87c5d5eb4070cb478e4b8",
    "wshobson/agents": "367cb6a4a182cf7e9b0a17c9429f7411ddd9cf35",
}


def main() -> None:
    """Print a line for the shell for each."""
    for name, commit in REPOSITORIES.items():
        url = f"https://github.com/{name}.git"
        print(f"git init -q {name} && git -C {name} fetch -q --depth 1 {url} {commit} &&", end=" ")
        print(f"git -C {name} checkout -q FETCH_HEAD")


if __name__ == "__main__":
    main()

"""A folder on disk as a project: what it brings along, what of that would run, and trust."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.project.files import read_secrets as read_secrets
    from crow.project.files import reason as reason
    from crow.project.files import write_atomically as write_atomically
    from crow.project.files import write_secrets as write_secrets
    from crow.project.front_matter_event import FrontMatterContext as FrontMatterContext
    from crow.project.front_matter_event import define_front_matter as define_front_matter
    from crow.project.front_matter_event import use_front_matter as use_front_matter
    from crow.project.frontmatter import FrontMatter as FrontMatter
    from crow.project.held_folders import held_folder as held_folder
    from crow.project.held_folders import put_in as put_in
    from crow.project.held_folders import replace_in as replace_in
    from crow.project.home import from_home as from_home
    from crow.project.home import state_directory as state_directory
    from crow.project.other_agents.item import Brought as Brought
    from crow.project.outputs import OutputFolder as OutputFolder
    from crow.project.plugins import Plugin as Plugin
    from crow.project.plugins import fill_placeholders as fill_placeholders
    from crow.project.plugins import matching_names as matching_names
    from crow.project.plugins import placeholder_values as placeholder_values
    from crow.project.settings import HookFile as HookFile
    from crow.project.settings import ProjectSettings as ProjectSettings
    from crow.project.settings import Proposals as Proposals
    from crow.project.settings import SandboxSettings as SandboxSettings
    from crow.project.settings import ServerPolicy as ServerPolicy
    from crow.project.trust import foreign_folders as foreign_folders
    from crow.project.trust import is_trusted as is_trusted
    from crow.project.trust import project_of as project_of
    from crow.project.trust import repository_folders as repository_folders

_ROOMS = {
    "crow.project.other_agents.item": "Brought",
    "crow.project.files": "read_secrets reason write_atomically write_secrets",
    "crow.project.frontmatter": "FrontMatter",
    "crow.project.held_folders": "held_folder put_in replace_in",
    "crow.project.home": "from_home state_directory",
    "crow.project.outputs": "OutputFolder",
    "crow.project.plugins": "Plugin fill_placeholders matching_names placeholder_values",
    "crow.project.settings": "HookFile ProjectSettings Proposals SandboxSettings ServerPolicy",
    "crow.project.trust": "foreign_folders is_trusted project_of repository_folders",
    "crow.project.front_matter_event": "FrontMatterContext define_front_matter use_front_matter",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)

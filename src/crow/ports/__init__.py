"""Ports: what an object may have beside what it must, as protocols by who asks for it.

Nobody inherits from them: who has the members is one. `implements` says so of any object; what an
object has is used, and without it all the rest works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.core.cache import Closable as Closable
    from crow.core.extensions import AgentExtension as AgentExtension
    from crow.core.extensions import LifespanExtension as LifespanExtension
    from crow.core.extensions import SessionExtension as SessionExtension
    from crow.core.ports.client import AttendedClient as AttendedClient
    from crow.core.ports.client import FormClient as FormClient
    from crow.core.ports.client import PageClient as PageClient
    from crow.core.ports.client import is_attended as is_attended
    from crow.core.ports.llm import KeyUser as KeyUser
    from crow.core.ports.llm import NamedModels as NamedModels
    from crow.core.ports.llm import PurposeModels as PurposeModels
    from crow.core.ports.llm import model_named as model_named
    from crow.core.ports.tool import AskingTool as AskingTool
    from crow.core.ports.tool import CheckedTool as CheckedTool
    from crow.core.ports.tool import DeferrableTool as DeferrableTool
    from crow.core.ports.tool import HintedTool as HintedTool
    from crow.core.ports.tool import InteractiveTool as InteractiveTool
    from crow.core.ports.tool import LocatedTool as LocatedTool
    from crow.core.ports.tool import PreparingTool as PreparingTool
    from crow.core.ports.tool import PreviewTool as PreviewTool
    from crow.core.ports.tool import TitledTool as TitledTool
    from crow.core.sessions import SessionKeeper as SessionKeeper
    from crow.core.store import AttachmentStore as AttachmentStore
    from crow.core.support.validation import first_implementing as first_implementing
    from crow.core.support.validation import implementing as implementing
    from crow.core.support.validation import implements as implements
    from crow.ports.clients import BrowserClient as BrowserClient
    from crow.ports.clients import HookClient as HookClient
    from crow.ports.clients import OneShotClient as OneShotClient
    from crow.ports.clients import OpeningClient as OpeningClient
    from crow.ports.clients import ServerClient as ServerClient
    from crow.ports.clients import SubagentClient as SubagentClient
    from crow.ports.clients import TerminalClient as TerminalClient
    from crow.ports.clients import waits_for_servers as waits_for_servers
    from crow.ports.extensions import CommandChecker as CommandChecker
    from crow.ports.extensions import Configurable as Configurable
    from crow.ports.extensions import FileKeeper as FileKeeper
    from crow.ports.extensions import HandlerProvider as HandlerProvider
    from crow.ports.extensions import Inherited as Inherited
    from crow.ports.extensions import ModeProvider as ModeProvider
    from crow.ports.extensions import OptionsHolder as OptionsHolder
    from crow.ports.extensions import OptionsReader as OptionsReader
    from crow.ports.extensions import Ordered as Ordered
    from crow.ports.extensions import PluginReader as PluginReader
    from crow.ports.extensions import RewindOutcome as RewindOutcome
    from crow.ports.extensions import RewindPlan as RewindPlan
    from crow.ports.extensions import RewindStep as RewindStep
    from crow.ports.extensions import RuleMatcher as RuleMatcher
    from crow.ports.extensions import ServerBringer as ServerBringer
    from crow.ports.extensions import ServerConnector as ServerConnector
    from crow.ports.extensions import SkillReader as SkillReader
    from crow.ports.extensions import SubagentPrompter as SubagentPrompter
    from crow.ports.extensions import Successor as Successor
    from crow.ports.extensions import ToolBringer as ToolBringer
    from crow.ports.extensions import WarningProvider as WarningProvider
    from crow.ports.extensions import WorktreeProvider as WorktreeProvider
    from crow.ports.faces import AgentDefiner as AgentDefiner
    from crow.ports.faces import BackgroundWorker as BackgroundWorker
    from crow.ports.faces import CardProvider as CardProvider
    from crow.ports.faces import ChoiceProvider as ChoiceProvider
    from crow.ports.faces import ClientPrompter as ClientPrompter
    from crow.ports.faces import CompletingCommand as CompletingCommand
    from crow.ports.faces import KeyProvider as KeyProvider
    from crow.ports.faces import LateArrival as LateArrival
    from crow.ports.faces import McpConnector as McpConnector
    from crow.ports.faces import MentionProvider as MentionProvider
    from crow.ports.faces import NamedAgent as NamedAgent
    from crow.ports.faces import OpenSession as OpenSession
    from crow.ports.faces import PresenceProvider as PresenceProvider
    from crow.ports.faces import SessionInventory as SessionInventory
    from crow.ports.faces import StatusProvider as StatusProvider
    from crow.ports.faces import StyleProvider as StyleProvider
    from crow.ports.faces import SwitchProvider as SwitchProvider
    from crow.ports.faces import ToolFilter as ToolFilter
    from crow.ports.faces import WidgetProvider as WidgetProvider
    from crow.ports.models import KeyedModel as KeyedModel
    from crow.ports.models import KeyHolder as KeyHolder
    from crow.ports.models import KnownModel as KnownModel
    from crow.ports.models import ListedModels as ListedModels
    from crow.ports.models import ModelFacts as ModelFacts
    from crow.ports.models import ModelFinder as ModelFinder
    from crow.ports.models import ModelList as ModelList
    from crow.ports.models import ModelPrices as ModelPrices
    from crow.ports.models import MultimodalModel as MultimodalModel
    from crow.ports.models import ReasoningModel as ReasoningModel
    from crow.ports.models import RemoteModel as RemoteModel
    from crow.ports.models import RoutedModels as RoutedModels
    from crow.ports.models import facts_of as facts_of
    from crow.ports.models import has_routes as has_routes
    from crow.ports.models import inputs_of as inputs_of
    from crow.ports.models import names_of as names_of
    from crow.ports.models import thought_levels_of as thought_levels_of
    from crow.ports.models import url_of as url_of
    from crow.ports.stores import ArchiveStore as ArchiveStore
    from crow.ports.stores import ExportStore as ExportStore
    from crow.ports.stores import ForkStore as ForkStore
    from crow.ports.stores import ImportStore as ImportStore
    from crow.ports.stores import KnowingStore as KnowingStore
    from crow.ports.stores import LeasingStore as LeasingStore
    from crow.ports.stores import OverviewStore as OverviewStore
    from crow.ports.stores import ReplayStore as ReplayStore
    from crow.ports.stores import SearchHit as SearchHit
    from crow.ports.stores import SearchStore as SearchStore
    from crow.ports.stores import SegmentStore as SegmentStore
    from crow.ports.stores import SessionOverview as SessionOverview
    from crow.ports.stores import SessionPoint as SessionPoint
    from crow.ports.stores import SharedStore as SharedStore
    from crow.ports.stores import TitleStore as TitleStore
    from crow.ports.stores import TreeStore as TreeStore
    from crow.ports.tools import ChangedTool as ChangedTool
    from crow.ports.tools import ServerTool as ServerTool
    from crow.ports.tools import SessionTool as SessionTool
    from crow.ports.tools import serves_session as serves_session

_ROOMS = {
    "crow.core.cache": "Closable",
    "crow.core.ports.client": "AttendedClient FormClient PageClient is_attended",
    "crow.core.ports.llm": "KeyUser NamedModels PurposeModels model_named",
    "crow.core.ports.tool": (
        "CheckedTool LocatedTool PreparingTool PreviewTool TitledTool HintedTool "
        "DeferrableTool AskingTool InteractiveTool"
    ),
    "crow.core.extensions": "AgentExtension LifespanExtension SessionExtension",
    "crow.core.sessions": "SessionKeeper",
    "crow.core.store": "AttachmentStore",
    "crow.core.support.validation": "first_implementing implementing implements",
    "crow.ports.clients": (
        "BrowserClient HookClient OneShotClient OpeningClient ServerClient SubagentClient "
        "TerminalClient waits_for_servers"
    ),
    "crow.ports.extensions": (
        "CommandChecker Configurable FileKeeper HandlerProvider Inherited ModeProvider "
        "OptionsHolder OptionsReader Ordered PluginReader RewindOutcome RewindPlan RewindStep "
        "RuleMatcher ServerBringer ServerConnector SkillReader SubagentPrompter Successor "
        "ToolBringer WarningProvider WorktreeProvider"
    ),
    "crow.ports.faces": (
        "AgentDefiner BackgroundWorker CardProvider ChoiceProvider ClientPrompter "
        "CompletingCommand KeyProvider LateArrival McpConnector MentionProvider NamedAgent "
        "OpenSession PresenceProvider SessionInventory StatusProvider StyleProvider "
        "SwitchProvider ToolFilter WidgetProvider"
    ),
    "crow.ports.models": (
        "KeyHolder KeyedModel KnownModel ListedModels ModelFacts ModelFinder ModelList "
        "ModelPrices MultimodalModel ReasoningModel RemoteModel RoutedModels facts_of "
        "has_routes inputs_of names_of thought_levels_of url_of"
    ),
    "crow.ports.stores": (
        "ArchiveStore ExportStore ForkStore ImportStore KnowingStore LeasingStore "
        "OverviewStore ReplayStore SearchHit SearchStore SegmentStore SessionOverview "
        "SessionPoint SharedStore TitleStore TreeStore"
    ),
    "crow.ports.tools": "ChangedTool ServerTool SessionTool serves_session",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)

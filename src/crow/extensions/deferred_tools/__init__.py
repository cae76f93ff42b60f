"""Tools that stand in no list in front of a conversation: those that come late, or are many."""

from crow.extensions.deferred_tools.hook import CALL_TOOL as CALL_TOOL
from crow.extensions.deferred_tools.hook import DeferredToolsHook as DeferredToolsHook

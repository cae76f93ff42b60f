"""Seventy faults that a coding agent must survive, what is expected of Crow, and the tests that show it.

``L`` is the model's endpoint, ``T`` a tool, ``C`` the client, ``S`` what is stored, ``H`` a hook and
``M`` an MCP server. A test is named by its file and the beginning of its name.
"""

from __future__ import annotations

import ast
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PATIENCE = 5.0 if os.environ.get("CROW_CHAOS") else 20.0
"""Seconds that nobody may wait longer; more where the machine does other things beside."""

LLM = "tests/llm/test_faults.py"
BASH = "tests/tools/test_bash.py"
FILES = "tests/tools/test_files.py"
ACP = "tests/acp"
STORE = "tests/extensions/persistence"
HOOKS = "tests/extensions/shell_hooks"
MCP = "tests/extensions/mcp/test_faults.py"


class Fault(NamedTuple):
    """What happens, what Crow does then, and the tests that hold it to that."""

    name: str
    happens: str
    expected: str
    shown_by: tuple[str, ...]

    def node_ids(self) -> list[str]:
        """Its tests, without parameters. Raises `LookupError` where a name is nobody's."""
        found: list[str] = []
        for named in self.shown_by:
            file, _, beginning = named.partition("::")
            names = [each for each in _functions(file) if each.startswith(beginning)]
            if not names:
                raise LookupError(f"{self.name}: there is no test {named}")
            found += [f"{file}::{name}" for name in names]
        return found


@cache
def _functions(file: str) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return [each.name for each in tree.body if isinstance(each, kinds)]


LIFE = Fault(
    "", "all of it, over real pipes, in any order",
    "nobody waits for five seconds, nothing that was answered is lost",
    ("tests/acp/test_life.py::test_nobody_waits_and_nothing_is_lost",),
)  # fmt: skip


def _of(file: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{file}::{name}" for name in names)


FAULTS = (
    # the model's endpoint
    Fault("L01", "429 with Retry-After", "waited at least so long; a cancel ends the wait",
          _of(LLM, "test_L01_")),
    Fault("L02", "Retry-After as a date, as garbage, as a day",
          "understood, passed over, or the turn fails at once", _of(LLM, "test_L02_")),
    Fault("L03", "500, 502, 503, 529", "tried again so often; the next prompt works",
          _of(LLM, "test_L03_")
          + _of("tests/core/test_loop.py", "test_a_model_that_ends_without_an_answer_is_an_error")),
    Fault("L04", "401, 403, 404", "not tried again; endpoint and model named, never the key",
          _of(LLM, "test_L04_")),
    Fault("L05", "the context is too long", "compacted once and sent once more; no endless compacting",
          _of(LLM, "test_L05_")
          + _of("tests/extensions/test_compaction.py", "test_a_request_that_is_too_long_is_sent_once",
                "test_a_request_that_stays_too_long_ends_the_run",
                "test_requests_that_are_too_long_one_after_another",
                "test_two_compactions_without_progress_end_the_run")),
    Fault("L06", "a reset before the headers", "tried again", _of(LLM, "test_L06_")),
    Fault("L07", "a reset in the middle of a text", "tried again; nothing is shown twice",
          _of(LLM, "test_L07_")),
    Fault("L08", "broken events, HTML, an empty 200", "tried again, and quoted; never an empty answer",
          _of(LLM, "test_L08_")),
    Fault("L09", "no [DONE], comments, CRLF, split characters, empty choices",
          "read as it was meant, byte for byte", _of(LLM, "test_L09_")),
    Fault("L10", "an error inside of the stream, the socket open", "acted on at once",
          _of(LLM, "test_L10_")),
    Fault("L11", "silence before, between and behind events",
          "noticed by what is said, not by bytes; a cancel works meanwhile", _of(LLM, "test_L11_")),
    Fault("L12", "an answer without end", "cut off; memory stays bounded", _of(LLM, "test_L12_")),
    Fault("L13", "a tool call that was cut off", "never run", _of(LLM, "test_L13_")),
    Fault("L14", "arguments that are no object or do not fit",
          "an error for the model; three in a row end the run",
          _of(LLM, "test_L14_")
          + _of("tests/core/test_loop.py", "test_arguments_that_do_not_fit_the_schema")
          + _of("tests/extensions/test_limits.py", "test_three_replies_in_a_row_that_cannot_run")),
    Fault("L15", "a tool that does not exist", "an error that names those there are; nobody is asked",
          _of("tests/core/test_loop.py", "test_an_unknown_tool_is_an_error")),
    Fault("L16", "ids of calls that are doubled or missing", "every call runs once, under its own id",
          _of(LLM, "test_L16_") + _of("tests/core/test_call_ids.py", "test_")),
    Fault("L17", "a tool call that ends with `stop`", "run", _of(LLM, "test_L17_")),
    Fault("L18", "a refusal, an empty message",
          "told as a refusal; asked about once; nothing empty is kept",
          _of(LLM, "test_L18_")
          + _of("tests/core/test_loop.py", "test_an_empty_answer_leaves_no_empty_message")
          + _of("tests/extensions/test_limits.py", "test_an_empty_answer_is_asked_about_once",
                "test_a_second_empty_answer_ends_the_run")),
    Fault("L19", "half a surrogate pair, two megabytes in one piece", "cleaned, and taken",
          _of(LLM, "test_L19_")),
    Fault("L20", "the same calls for ever", "circles of up to five are seen, warned of and ended",
          _of("tests/extensions/test_stuck.py", "test_circles_of_up_to_five",
              "test_a_warning_comes_first", "test_a_and_b_in_turns")
          + _of("tests/extensions/test_limits.py", "test_the_usual_limit")),
    # tools
    Fault("T01", "a command that hangs", "its whole group is ended, its output until then is kept",
          _of(BASH, "test_t01_")),
    Fault("T02", "a command that ignores SIGTERM or leaves its group", "killed all the same",
          _of(BASH, "test_t02_", "test_children_die_with_the_agent")),
    Fault("T03", "a child that keeps the output open", "the result does not wait for it",
          _of(BASH, "test_t03_")),
    Fault("T04", "output without end", "bounded for the model and in memory, kept on disk up to a cap",
          _of(BASH, "test_t04_")),
    Fault("T05", "bytes that are no text, terminal control", "made readable", _of(BASH, "test_t05_")),
    Fault("T06", "a command that wants input or a terminal", "the end of input at once",
          _of(BASH, "test_t06_")),
    Fault("T07", "a program that a signal ends", "told as that", _of(BASH, "test_t07_")),
    Fault("T08", "a working directory that is gone", "a clear error", _of(BASH, "test_t08_")),
    Fault("T09", "a file that changes, or becomes a link, under an edit",
          "refused; nothing is written outside", _of(FILES, "test_t09_")),
    Fault("T10", "one of several calls fails or is cancelled", "the others end; results in order",
          _of(BASH, "test_t10_") + _of("tests/tools/test_in_the_loop.py", "test_t10_")),
    # the client
    Fault("C01", "the end of input in the middle of a turn", "answered, ended, nothing stays",
          _of(f"{ACP}/test_process.py", "test_what_ends_the_process_ends_it",
              "test_a_signal_that_ends_it")),
    Fault("C02", "the parent dies and the pipe stays open", "noticed, ended",
          _of(f"{ACP}/test_process.py", "test_the_death_of_the_parent")),
    Fault("C03", "a cancel, in every phase", "one answer, `cancelled`; the next prompt works",
          _of(f"{ACP}/test_cancel.py", "test_before", "test_in_the_middle", "test_while",
              "test_right_behind", "test_prompts_that_wait", "test_a_hook_that_swallows")),
    Fault("C04", "a cancel for nobody, or twice", "passed over",
          _of(f"{ACP}/test_cancel.py", "test_after_the_end_twice")),
    Fault("C05", "messages that are broken, wrong or unknown", "the right error; the line stays up",
          _of(f"{ACP}/test_faults.py", "test_it_is_answered", "test_what_wants_no_answer")
          + _of(f"{ACP}/test_fuzz.py", "test_every_request_has_one_answer_and")),
    Fault("C06", "a line of 16 MiB, and a longer one", "taken; skipped and answered",
          _of(f"{ACP}/test_faults.py", "test_a_prompt_of_16", "test_a_line_that_is_too_long")),
    Fault("C07", "a second prompt in a turn", "answered after it, in order",
          _of(f"{ACP}/test_prompt.py", "test_prompts_during_a_turn")),
    Fault("C08", "a reader that is slow, or stops", "the model is held back, nothing is lost",
          _of(f"{ACP}/test_flow.py", "test_a_client_that_does_not_read", "test_pieces_grow")),
    Fault("C09", "an output that does not block, or is closed", "written whole; an end of input",
          _of(f"{ACP}/test_process.py", "test_a_stdout_that_does_not_block",
              "test_nobody_reading_any_more")),
    Fault("C10", "questions that the client never answers", "given up; what else there is goes on",
          _of(f"{ACP}/test_patience.py", "test_")
          + _of("tests/tools/test_client_files.py", "test_an_editor_that_does_not_answer")),
    Fault("C11", "the client dies over a question", "not run; asked again where it goes on",
          _of(f"{ACP}/test_practice.py", "test_a_session_survives_a_kill_in_a_question")
          + _of(f"{ACP}/test_sessions.py", "test_a_question_that_nobody_answered_is_asked_again")),
    Fault("C12", "something prints to the standard output", "the protocol's stream stays clean",
          _of(f"{ACP}/test_process.py", "test_nothing_but_the_protocol_is_on_stdout")),
    # what is stored
    Fault("S01", "a kill at any instant", "all that was heard is there; no call hangs or runs again",
          _of(f"{STORE}/test_death.py", "test_a_kill_at_any")
          + _of(f"{STORE}/test_recovery.py", "test_a_quick_tools_result", "test_a_call_that_waited")),
    Fault("S02", "a full disk", "one clear error, no word lost, settings whole",
          _of(f"{STORE}/test_scarcity.py", "test_a_full_disk")
          + _of(f"{STORE}/test_faults.py", "test_a_full_disk", "test_no_tool_runs_whose_intent")
          + _of("tests/chaos/test_disk.py", "test_")),
    Fault("S03", "a database that is locked", "waited for; nothing is lost or blocked",
          _of(f"{STORE}/test_faults.py", "test_a_lock_held_elsewhere")
          + _of(f"{STORE}/test_recovery.py", "test_what_a_locked_database_could_not_take")),
    Fault("S04", "a database that is damaged", "kept aside, whole sessions come over",
          _of(f"{STORE}/test_faults.py", "test_a_damaged_database", "test_sessions_that_are_whole",
              "test_a_torn_write_ahead_log")),
    Fault("S05", "SQLite's race of two checkpoints", "a library in which it is mended",
          _of("tests/chaos/test_sqlite.py", "test_")),
    Fault("S06", "two processes at one session", "the second is told that it is in use",
          _of(f"{STORE}/test_recovery.py", "test_a_second_process", "test_two_processes_write")
          + _of(f"{ACP}/test_in_use.py", "test_")),
    Fault("S07", "a folder that is on a network or cannot be written", "said; the session goes on",
          _of(f"{STORE}/test_faults.py", "test_the_file_system_of_a_path",
              "test_where_nothing_can_be_stored")
          + _of(f"{STORE}/test_scarcity.py", "test_in_a_folder_that_cannot_be_written")),
    Fault("S08", "an older or newer schema, a kind from the future", "brought forward, refused, kept",
          _of(f"{STORE}/test_faults.py", "test_an_older_database", "test_a_newer_database",
              "test_a_kind_of_record_from_the_future", "test_a_migration_that_fails")),
    Fault("S09", "one bad record", "passed over and marked",
          _of(f"{STORE}/test_faults.py", "test_a_damaged_record")),
    Fault("S10", "the clock jumps back", "the order stays",
          _of(f"{STORE}/test_sessions.py", "test_the_session_used_last_is_first")),
    # hooks
    Fault("H01", "a guard that fails or is not there", "what was settled for that; never silently yes",
          _of("tests/core/test_kinds.py", "test_a_gate_that_cannot_decide_denies")
          + _of(f"{HOOKS}/test_outputs.py", "test_a_guard_that_fails", "test_on_failure_decides")
          + _of(f"{HOOKS}/test_traps.py", "test_a_missing_script")),
    Fault("H02", "a hook that hangs", "its group is killed, its gate shut; a cancel works",
          _of(f"{HOOKS}/test_traps.py", "test_on_a_time_out")
          + _of(f"{HOOKS}/test_running.py", "test_cancelling_a_run_kills")
          + _of("tests/core/test_overtime.py", "test_a_gate_that_swallows",
                "test_no_hook_at_any_point_that_never_ends")),
    Fault("H03", "answers that are garbage, endless or of wrong types", "read to a limit; no consent",
          _of(f"{HOOKS}/test_running.py", "test_endless_output")
          + _of(f"{HOOKS}/test_outputs.py", "test_an_answer_that_cannot_be_read",
                "test_output_that_is_longer")),
    Fault("H04", "a stop hook that never lets go", "ended at the cap, and said",
          _of("tests/core/test_kinds.py", "test_the_cap_overrides_a_stop_hook")
          + _of(f"{HOOKS}/test_traps.py", "test_the_ninth_continuation")),
    Fault("H05", "a hook that starts what starts it", "stopped",
          _of(f"{HOOKS}/test_background.py", "test_hooks_that_start_crow_inside_each_other")
          + _of("tests/core/test_reentry.py", "test_at_every_point")),
    Fault("H06", "a hook that blocks, or wants to end the program", "named; nothing ends",
          _of("tests/core/test_overtime.py", "test_who_blocks_in_any_step",
              "test_a_synchronous_gate_that_took_longer")
          + _of("tests/core/test_culprits.py", "test_whatever_a_hook_raises",
                "test_a_hook_that_wants_to_end_the_program")),
    Fault("H07", "a hook that rewrites a call", "the rewritten one is judged",
          _of("tests/core/test_kinds.py", "test_a_judge_sees_the_final_arguments")
          + _of(f"{HOOKS}/test_permission.py", "test_deny_and_ask_rules_judge_the_rewritten")),
    Fault("H08", "hooks that disagree", "the strictest stands, in every order",
          _of("tests/core/test_kinds.py", "test_no_order_of_hooks")
          + _of(f"{HOOKS}/test_outputs.py", "test_the_strictest_of_several")),
    Fault("H09", "a hook's file that the agent changes", "asked about; it runs no more until trusted",
          _of("tests/app/test_scripts.py", "test_no_model_writes_a_hooks_script",
              "test_a_script_that_somebody_changes")),
    # MCP servers
    Fault("M01", "a server that never answers `initialize`", "holds up nobody; told",
          _of(MCP, "test_m01_")),
    Fault("M02", "a server that prints logs, or ends at once", "passed over; named with its last words",
          _of(MCP, "test_m02_")),
    Fault("M03", "a server that dies", "its calls fail at once; it comes back", _of(MCP, "test_m03_")),
    Fault("M04", "a call that is never answered", "given up and taken back", _of(MCP, "test_m04_")),
    Fault("M05", "a schema that is none", "that tool is left out by name", _of(MCP, "test_m05_")),
    Fault("M06", "tools that change", "read between turns, and asked about again",
          _of(MCP, "test_m06_")),
    Fault("M07", "names that collide", "not exposed, and named", _of(MCP, "test_m07_")),
    Fault("M08", "a huge result, one that plays the system", "bounded; it passes for nothing else",
          _of(MCP, "test_m08_")),
    Fault("M09", "a line without end", "the connection is closed, memory stays bounded",
          _of(MCP, "test_m09_")),
)  # fmt: skip

"""Questions of the model to the user: a choice between ways, and whether a plan is carried out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from crow import ConfigContext, RunContext, Tool, ToolContext, ToolEnvironment, ToolResult
from crow.dataclasses import entity
from crow.events import Form
from crow.keys import GIVEN_MODE, Key
from crow.ports import is_attended
from crow.tools import ToolKind

NAME = "questions"
OFFERED: Key[bool] = Key(NAME)
BEFORE: Key[str] = Key("questions.before")
"""The mode before planning; not stored: a later start need not have it of the same settings."""
PLAN, ACCEPT, DEFAULT = "plan", "acceptEdits", "default"
OTHER = "Something else"
ENOUGH = "That is all"
FIELD, OWN = "question_{}", "question_{}_custom"
MOST_QUESTIONS, LEAST_OPTIONS, MOST_OPTIONS = 4, 2, 4
UNANSWERED = "Nobody has answered: decide yourself, and say what you took for granted."
TEXT: dict[str, Any] = {"type": "string"}
OPTION = {
    "type": "object",
    "properties": {"label": TEXT, "description": TEXT},
    "required": ["label"],
}
QUESTION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "question": TEXT,
        "header": TEXT,
        "options": {"type": "array", "items": OPTION},
        "multiSelect": {"type": "boolean"},
    },
    "required": ["question", "options"],
}
QUESTIONS: dict[str, Any] = {
    "type": "object",
    "properties": {"questions": {"type": "array", "items": QUESTION}},
    "required": ["questions"],
}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
PLANS: dict[str, Any] = {"type": "object", "properties": {"plan": TEXT}, "required": ["plan"]}
YES_ALL, YES, NO = "Yes, and accept edits", "Yes, and ask as before", "No, go on planning"


@entity
class QuestionsHook:
    """Adds ``AskUserQuestion``, ``ExitPlanMode`` and ``EnterPlanMode``, where somebody can answer.

    They are offered from the first prompt on that is worked on in the mode ``plan``, or ``always``.
    Their names, arguments and results are Claude Code's. What is asked is shown as the client shows
    questions: as a form, as options, or with numbers. Leaving the mode leads to the one before it,
    or to ``acceptEdits``; a refusal goes to the model with its reason. A tool that ``asks_user``
    needs no permission to do so.
    """

    name = NAME
    order = 145
    is_its_options = True

    always: bool = False
    """Offer them in every mode, from the first prompt on."""

    async def before_run(self, ctx: RunContext) -> None:
        """Offer the tools, and keep them then: every change of them is paid for again."""
        session = ctx.session
        if OFFERED.get(session) or not (self.always or session.mode == PLAN):
            return
        if session.parent is not None or not is_attended(ctx.client):
            return
        OFFERED.set(session, True)
        for tool in tools_for(plans=PLAN in ctx.agent.modes_of(session)):
            if ctx.agent.tool(tool.name, session) is None:
                session.add_tool(tool)

    async def on_config_change(self, ctx: ConfigContext) -> None:
        """Remember what mode it was before planning: which one, or that of the settings."""
        if ctx.changes.get("mode") == PLAN != ctx.session.mode:
            is_given = ctx.session.mode == GIVEN_MODE.get(ctx)
            BEFORE.set(ctx, "" if is_given else ctx.session.mode)


def tools_for(*, plans: bool) -> Iterator[Tool]:
    """The tools; those about planning where there is such a mode."""
    yield AskUserQuestion()
    if plans:
        yield from (EnterPlanMode(), ExitPlanMode())


class AskUserQuestion:
    """Asks the user up to four questions with options."""

    name = "AskUserQuestion"
    description = (
        "Ask the user what only they can decide: 1-4 questions, 2-4 options each, the best first."
    )
    parameters = QUESTIONS
    kind: ToolKind = "think"
    asks_user = True

    def title(self, args: dict[str, Any]) -> str:
        """The first question's header."""
        first = args["questions"][0]
        return f"Question: {first.get('header') or first['question']}"

    def check(self, args: dict[str, Any]) -> str | None:
        """What is wrong with the questions, in one line."""
        questions = args.get("questions")
        if not isinstance(questions, list) or not 1 <= len(cast("list[Any]", questions)) <= 4:
            return f"questions must be a list of 1 to {MOST_QUESTIONS}"
        for number, each in enumerate(cast("list[Any]", questions), 1):
            if not _is_sound(each):
                return (
                    f"question {number} needs a question and {LEAST_OPTIONS} to {MOST_OPTIONS} "
                    "options, each with another label"
                )
        return None

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Ask them, at once or one by one; answers that a hook has given are not asked for."""
        call = cast("ToolContext", ctx)
        given: Mapping[str, str] = args.get("answers") or {}
        open_ones = [each for each in args["questions"] if not given.get(each["question"])]
        said = await _answers(call, open_ones) if open_ones else {}
        told = {text: given.get(text) or said.get(text) for text in _texts(args)}
        answers = {text: answer for text, answer in told.items() if answer}
        if not answers:
            return ToolResult(UNANSWERED, data={"questions": args["questions"], "answers": {}})
        lines = [f"{text}\n{answer or '(not answered)'}" for text, answer in told.items()]
        data = {"questions": args["questions"], "answers": answers}
        return ToolResult("The user's answers:\n\n" + "\n\n".join(lines), data=data)


class EnterPlanMode:
    """Begins to plan, if the user agrees."""

    name = "EnterPlanMode"
    description = "Plan a larger change first."
    parameters = NOTHING
    kind: ToolKind = "switch_mode"
    asks_user = True

    def title(self, args: dict[str, Any]) -> str:
        """What it is about."""
        del args
        return "Plan first"

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Ask, and change the mode."""
        del args
        call = cast("ToolContext", ctx)
        if call.session.mode == PLAN:
            return ToolResult.failure("the mode is plan already")
        if not await call.ui.confirm("Make a plan first, and change nothing until you agree?"):
            return ToolResult.failure("the user wants no plan: go on without")
        return await _to(call, PLAN, "The mode is plan now: look, think, then call ExitPlanMode.")


class ExitPlanMode:
    """Shows the user a plan; agreed on, it is carried out."""

    name = "ExitPlanMode"
    description = "In plan mode: have the user agree to the plan."
    parameters = PLANS
    kind: ToolKind = "switch_mode"
    asks_user = True

    def title(self, args: dict[str, Any]) -> str:
        """What it is about."""
        del args
        return "Carry out the plan"

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Ask, and change the mode; a refusal says why."""
        call, plan = cast("ToolContext", ctx), args["plan"]
        if call.session.mode != PLAN:
            return ToolResult.failure("the mode is not plan: go on with the work")
        modes = call.agent.modes_of(call.session)
        choices = [*([YES_ALL] if ACCEPT in modes else []), YES, NO]
        kinds = ("allow_always", "allow_once", "reject_once")[-len(choices) :]
        text = "Carry out this plan?"
        chosen = await call.ui.select(text, choices, default=NO, kinds=kinds, detail=plan)
        if chosen not in (YES_ALL, YES):
            reason = (await call.ui.ask("What should be different?")).strip()
            why = f": {reason}" if reason else "; ask what should be different"
            return ToolResult.failure(f"the user does not agree to this plan{why}")
        mode = ACCEPT if chosen == YES_ALL else _mode_before(call)
        return await _to(
            call, mode, f"The user agrees; the mode is {mode} now. Carry it out.", plan
        )


def _mode_before(call: ToolContext) -> str:
    """The mode before planning; where that was the settings', the one that they give by now."""
    before = BEFORE.get(call)
    if before == "":
        before = GIVEN_MODE.get(call)
    return before if before and before != PLAN else DEFAULT


async def _to(call: ToolContext, mode: str, text: str, plan: str = "") -> ToolResult:
    """Change the mode; where a hook objects, that."""
    refused = await call.agent.configure(call.session, mode=mode)
    if refused:
        return ToolResult.failure(f"the mode stays {call.session.mode}: {refused}")
    return ToolResult(text, data={"plan": plan} if plan else None)


async def _answers(call: ToolContext, asked: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What the user answers, by question: to a form of all, else one after another."""
    said = await call.ui.fill_in(form_of(asked))
    if said is None:
        return {each["question"]: await _answer(call, each) for each in asked}
    if said.action != "accept":
        return {}
    return {each["question"]: _said(said.content, n) for n, each in enumerate(asked)}


def form_of(asked: Sequence[Mapping[str, Any]]) -> Form:
    """Questions as one form: each has its options, and a field for what is none of them.

    The fields have the names that Claude Code's adapter for editors gives them.
    """
    fields: dict[str, Any] = {}
    for number, each in enumerate(asked):
        fields[FIELD.format(number)] = _field(each, alone=len(asked) == 1)
        fields[OWN.format(number)] = {"type": "string", "title": OTHER}
    text = asked[0]["question"] if len(asked) == 1 else f"{len(asked)} questions"
    return Form(text, {"type": "object", "properties": fields})


def _field(asked: Mapping[str, Any], *, alone: bool) -> dict[str, Any]:
    """A question's field; it repeats the question where the form's text is another."""
    about = {} if alone else {"description": asked["question"]}
    field = {"title": asked.get("header") or asked["question"], **about}
    options = [_option(each) for each in asked["options"]]
    if asked.get("multiSelect"):
        return {"type": "array", **field, "items": {"anyOf": options}}
    return {"type": "string", **field, "oneOf": options}


def _option(option: Mapping[str, Any]) -> dict[str, str]:
    label, about = str(option["label"]), " ".join(str(option.get("description") or "").split())
    return {"const": label, "title": label, **({"description": about} if about else {})}


def _said(content: Mapping[str, Any], number: int) -> str:
    """The answer to a question: what was chosen, and the user's own words."""
    chosen, own = content.get(FIELD.format(number)), content.get(OWN.format(number))
    words = [own.strip()] if isinstance(own, str) and own.strip() else []
    picked = cast("list[object]", chosen) if isinstance(chosen, list) else [chosen]
    return ", ".join([*(each for each in picked if isinstance(each, str) and each), *words])


async def _answer(call: ToolContext, asked: Mapping[str, Any]) -> str:
    """What the user answers to one question; empty for nothing."""
    labels = {_shown(each): str(each["label"]) for each in asked["options"]}
    chosen = await _chosen(call, asked["question"], labels, several=bool(asked.get("multiSelect")))
    if OTHER in chosen:
        own = (await call.ui.ask(asked["question"])).strip()
        chosen = [*(each for each in chosen if each != OTHER), *([own] if own else [])]
    return ", ".join(labels.get(each, each) for each in chosen)


async def _chosen(
    call: ToolContext, text: str, labels: Mapping[str, str], *, several: bool
) -> list[str]:
    """The options that were chosen: one, or one after another until that is all."""
    chosen: list[str] = []
    while len(chosen) <= len(labels):
        left = [each for each in (*labels, OTHER) if each not in chosen]
        choice = await call.ui.select(text, [*left, ENOUGH] if chosen else left)
        if choice is None or choice == ENOUGH:
            break
        chosen.append(choice)
        if not several:
            break
    return chosen


def _shown(option: Mapping[str, Any]) -> str:
    about = " ".join(str(option.get("description") or "").split())
    return f"{option['label']}: {about}" if about else str(option["label"])


def _texts(args: Mapping[str, Any]) -> Sequence[str]:
    return [each["question"] for each in args["questions"]]


def _is_sound(asked: Any) -> bool:
    match asked:
        case {"question": str(text), "options": [*options]} if text.strip():
            labels = {str(each["label"]) for each in options if _has_label(each)}
            return LEAST_OPTIONS <= len(labels) == len(options) <= MOST_OPTIONS
        case _:
            return False


def _has_label(option: Any) -> bool:
    match option:
        case {"label": str(label)}:
            return bool(label.strip())
        case _:
            return False

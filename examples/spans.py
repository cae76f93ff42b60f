"""Spans of your own in a trace: a hook's work stands in the span of the call that it belongs to.

    pip install 'crow-acp[otel]'
    crow run --settings '{"extensions": {"telemetry": {}}}' --extension examples/spans.py "Hello"

Without telemetry nothing is made. Lengths are told and no texts: what was said is nobody's business
unless the user switches `content` on.
"""

from opentelemetry import propagate, trace

from crow import RunContext, ToolContext

tracer = trace.get_tracer("crow.examples.spans")


def before_run(ctx: RunContext) -> None:
    trace.get_current_span().set_attribute("example.prompt.characters", len(str(ctx.prompt)))


def after_tool(ctx: ToolContext) -> None:
    parent = propagate.extract(dict(ctx.trace_context))
    with tracer.start_as_current_span("measure output", context=parent) as span:
        span.set_attribute("example.output.characters", len(ctx.output))

// Drives an agent with the official TypeScript library, through every method of the protocol, and
// writes what happened as one JSON object. Usage: node client.mjs DIRECTORY COMMAND [ARGUMENT...]

import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [cwd, command, ...args] = process.argv.slice(2);
const { agent, client } = acp.methods;

/** Every method that was called. */
const driven = new Set([agent.initialize]);

/** One client of one process: records every update, and answers every question with `answer`. */
async function connected(answer, work) {
  const child = spawn(command, args, { cwd, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", (code) => resolve(code)));
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const seen = { updates: [], asked: [], waiting: [] };
  const app = acp
    .client({ name: "node-client" })
    .onNotification(client.session.update, ({ params }) => {
      seen.updates.push(params);
      seen.waiting = seen.waiting.filter((each) => !each(params.update));
    })
    .onRequest(client.session.requestPermission, ({ params }) => {
      seen.asked.push(params);
      const chosen = params.options.find((option) => option.kind === answer);
      return { outcome: { outcome: "selected", optionId: chosen.optionId } };
    });
  seen.until = (test) =>
    new Promise((resolve) => seen.waiting.push((update) => (test(update) ? (resolve(update), true) : false)));
  const result = await app.connectWith(stream, async (context) => {
    const capabilities = { session: { notices: {}, compaction: {} }, auth: { terminal: true } };
    const greeting = await context.request(agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: capabilities,
      clientInfo: { name: "node-client", version: "1" },
    });
    /** Ask, and let the library call back for the notifications that came before the answer. */
    const ask = async (method, params) => {
      driven.add(method);
      const answered = await context.request(method, params);
      await new Promise((resolve) => setImmediate(resolve));
      return answered;
    };
    const tell = (method, params) => (driven.add(method), context.notify(method, params));
    return await work({ ask, tell, seen, greeting });
  });
  child.stdin.end();
  return { ...result, status: await ended };
}

/** Methods of the protocol's draft that take a session at most, as far as they are there. */
const drafted = (process.env.DRAFTED ?? "").split(" ").filter(Boolean);
const kindOf = (value) => typeof value;
const text = (said) => [{ type: "text", text: said }];
const kinds = (updates) => [...new Set(updates.map(({ update }) => update.sessionUpdate))];

/** How a request was refused. */
async function refusal(request) {
  try {
    return { answered: await request };
  } catch (error) {
    return error.code;
  }
}

const first = await connected("allow_once", async ({ ask, tell, seen, greeting }) => {
  const { sessionId, configOptions } = await ask(agent.session.new, { cwd, mcpServers: [] });
  const created = await ask(agent.session.prompt, { sessionId, prompt: text("Create a file called test.txt") });
  const settled = seen.updates.filter(({ update }) => update.status === "completed");
  await ask(agent.session.setMode, { sessionId, modeId: "acceptEdits" });
  const chosen = await ask(agent.session.setConfigOption, { sessionId, configId: "mode", value: "default" });
  const link = { type: "resource_link", uri: `file://${join(cwd, "test.txt")}`, name: "test.txt" };
  const linked = await ask(agent.session.prompt, { sessionId, prompt: [...text("Read the file test.txt"), link] });

  const started = seen.until((update) => update.status === "in_progress");
  const turn = ask(agent.session.prompt, { sessionId, prompt: text("Run `sleep 60`") });
  await started;
  await tell(agent.session.cancel, { sessionId });
  const cancelled = await turn;
  const settledAt = seen.updates.length;
  const again = await ask(agent.session.prompt, { sessionId, prompt: text("Read the file test.txt") });
  const { sessions } = await ask(agent.session.list, { cwd });
  return {
    sessionId,
    protocol: greeting.protocolVersion,
    methods: greeting.authMethods.map((method) => method.type),
    options: configOptions.map((option) => option.id),
    created: created.stopReason,
    wasAsked: seen.asked.map((params) => params.toolCall.name),
    fileIsThere: existsSync(join(cwd, "test.txt")),
    completed: settled.length,
    mode: chosen.configOptions.find((option) => option.id === "mode").currentValue,
    linked: linked.stopReason,
    cancelled: cancelled.stopReason,
    outOfTurn: seen.updates.slice(settledAt).filter(({ update }) => update.status === "failed").length,
    again: again.stopReason,
    listed: sessions.map((session) => [session.sessionId, session.title]),
    kinds: kinds(seen.updates),
    errors: [
      await refusal(ask(agent.session.prompt, { sessionId: "nowhere", prompt: text("Hello?") })),
      await refusal(ask(agent.session.new, { cwd: "relative", mcpServers: [] })),
      await refusal(ask("no/such_method", {})),
    ],
  };
});

const later = await connected("reject_once", async ({ ask, seen }) => {
  const { sessionId } = first;
  await ask(agent.session.load, { sessionId, cwd, mcpServers: [] });
  const replayed = kinds(seen.updates);
  const cards = seen.updates.filter(({ update }) => update.sessionUpdate === "tool_call");
  await ask(agent.session.close, { sessionId });
  seen.updates.length = 0;
  await ask(agent.session.resume, { sessionId, cwd, mcpServers: [] });
  const resumed = seen.updates.filter(({ update }) => update.sessionUpdate.endsWith("_chunk")).length;
  const rejected = await ask(agent.session.prompt, { sessionId, prompt: text("Create a file called other.txt") });
  const titled = await ask("session/set_title", { sessionId, title: "A file" });
  await ask("_session/rename", { sessionId, title: "Some file" });
  await ask("session/set_model", { sessionId, modelId: "rehearsal" });
  const steered = await ask("_session/steering", {
    sessionId,
    prompt: text("left!"),
    _meta: { steering: { idleBehavior: "promptRequired" } },
  });
  await ask("_session/take_pen", { sessionId });
  const fork = await ask("session/fork", { sessionId, cwd, mcpServers: [] });
  await ask(agent.session.delete, { sessionId: fork.sessionId });
  await ask(agent.session.delete, { sessionId: fork.sessionId });
  const { providers } = await ask("providers/list", {});
  const [{ providerId }] = providers;
  const routed = { apiType: "openai", baseUrl: "http://127.0.0.1:9/v1", headers: {} };
  await ask("providers/set", { providerId, ...routed });
  await ask("providers/disable", { providerId });
  const { sessions } = await ask(agent.session.list, {});
  return {
    replayed,
    names: cards.map(({ update }) => update.name),
    resumed,
    rejected: rejected.stopReason,
    otherIsThere: existsSync(join(cwd, "other.txt")),
    left: sessions.length,
    title: titled.title,
    steered: steered.outcome,
    told: Object.fromEntries(await Promise.all(drafted.map(async (each) => [each, kindOf(await ask(each, { sessionId }))]))),
    authenticated: await ask(agent.authenticate, { methodId: "environment" }),
    loggedOut: await ask(agent.logout, {}),
  };
});

process.stdout.write(JSON.stringify({ first, later, driven: [...driven], content: readFileSync(join(cwd, "test.txt"), "utf8") }));

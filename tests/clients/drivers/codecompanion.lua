-- CodeCompanion's own connection to agents, without its chat: does what it is told by lines of JSON over
-- another connection, and tells what came of it. Usage: nvim --headless -l codecompanion.lua PORT COMMAND ...

local port, command = tonumber(arg[1]), vim.list_slice(arg, 2)
local test, rest, is_over, kind = vim.uv.new_tcp(), "", false, "allow_once"

local function tell(event) test:write(vim.json.encode(event) .. "\n") end

-- What the person was last warned of: the library keeps the agent's errors to itself.
local warning
vim.notify = function(text) warning = text end

require("codecompanion").setup({
  adapters = {
    acp = {
      crow = function()
        return require("codecompanion.adapters").extend("opencode", {
          name = "crow",
          formatted_name = "Crow",
          commands = { default = command },
        })
      end,
    },
  },
  interactions = { chat = { adapter = "crow" } },
})

local adapter = require("codecompanion.adapters.acp").resolve("crow")
local connection = require("codecompanion.acp").new({ adapter = adapter })
local running

local function done(id, result) tell({ event = "done", id = id, result = result or vim.empty_dict() }) end

local function failed(id) tell({ event = "done", id = id, error = warning or "nothing is said" }) end

local function update(told) tell({ event = "update", update = told }) end

vim.api.nvim_create_autocmd("User", {
  pattern = "CodeCompanionACPCommandsUpdate",
  callback = function(event)
    update({ sessionUpdate = "available_commands_update", availableCommands = event.data.commands })
  end,
})

local function answer(request)
  local kinds, chosen = {}, nil
  for _, option in ipairs(request.options) do
    table.insert(kinds, option.kind)
    if option.kind == kind then chosen = chosen or option.optionId end
  end
  tell({ event = "asked", kinds = kinds })
  request.respond(chosen, false)
end

-- A message of the person's as the chat keeps it.
local function message(block)
  assert(block.type == "text" or block.type == "image", "a chat holds texts and images only")
  local image = block.type == "image"
  return {
    role = "user",
    content = image and block.data or block.text,
    context = image and { mimetype = block.mimeType } or nil,
    _meta = { tag = image and "image" or nil },
  }
end

-- Tell of the answer to a prompt when the connection has it.
local function await(step, number)
  local timer = assert(vim.uv.new_timer())
  timer:start(0, 5, vim.schedule_wrap(function()
    local response = connection.pending_responses[number]
    if not response or timer:is_closing() then return end
    timer:close()
    connection.pending_responses[number] = nil
    if not response[1] then return tell({ event = "done", id = step.id, error = response[2].message }) end
    done(step.id, response[1])
  end))
end

local steps = {}

function steps.initialize(step)
  if not connection:connect_and_authenticate() then return failed(step.id) end
  done(step.id)
end

function steps.new(step)
  vim.fn.chdir(step.cwd)
  if not connection:ensure_session() then return failed(step.id) end
  done(step.id, { sessionId = connection.session_id })
end

-- The library opens a new session where the agent refuses to load one.
function steps.load(step)
  vim.fn.chdir(step.cwd)
  local loaded = connection:load_session(step.session, { on_session_update = update })
  if not loaded or connection.session_id ~= step.session then return failed(step.id) end
  done(step.id)
end

function steps.mode(step)
  if not connection:set_config_option("mode", step.mode) then return failed(step.id) end
  done(step.id)
end

function steps.prompt(step)
  running = connection
    :session_prompt(vim.tbl_map(message, step.blocks))
    :on_message_chunk(function(text)
      update({ sessionUpdate = "agent_message_chunk", content = { type = "text", text = text } })
    end)
    :on_tool_call(update)
    :on_tool_update(update)
    :on_plan(function(entries) update({ sessionUpdate = "plan", entries = entries }) end)
    :on_permission_request(answer)
  running:send()
  await(step, running._request_id)
end

function steps.cancel(step)
  running:cancel()
  done(step.id)
end

function steps.answer(step)
  kind = step.kind
  done(step.id)
end

local do_step = require("codecompanion.utils.async").sync

test:connect("127.0.0.1", port, function(failure)
  assert(not failure, failure)
  test:read_start(vim.schedule_wrap(function(_, data)
    if not data then
      is_over = true
      return
    end
    local lines = vim.split(rest .. data, "\n", { plain = true })
    rest = table.remove(lines)
    for _, line in ipairs(lines) do
      local step = vim.json.decode(line)
      do_step(function() steps[step["do"]](step) end)()
    end
  end))
end)
while not is_over do
  vim.wait(1000, function() return is_over end, 10)
end
connection:disconnect()
test:close()

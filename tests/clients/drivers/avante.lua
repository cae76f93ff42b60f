-- avante.nvim's own client of agents, without its windows: does what it is told by lines of JSON over
-- a connection, and tells what came of it. Usage: nvim --headless -l avante.lua PORT COMMAND ...

local port, command = tonumber(arg[1]), arg[2]
local test, rest, is_over, kind = vim.uv.new_tcp(), "", false, "allow_once"

local function tell(event) test:write(vim.json.encode(event) .. "\n") end

-- The callback of a request: what is told of its end.
local function done(id)
  return function(result, failure)
    if failure then return tell({ event = "done", id = id, error = failure.message }) end
    tell({ event = "done", id = id, result = result or vim.empty_dict() })
  end
end

local handlers = {}

function handlers.on_session_update(update) tell({ event = "update", update = update }) end

function handlers.on_request_permission(_, options, answer)
  local kinds, chosen = {}, nil
  for _, option in ipairs(options) do
    table.insert(kinds, option.kind)
    if option.kind == kind then chosen = chosen or option.optionId end
  end
  tell({ event = "asked", kinds = kinds })
  answer(chosen)
end

function handlers.on_read_file(path, line, limit, answer)
  tell({ event = "read", path = path })
  local file = io.open(path, "rb")
  local text = file and file:read("*a") or ""
  if file then file:close() end
  if line or limit then
    local lines, start = vim.split(text, "\n", { plain = true }), line or 1
    local last = limit and start + limit - 1 or #lines
    text = table.concat(vim.list_slice(lines, start, last), "\n")
  end
  answer(text)
end

function handlers.on_write_file(path, content, answer)
  tell({ event = "wrote", path = path })
  local file = assert(io.open(path, "wb"))
  file:write(content)
  file:close()
  answer()
end

local client = require("avante.libs.acp_client"):new({
  transport_type = "stdio",
  command = command,
  args = vim.list_slice(arg, 3),
  env = vim.fn.environ(),
  handlers = handlers,
})

local steps = {}

function steps.initialize(step)
  client:connect(function(failure) done(step.id)(nil, failure) end)
end

function steps.new(step)
  client:create_session(step.cwd, {}, function(session, failure)
    done(step.id)(session and { sessionId = session }, failure)
  end)
end

function steps.load(step) client:load_session(step.session, step.cwd, {}, done(step.id)) end

function steps.mode(step)
  client:set_mode(step.session, step.mode, function(_, failure) done(step.id)(nil, failure) end)
end

function steps.prompt(step) client:send_prompt(step.session, step.blocks, done(step.id)) end

function steps.cancel(step)
  client:cancel_session(step.session)
  done(step.id)()
end

function steps.answer(step)
  kind = step.kind
  done(step.id)()
end

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
      steps[step["do"]](step)
    end
  end))
end)
while not is_over do
  vim.wait(1000, function() return is_over end, 10)
end
client:stop()
test:close()

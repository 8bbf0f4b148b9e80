-- SPDX-License-Identifier: Apache-2.0
-- One command for the independent servers of a majority: each is asked by itself, and a last line
-- says what that means for the whole. The command has `several`:
--   whole(codes, count, args, records) -> a sentence, or nil; and the exit code, or nil for the
--     worst
--   plan(args, ctx) -> what is to be done, or nil and an exit code; done(plan, args, ctx) -> exit
--     code; ask(ctx, plans) -> boolean: where it changes something, and asks once before it does;
--     narrow(args, records), or nil: takes plans away, as what is on the others says
local cli = require('latchkey.cli')
local nodes = require('latchkey.servers.nodes')
local report = require('latchkey.report')
local text = require('latchkey.text')

local several = {}

several.MAX = 9

---How many of them are a majority.
---@param count integer
---@return integer
function several.quorum(count)
  return math.floor(count / 2) + 1
end

-- What one server is asked with: its results and failures are kept, and told in its turn.
local function context_of(ctx, url)
  local record = { target = nodes.shown(url) }
  local args = setmetatable({ url = url }, { __index = ctx.args })
  record.args = args
  record.ctx = setmetatable({ args = args,
    result = function(_, fields, shown)
      record.fields, record.shown = fields, shown
    end,
    note = function(_, ...)
      record.notes = (record.notes or '') .. table.concat({ ... }) .. '\n'
    end,
    fail = function(_, err)
      record.err = err
      return ctx.exit_of(err.status)
    end,
  }, { __index = ctx })
  return record
end

local function document(record)
  local fields = record.fields or {}
  fields.target, fields.exit = record.target, record.code
  fields.error = record.err and { status = record.err.status, hint = record.err.hint or '',
    message = text.safe(record.err.message) } or fields.error
  return fields
end

local function tell(ctx, record)
  ctx.stdout:write(record.target, '\n')
  for line in ((record.shown or '') .. (not ctx.quiet and record.notes or '')):gmatch('[^\n]+') do
    ctx.stdout:write('  ', line, '\n')
  end
  if record.err then
    ctx.stdout:write('  ', text.safe(record.err.message), '\n')
    if (record.err.hint or '') ~= '' then
      ctx.stdout:write('  -> ', record.err.hint, '\n')
    end
  end
end

-- The worst: wrong use, a finding, a server that could not be asked, though others were.
local function worst(codes)
  local count = {}
  for _, code in ipairs(codes) do
    count[code] = (count[code] or 0) + 1
  end
  for _, code in ipairs({ cli.exits.use, cli.exits.defect, cli.exits.found }) do
    if count[code] then
      return code
    end
  end
  if count[cli.exits.server] == #codes then
    return cli.exits.server
  end
  return (count[cli.exits.server] or count[cli.exits.incomplete]) and cli.exits.incomplete
    or cli.exits.done
end

-- Asks once what is to be done on all of them; false: it is not to be done.
local function agreed(command, ctx, records)
  local plans = {}
  for _, record in ipairs(records) do
    record.plan, record.code = command.several.plan(record.args, record.ctx)
  end
  if command.several.narrow then
    command.several.narrow(ctx.args, records)
  end
  for _, record in ipairs(records) do
    if record.code == cli.exits.use then -- before anything is done on the others
      return false, ctx:fail(record.err)
    elseif record.plan then
      plans[#plans + 1] = { target = record.target, plan = record.plan }
    end
  end
  if #plans == 0 then
    return true
  end
  return command.several.ask(ctx, plans)
end

---@param command table
---@param ctx cli.context
---@param urls string[]
---@return integer exit code
function several.run(command, ctx, urls)
  if #urls > several.MAX then
    return ctx:misuse(('at most %d servers'):format(several.MAX))
  end
  local records, codes = {}, {}
  for i, url in ipairs(urls) do
    records[i] = context_of(ctx, url)
  end
  if command.several.plan then
    local yes, code = agreed(command, ctx, records)
    if not yes then
      return code
    end
  end
  for i, record in ipairs(records) do
    if record.plan then
      record.code = command.several.done(record.plan, record.args, record.ctx)
    elseif not record.code then
      record.code = command.run(record.args, record.ctx)
    end
    codes[i] = record.code
    if record.code == cli.exits.use then
      return ctx:fail(record.err)
    end
  end
  local sentence, code = command.several.whole(codes, #urls, ctx.args, records)
  code = code or worst(codes)
  if ctx.json then
    local list = {}
    for i, record in ipairs(records) do
      list[i] = document(record)
    end
    ctx.stdout:write(report.json(ctx.command, { servers = list, verdict = sentence }))
    return code
  end
  for _, record in ipairs(records) do
    tell(ctx, record)
  end
  ctx.stdout:write(sentence, '\n')
  return code
end

---How many of the codes are one of these.
---@param codes integer[]
---@param ... integer
---@return integer
function several.count(codes, ...)
  local sum = 0
  for _, code in ipairs(codes) do
    for _, wanted in ipairs({ ... }) do
      sum = sum + (code == wanted and 1 or 0)
    end
  end
  return sum
end

return several

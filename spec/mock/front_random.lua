-- SPDX-License-Identifier: Apache-2.0
-- Random steps of three connections, on a front and on a server; the first sequence that differs is
-- shrunk to the steps that it takes.
local poll = require('posix.poll')
local socket = require('posix.sys.socket')
local unistd = require('posix.unistd')

local Front = require('latchkey.mock.front')
local World = require('latchkey.mock.world')
local frames = require('mock.frames')
local grammar = require('mock.grammar')
local lines = require('mock.front_grammar')

local CONNECTIONS, STEPS, ANSWER_MS = 3, 60, 5000

local Random = {}
Random.__index = Random

---@param oracle table of mock.oracle
function Random.new(oracle)
  return setmetatable({ oracle = oracle, covered = {} }, Random)
end

local function open(path)
  local fd = assert(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0))
  assert(socket.connect(fd, { family = socket.AF_UNIX, path = path }))
  return { fd = fd, bytes = '' }
end

-- Numbers of connections and names of servers are each one's own.
local function normal(text)
  return (text:gsub('"id" :%d+', '"id" :N'):gsub('"server" "[^"]*"', '"server" "S"')
    :gsub('"version" "[^"]*"', '"version" "V"'))
end

-- So many frames of a server's connection, and its end where one is expected.
local function read_server(conn, count, ends)
  local got = {}
  while true do
    local text, after = frames.read(conn.bytes, 1)
    if text and #got < count then
      got[#got + 1] = normal(text)
      conn.bytes = conn.bytes:sub(after)
    elseif #got == count and not ends then
      return got
    elseif poll.rpoll(conn.fd, ANSWER_MS) ~= 1 then
      got[#got + 1] = 'nothing more'
      return got
    else
      local bytes = socket.recv(conn.fd, 65536) or ''
      if bytes == '' then
        got[#got + 1] = 'the end'
        return got
      end
      conn.bytes = conn.bytes .. bytes
    end
  end
end

local Pair = {}
Pair.__index = Pair

-- A front and the server, both empty, without connections.
function Random:pair()
  self.oracle:reset()
  local front = Front.new({ world = World.new({ strict = false }) })
  return setmetatable({ path = self.oracle.folder .. '/redis.sock', front = front, mine = {},
    theirs = {} }, Pair)
end

function Pair:connect(place)
  if not self.mine[place] then
    self.mine[place] = self.front:connect()
    self.theirs[place] = open(self.path)
  end
end

function Pair:disconnect(place)
  unistd.close(self.theirs[place].fd)
  self.mine[place]:close()
  self.mine[place], self.theirs[place] = nil, nil
end

-- One step on both sides.
---@return string|nil difference
---@return string said what the front answered, all in one
function Pair:step(place, bytes)
  self:connect(place)
  local said, ends, ended = {}, {}, {}
  for _, output in ipairs(self.mine[place]:feed(bytes)) do
    said[output.conn], ends[output.conn] = frames.split(output.bytes), output.close
  end
  local conn = self.theirs[place]
  assert(socket.send(conn.fd, bytes) == #bytes)
  local all = {}
  for other = 1, CONNECTIONS do
    local mine = self.mine[other]
    local list = said[mine] or {}
    if mine and (list[1] or ends[mine]) then
      local expected = read_server(self.theirs[other], #list, ends[mine])
      for i = 1, #list do
        list[i] = normal(list[i])
        all[#all + 1] = list[i]
      end
      list[#list + 1] = ends[mine] and 'the end' or nil
      if table.concat(expected, '\n') ~= table.concat(list, '\n') then
        return ('connection %d: the server says %s\n  the mock %s'):format(other,
          table.concat(expected, ' '), table.concat(list, ' ')), ''
      end
      ended[#ended + 1] = ends[mine] and other or nil
    end
  end
  for _, other in ipairs(ended) do
    self:disconnect(other)
  end
  return nil, table.concat(all, ' ')
end

-- Has the server sent what the front has not? The answer to the PING comes behind it.
function Pair:finish(oracle)
  assert(oracle:command('PING'))
  local found
  for place = 1, CONNECTIONS do
    local conn = self.theirs[place]
    if conn then
      if poll.rpoll(conn.fd, 0) == 1 then
        conn.bytes = conn.bytes .. (socket.recv(conn.fd, 65536) or '')
      end
      if conn.bytes ~= '' then
        found = ('connection %d: the server says more: %s'):format(place, conn.bytes)
      end
      self:disconnect(place)
    end
  end
  return found
end

function Random:difference(steps)
  local pair = self:pair()
  local found
  for i, step in ipairs(steps) do
    local said
    found, said = pair:step(step.place, step.bytes)
    if found then
      found = ('step %d: %s'):format(i, found)
      break
    end
    local kind = self.covered[step.kind] or { replies = 0, errors = 0 }
    self.covered[step.kind] = kind
    local what = said:find('%f[^%s%z%[]%-%u') and 'errors' or 'replies'
    kind[what] = kind[what] + 1
  end
  local more = pair:finish(self.oracle)
  return found or more
end

function Random:shrink(steps)
  local length = #steps
  while length > 0 do
    for first = #steps - length + 1, 1, -length do
      local shorter = {}
      for i, step in ipairs(steps) do
        if i < first or i >= first + length then
          shorter[#shorter + 1] = step
        end
      end
      steps = self:difference(shorter) and shorter or steps
    end
    length = math.floor(length / 2)
  end
  return steps
end

---@param seed integer
---@return { place: integer, kind: string, bytes: string }[]
function Random.sequence(seed)
  local pick, steps = grammar.generator(seed), {}
  for i = 1, STEPS do
    steps[i] = lines.step(pick, CONNECTIONS)
  end
  return steps
end

---One sequence.
---@param seed integer
---@return string|nil report
function Random:try(seed)
  local steps = Random.sequence(seed)
  if not self:difference(steps) then
    return nil
  end
  steps = self:shrink(steps)
  local report = { ('front, seed %d, %s'):format(seed, self.oracle.name) }
  for _, step in ipairs(steps) do
    report[#report + 1] = ('  %d: %q'):format(step.place, step.bytes)
  end
  report[#report + 1] = self:difference(steps)
    or 'a difference that does not come again when the sequence is repeated'
  return table.concat(report, '\n')
end

return Random

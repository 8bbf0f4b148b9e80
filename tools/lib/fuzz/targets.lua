-- SPDX-License-Identifier: Apache-2.0
-- What reads bytes of others in Lua: { about, change(chance, seed input) -> input, read(input) }.
-- Readers answer what they refuse; an error is a defect. Seeds are in c/tests/fuzz/corpus.
local cjson = require('cjson')
local path = require('pl.path')
local utils = require('pl.utils')

local mutations = require('lib.fuzz.mutations')

local HERE = debug.getinfo(1, 'S').source:match('^@(.*)tools/lib/fuzz/targets%.lua$')
local SCRIPTS = path.join(HERE, 'scripts')
local CORPUS = path.join(HERE, 'c/tests/fuzz/corpus')

local targets = {}

local function seed_bundle()
  return assert(utils.readfile(CORPUS .. '/bundle/small', true))
end

-- The scripts that the seeds of bundle, manifest and evidence are about.
local about
local function small()
  about = about or assert(require('latchkey.bundle').read(seed_bundle()))
  return about
end

-- Changes what is in the bundle, and packs it again in the right form: mere bytes do not get past
-- its sums.
local function change_bundle(c, bytes)
  local gzip, tar = require('latchkey.bundle.gzip'), require('latchkey.bundle.tar')
  local archive = c:below(4) > 0 and gzip.unpack(bytes)
  local folder, files = nil, nil
  if archive then
    folder, files = tar.unpack(archive, { files = 100, bytes = 1048576 })
  end
  if not folder then
    return mutations.bytes(c, bytes)
  end
  for _ = 0, c:below(2) do
    local file, what = c:one(mutations.sorted_names(files)), c:below(8)
    local change = file:find('%.json$') and mutations.json or mutations.bytes
    if what == 0 then
      files[file] = nil
    elseif what == 1 then
      files[file:gsub('%.lua$', '.contract')] = files[file]
    else
      files[file] = change(c, files[file])
    end
    if next(files) == nil then
      return mutations.bytes(c, bytes)
    end
  end
  if c:below(2) == 0 then -- a manifest that says so
    require('latchkey.bundle.manifest').add({ name = 'small', version = '1.0.0' }, files)
  end
  local packed = tar.pack(folder, files)
  return gzip.pack(c:below(8) == 0 and mutations.bytes(c, packed) or packed)
end

targets.bundle = { about = 'bundles: gzip, tar, scripts, contracts, manifest and evidence',
  change = change_bundle,
  read = function(bytes)
    local contents = require('latchkey.bundle').read(bytes)
    if contents and contents.statement then
      require('latchkey.bundle.evidence').table(contents.statement)
    end
  end }

targets.manifest = { about = 'manifests of bundles', change = mutations.json,
  read = function(bytes)
    local files = {}
    for file, content in pairs(small().files) do
      files[file] = content
    end
    files['manifest.json'] = bytes
    require('latchkey.bundle.manifest').check(files)
  end }

-- Mostly in the one form that is read: in another one it is refused before anything is looked at.
local function change_evidence(c, bytes)
  local changed = mutations.json(c, bytes)
  local decoded, document = pcall(cjson.decode, changed)
  if decoded and c:below(8) > 0 then
    return require('latchkey.json').encode(document, '') .. '\n'
  end
  return changed
end

targets.evidence = { about = 'evidence, as it is read, shown and made again',
  change = change_evidence,
  read = function(bytes)
    local evidence = require('latchkey.bundle.evidence')
    local statement = evidence.read(bytes, small().scripts)
    if statement then
      evidence.table(statement)
      evidence.redo(statement, SCRIPTS, {})
    end
  end }

targets.envelope = { about = 'signed envelopes of evidence (DSSE)', change = mutations.json,
  read = function(bytes)
    local envelope = require('latchkey.bundle.envelope')
    envelope.open(bytes)
    envelope.check(bytes, path.join(HERE, 'c/tests/fuzz/envelope.pem'))
  end }

local function lines_of(bytes)
  return bytes:gmatch('([^\n]*)\n?')
end

targets.trace = { about = 'traces, as latchkey check replays them, and as latchkey debug does',
  change = function(c, bytes)
    return mutations.lines(c, bytes, mutations.json)
  end,
  read = function(bytes)
    require('latchkey.checker.trace').check(lines_of((bytes:gsub('\n$', ''))), SCRIPTS)
    local file = path.tmpname()
    utils.writefile(file, bytes, true)
    local _, lines = bytes:gsub('\n', '')
    local good, target = pcall(require('latchkey.debugger.recorded').of, HERE,
      { trace = ('%s:%d'):format(file, lines) })
    os.remove(file)
    if not good then
      error(target, 0)
    elseif target then
      target.run()
    end
  end }

-- In pieces, as sockets give them; a client that waits is answered in the end.
local function feed(bytes)
  local Front, World = require('latchkey.mock.front'), require('latchkey.mock.world')
  local front = Front.new({ world = World.new({ scripts = SCRIPTS, strict = false,
    time = 'frozen', max_instructions = 100000 }) })
  local conn, at, step = front:connect(), 1, #bytes % 37 + 1
  while at <= #bytes do
    for _, output in ipairs(conn:feed(bytes:sub(at, at + step - 1))) do
      -- What a script called may have failed in the mock: the script's caller is told.
      if output.bytes:find('latchkey/mock/%w+%.lua:%d') then
        error(output.bytes, 0)
      end
    end
    at = at + step
  end
  front:advance(1000)
  front:tick()
  conn:close()
end

targets.mock = { about = 'commands of clients, as latchkey mock reads and runs them',
  change = function(c, bytes)
    if c:below(2) == 0 then
      return mutations.bytes(c, bytes)
    end
    -- Other arguments, with lengths that are right.
    local parts = {}
    for command in (bytes:gsub('%*%d+\r\n', '\1%0')):gmatch('\1([^\1]*)') do
      local words = {}
      for word in command:gmatch('%$%d+\r\n([^\r]*)\r\n') do
        words[#words + 1] = word
      end
      local at = c:below(3) == 0 and c:below(#words + 1) + 1
      if at then
        words[at] = c:one({ '', '0', '-1', 'nan', 'inf', '1e999', '9223372036854775807',
          mutations.bytes(c, words[at] or 'x'), words[c:below(#words) + 1] or 'x' })
      end
      for i, word in ipairs(words) do
        words[i] = ('$%d\r\n%s\r\n'):format(#word, word)
      end
      parts[#parts + 1] = ('*%d\r\n'):format(#words) .. table.concat(words)
    end
    return table.concat(parts)
  end,
  read = feed }

targets.answer = { about = 'reports of other clients, as latchkey blame reads them',
  change = mutations.json,
  read = function(bytes)
    local answer = require('latchkey.locks.answer').read(bytes)
    if answer then
      local blame = require('latchkey.locks.blame')
      local picture = blame.picture({ answer }, function()
        return nil, { status = 'LK_WRONGTYPE' }
      end)
      blame.cycles(picture)
      blame.stuck(picture)
    end
  end }

---The inputs that stand at the beginning.
---@param name string of a target
---@return string[] inputs
---@return string[] files
function targets.seeds(name)
  local inputs, files = {}, require('pl.dir').getfiles(path.join(CORPUS, name))
  table.sort(files)
  for i, file in ipairs(files) do
    inputs[i] = assert(utils.readfile(file, true))
  end
  return inputs, files
end

targets.names = { 'answer', 'bundle', 'envelope', 'evidence', 'manifest', 'mock', 'trace' }

return targets

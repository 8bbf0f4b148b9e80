-- SPDX-License-Identifier: Apache-2.0
-- What tools/fuzz does with readers in Lua: errors and endless loops are found, and found again by
-- their number; the kept inputs are valid, and no reader breaks off on what is made of them.
local cjson = require('cjson')

local answer = require('latchkey.locks.answer')
local bundle = require('latchkey.bundle')
local envelope = require('latchkey.bundle.envelope')
local events = require('latchkey.checker.events')
local evidence = require('latchkey.bundle.evidence')
local helper = require('helper')
local manifest = require('latchkey.bundle.manifest')
local mutations = require('lib.fuzz.mutations')
local run = require('lib.fuzz.run')
local targets = require('lib.fuzz.targets')
local trace = require('latchkey.checker.trace')

local CORPUS = helper.root .. '/c/tests/fuzz/corpus/'

local function read(name)
  local file = assert(io.open(CORPUS .. name, 'rb'))
  local bytes = file:read('*a')
  file:close()
  return bytes
end

local function all(target, seeds, runs, limit_s)
  return run.all(target, seeds, { first = 1, runs = runs, clock = os.time, limit_s = limit_s })
end

describe('mutated input', function()
  it('follows from its number', function()
    for _, name in ipairs(targets.names) do
      local seeds, texts, count = targets.seeds(name), {}, 0
      for number = 1, 20 do
        local input = run.input(targets[name], seeds, mutations.chance(number))
        assert.equal(input, run.input(targets[name], seeds, mutations.chance(number)))
        count = count + (texts[input] and 0 or 1)
        texts[input] = true
      end
      assert.is_true(count > 12, name)
    end
  end)

  it('of JSON is JSON of another structure more often than not', function()
    local seed, decoded = read('manifest/small'), 0
    for number = 1, 100 do
      local input = mutations.json(mutations.chance(number), seed)
      decoded = decoded + (input ~= seed and pcall(cjson.decode, input) and 1 or 0)
    end

    assert.is_true(decoded > 50, decoded)
  end)

  for _, name in ipairs(targets.names) do
    it('makes no reader break off: ' .. name, function()
      local seeds = targets.seeds(name)
      local runs, finding = all(targets[name], seeds, 30)

      assert.is_nil(finding and finding.why)
      assert.equal(30 + #seeds, runs)
    end)
  end
end)

describe('the search for errors', function()
  it('finds a reader of traces that does not look at members, and finds it again', function()
    local whole = events.read
    finally(function()
      events.read = whole
    end)
    events.read = function(line)
      local decoded, event = pcall(cjson.decode, line)
      return decoded and type(event) == 'table' and event.e and event.client and event or nil,
        'no event'
    end

    local _, finding = all(targets.trace, targets.seeds('trace'), 300)

    assert.is_table(finding)
    assert.is_true(finding.number > 0)
    assert.matches('tools/latchkey/', finding.why, 1, true)
    assert.equal(finding.input,
      run.input(targets.trace, targets.seeds('trace'), mutations.chance(finding.number)))
    assert.is_string(run.once(targets.trace.read, finding.input, 5))
    events.read = whole
    assert.is_nil(run.once(targets.trace.read, finding.input, 5))
  end)

  it('finds what does not end, also where the reader catches errors', function()
    local target = { change = mutations.bytes, read = function(bytes)
      pcall(function()
        while #bytes ~= 3 do
          bytes = bytes .. 'x'
          bytes = bytes:sub(1, 8)
        end
      end)
    end }

    local runs, finding = all(target, { 'abc' }, 50, 0.1)

    assert.is_true(runs > 1)
    assert.matches('^more than 0.1 s', finding.why)
  end)

  it('takes a refusal for none', function()
    local runs, finding = all({ change = mutations.bytes, read = function()
      return nil, 'refused'
    end }, { 'abc', 'd' }, 10)

    assert.is_nil(finding)
    assert.equal(12, runs)
  end)
end)

-- Where the form of one has changed: luajit tools/lib/fuzz/keep.lua
describe('what is kept to be mutated', function()
  local contents

  setup(function()
    contents = assert(bundle.read(read('bundle/small')))
  end)

  it('is a bundle with a contract, and its manifest', function()
    assert.is_string(contents.files['scripts/own/take.contract'])
    assert.equal(contents.files[manifest.FILE], read('manifest/small'))
  end)

  it('is evidence about it, bare and signed', function()
    assert.is_table(contents.statement)
    assert.same(contents.statement, (evidence.read(read('evidence/small'), contents.scripts)))
    assert.same(contents.statement, (evidence.read(read('evidence/signed'), contents.scripts)))
    assert.is_string(envelope.check(read('envelope/small'),
      helper.root .. '/c/tests/fuzz/envelope.pem'))
  end)

  it('is traces that the models allow', function()
    for _, name in ipairs({ 'lock', 'fair', 'names' }) do
      local result = trace.check(io.lines(CORPUS .. 'trace/' .. name), helper.scripts)

      assert.is_nil(result.finding, name)
      assert.is_true(result.steps >= 12)
    end
  end)

  it('is an answer of a client', function()
    local found = answer.read(read('answer/one'))

    assert.equal(2, #found.waits)
    assert.equal(2, #found.holds)
  end)
end)

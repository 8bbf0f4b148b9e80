-- SPDX-License-Identifier: Apache-2.0
-- latchkey's own families are written in the words that anybody's models have.
local checker = require('latchkey.checker')
local file = require('pl.file')
local helper = require('helper')
local path = require('pl.path')
local words = require('latchkey.checker.words')

local FOLDER = helper.root .. '/tools/latchkey/checker/models/'

local function written(text)
  local name = path.tmpname()
  file.write(name, text)
  local model, why = words.load(name)
  os.remove(name)
  return model, why, name
end

describe('the models of latchkey\'s own families', function()
  for _, family in ipairs(checker.families) do
    it('need nothing but the words: ' .. family, function()
      local text = file.read(FOLDER .. family .. '.lua')

      assert.is_nil(text:find('require', 1, true))
      assert.is_truthy(text:find('model.family {', 1, true))
      assert.equal(family, assert(words.family(family)).name)
    end)
  end

  it('are checked as a model file of somebody\'s own', function()
    local bounds = { scripts = helper.root .. '/scripts', clients = 2, rounds = 1, faults = 0 }

    local own = checker.check('mutex', bounds)
    local as_file = checker.check(FOLDER .. 'mutex.lua', bounds)

    assert.is_true(own.ok)
    assert.is_true(as_file.ok)
    assert.same({ own.states, own.transitions }, { as_file.states, as_file.transitions })
  end)

  it('are not there under other names', function()
    assert.is_nil((words.family('no such family')))
    assert.is_nil((words.family('taker')))
  end)
end)

describe('a family in a model file', function()
  local WHOLE = [[return model.family { summary = 's', clients = function() return '' end,
    roles = {}, limits = {}, bounds = {}, verbs = {}, %s }]]

  it('is one where it says all it must', function()
    assert.is_table(written(WHOLE:format('')))
  end)

  it('has the known words only', function()
    local _, why = written(WHOLE:format('verb = 1'))

    assert.matches('a family has no word "verb"', why, 1, true)
  end)

  it('needs its words', function()
    local _, why = written('return model.family { roles = {} }')

    assert.matches('a family needs "summary"', why, 1, true)
  end)

  -- What is added to the model of the mutex, in its last line; what is said of it.
  for what, case in pairs({
    ['a function that does not end'] = { 'family.observe = function() while true do end end',
      '^MODEL the word "observe": (.-):(%d+): it does not end: more than %d+ instructions$' },
    ['one that calls the checker without an end'] = {
      'family.quiet = function(family) repeat model.copy(family.bounds) until false end '
        .. 'local choices = family.roles.taker.choices',
      '^MODEL the word "quiet": (.-):(%d+): it does not end: ' },
    ['a kind of client that does not end'] = {
      'family.roles.taker.choices = function() repeat until false end',
      '^MODEL the word "roles%.taker%.choices": (.-):(%d+): it does not end: ' },
    ['one that calls another one that does not end'] = {
      'family.equal = function() repeat until false end '
        .. 'family.observe = function() return family.equal() end',
      '^MODEL the word "equal": (.-):(%d+): it does not end: ' },
    ['one that fails'] = { 'family.clients = function() return nil + 1 end',
      '^MODEL the word "clients": (.-):(%d+): attempt to perform arithmetic' },
  }) do
    it('is told of ' .. what .. ', with its file and line', function()
      local text = file.read(FOLDER .. 'mutex.lua'):gsub('\nreturn model%.family',
        '\nlocal family = model.family')
      local model, why, name = written(text .. case[1] .. '\nreturn family\n')
      assert(model, why)

      local good, said = pcall(checker.check, model, { scripts = helper.root .. '/scripts',
        clients = 2, rounds = 1, faults = 0 })

      local place, line = tostring(said):match(case[2])
      assert.is_false(good)
      assert.equal(name, place, said)
      assert.equal(select(2, text:gsub('\n', '')) + 1, tonumber(line), said)
    end)
  end

  it('sees nothing of the checker beside them', function()
    local _, why = written('return require("latchkey.checker.parts")')

    assert.matches("global 'require'", why, 1, true)
  end)
end)

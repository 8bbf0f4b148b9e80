-- SPDX-License-Identifier: Apache-2.0
-- The mock and a server, asked the same, answer the same. Each case of spec/mock/cases
-- says what that is, so it is checked on the mock even where there is no server to compare with:
--   { 'COMMAND a b', ... } or { script = source, keys = {}, args = {}, ... }
--   after       commands that go before
--   full        the server's memory is full; replica: it is a read-only replica
--   gives       the reply; none of the following: nil
--   about       the reply is a number that at most ten seconds have been taken from
--   fails       the error, word for word; with `line`, followed by the script's SHA1 and this line
--   fails_like  what the error starts with, where Lua's own words differ
--   globals     the reply is too long to be written down: the server's is the one to meet
--   model       servers of version 7.0 alone do so; the mock has them for its model
-- Other servers are asked the same; their errors need only the code of these, fractions any digits.
local Oracle = require('mock.oracle')
local World = require('latchkey.mock.world')
local compare = require('mock.compare')
local digest = require('latchkey.digest')

local GROUPS = { 'language', 'keys', 'patterns', 'strings', 'bytes', 'hashes', 'lists', 'sets',
  'zsets', 'zranges', 'streams', 'scans', 'libraries', 'server', 'scripts', 'functions' }
-- Globals of Redis that the mock refuses by name.
local UNMODELLED_GLOBALS = { '__redis__err__handler', 'cjson.new' }

local function words(line)
  local list = {}
  for word in line:gmatch('%S+') do
    list[#list + 1] = word
  end
  return list
end

local function commands(text)
  if type(text) == 'table' then
    return text
  end
  local list = {}
  for line in (text or ''):gmatch('[^;]+') do
    list[#list + 1] = words(line)
  end
  return list
end

local function perform(side, case)
  for _, command in ipairs(commands(case.after)) do
    assert(side:command(unpack(command)))
  end
  if case.full then
    side:set_oom(true)
  elseif case.replica then
    side:set_readonly(true)
  end
  if case.script then
    return side:eval_source(case.script, case.keys or {}, case.args or {})
  end
  return side:command(unpack(type(case[1]) == 'table' and case[1] or words(case[1])))
end

local function expect_error(case, err, is_model)
  assert.is_not_nil(err)
  local message = err.message
  if not is_model then
    local code = (case.fails or case.fails_like):match('^%S+')
    return assert.equal(code, message:match('^%S+'))
  end
  if case.line then
    local suffix = (' script: %s, on @user_script:%d.'):format(digest.sha1(case.script), case.line)
    assert.equal(suffix, message:sub(-#suffix))
    message = message:sub(1, -#suffix - 1)
  end
  if case.fails then
    assert.equal(case.fails, message)
  else
    assert.equal(case.fails_like, message:sub(1, #case.fails_like))
  end
end

local function expect(case, reply, err, is_model)
  if case.fails or case.fails_like then
    expect_error(case, err, is_model)
    return
  end
  assert.is_nil(err and err.message)
  if case.about then
    assert.is_true(reply <= case.about and reply >= case.about - compare.LATE)
  elseif not is_model then
    assert.is_nil(compare.outcomes({ reply = case.gives }, { reply = compare.plain(reply) }, true))
  elseif not case.globals then
    assert.same(case.gives, compare.plain(reply))
  end
end

local function title(case)
  local text = case.script or case[1]
  text = (type(text) == 'table' and table.concat(text, ' ') or text):gsub('%c', ' '):gsub(' +', ' ')
  text = #text > 500 and text:sub(1, 500) .. '...' or text
  local after = type(case.after) == 'table' and table.concat(case.after[1], ' ') or case.after
  return ('%s%s%s%s%s'):format(text, case.args and '   with ' .. table.concat(case.args, ' ') or '',
    after and '   after ' .. after:gsub('%c', ' ') or '',
    case.full and '   when full' or '', case.replica and '   on a replica' or '')
end

local function each_case(run)
  for _, group in ipairs(GROUPS) do
    for _, case in ipairs(require('mock.cases.' .. group)) do
      it(group .. ': ' .. title(case), function()
        run(case)
      end)
    end
  end
end

describe('the mock', function()
  each_case(function(case)
    local reply, err = perform(World.new({ strict = false }), case)

    assert.is_nil(err and err.message:match('%S*/mock/%S*'))
    expect(case, reply, err, true)
  end)
end)

describe('a server answers the same and leaves the same keys', function()
  local oracle, missing

  setup(function()
    oracle, missing = Oracle.start()
  end)

  teardown(function()
    if oracle then
      oracle:stop()
    end
  end)

  each_case(function(case)
    if not oracle then
      return pending(missing)
    elseif case.model and not oracle.is_model then
      return pending('servers other than Redis 7.0 do otherwise')
    end
    oracle:reset()
    local mock = compare.mock_beside(oracle, false)

    local reply, err = perform(oracle, case)
    local mock_reply = perform(mock, case)

    expect(case, reply, err, oracle.is_model)
    if case.globals then
      for _, name in ipairs(UNMODELLED_GLOBALS) do
        mock_reply.n = mock_reply.n + 1
        mock_reply[mock_reply.n] = name
      end
      table.sort(mock_reply)
      mock_reply.n = nil
      reply.n = nil
      assert.same(reply, mock_reply)
    end
    oracle:set_readonly(false)
    assert.is_nil(compare.keys(oracle:dump(), mock:dump()))
  end)
end)

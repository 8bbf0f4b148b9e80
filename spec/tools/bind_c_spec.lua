-- SPDX-License-Identifier: Apache-2.0
-- That what `latchkey bind c` writes compiles, in C and C++, whatever names a header has.
local path = require('pl.path')
local utils = require('pl.utils')

local bind_c = require('latchkey.script.bind_c')
local headers = require('latchkey.script.header')

local HEAD = [=[
#!lua
--[[ latchkey-script
name:     %s
version:  1.0.0
summary:  A call
keys:
%sargv:
%sreturns:
%s%scost:     at most 1 command
cluster:  one slot
]]
return redis.status_reply('OK')
]=]

local KEY = '  - count  string  rw  acme:{name}:count  how many\n'
local OK = '  - OK  done\n'

local function script_of(name, argv, keys, returns)
  local source = HEAD:format(name, keys or KEY, argv, returns or OK,
    argv:find('channel') and 'message:  0 or 1\n' or '')
  return { name = name, source = source, header = assert((headers.parse(source))),
    sha1 = ('0'):rep(40) }
end

local COMPILERS = {}
for _, compiler in ipairs({ 'cc -std=c11 -x c', 'c++ -std=c++20 -x c++' }) do
  local is_there = utils.execute(('command -v %s >/dev/null'):format(compiler:match('%S+')))
  COMPILERS[#COMPILERS + 1] = is_there and compiler or nil
end

describe('calls that latchkey bind c writes', function()
  local file

  before_each(function()
    file = path.tmpname()
  end)

  after_each(function()
    os.remove(file)
  end)

  local function compile(text)
    if not COMPILERS[1] then
      pending('there is no compiler')
    end
    utils.writefile(file, text)
    for _, compiler in ipairs(COMPILERS) do
      local good, _, _, err = utils.executeex(('%s -Ic/include -Wall -Wextra -Werror '
        .. '-Wno-unused-function -fsyntax-only %s'):format(compiler, file))
      assert.is_true(good, compiler .. ': ' .. err)
    end
  end

  local function compiled(scripts)
    local text, left = bind_c.header(scripts, 'LK_BOUND_X')
    compile(text)
    return text, left
  end

  it('form a channel of the name where there is no key', function()
    local text = compiled({ script_of('acme/tell', '  - bell  channel  prefix:acme  told\n', '') })

    assert.matches('acme_tell(lk_client *client, const char *name, ', text, 1, true)
    assert.matches('the name has 1 to 512 bytes', text, 1, true)
  end)

  it('are none of a script that lists no reply', function()
    local text, left = compiled({ script_of('acme/quiet', '  - by  count  1..5  so many\n', nil,
      '') })

    assert.equal('it lists no reply', left[1].why)
    assert.is_nil((text:find('enum', 1, true)))
  end)

  it('look for an array of one length before one that stands for many', function()
    local text = compiled({ script_of('acme/list', '', nil, '  - {1, name...}  many\n'
      .. '  - integer  other\n  - {1, left}  one\n  - 7  exact\n  - 8  exact\n') })
    local order = {}
    for name in text:gmatch('is = (ACME_LIST_[%w_]+);') do
      order[#order + 1] = name
    end

    assert.same({ 'ACME_LIST_7', 'ACME_LIST_8', 'ACME_LIST_INTEGER', 'ACME_LIST_1_LEFT',
      'ACME_LIST_1' }, order)
  end)

  it('have parameters of different names, and none that is a word of C or C++', function()
    local rows = {}
    for word in ([[int int_ requires concept thread_local co_await co_yield co_return consteval
      constinit char8_t static_assert typeof_unqual const_cast static_cast]]):gmatch('%S+') do
      rows[#rows + 1] = ('  - %s  count  1..5  so many\n'):format(word)
    end

    local text = compiled({ script_of('acme/words', table.concat(rows)) })

    assert.matches('int64_t int_, int64_t int__, int64_t requires_, ', text, 1, true)
  end)

  it('have no names of the library, nor words of C, nor names that its headers declare', function()
    local names = { 'lk/client', 'thread/local', 'quick/exit', 'on/exit', 'rand/r', 'fd/set',
      'posix/memalign', 'va/list', 'secure/getenv' }
    local scripts, expected = { script_of('acme/step', '') }, {}
    for i, name in ipairs(names) do
      table.insert(scripts, script_of(name, ''))
      expected[i] = { script = name,
        why = name:gsub('/', '_') .. ' is a name of C or of the library' }
    end

    local _, left = compiled(scripts)

    assert.same(expected, left)
  end)
end)

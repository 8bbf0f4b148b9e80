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
%smessage:  0 or 1
cost:     at most 1 command
cluster:  one slot
]]
return redis.status_reply('OK')
]=]

local KEY = '  - count  string  rw  acme:{name}:count  how many\n'
local OK = '  - OK  done\n'

local function script_of(name, argv, keys, returns)
  local source = HEAD:format(name, keys or KEY, argv, returns or OK)
  return { name = name, source = source, header = (headers.parse(source)), sha1 = ('0'):rep(40) }
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
end)

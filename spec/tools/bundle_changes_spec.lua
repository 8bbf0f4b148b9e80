-- SPDX-License-Identifier: Apache-2.0
local changes = require('latchkey.bundle.changes')
local header = require('latchkey.script.header')
local texts = require('support.texts')

local SOURCE = [==[
#!lua
--[[ latchkey-script
name:     a/b
version:  1.0.0
summary:  S.
keys:
  - one      hash  rw  {name}  what
argv:
  - lease    ms    50..100  how long
returns:
  - {1}      done
  - {0, n}   not now
errors:
  - LKARG    wrong
repeat:   hold
cost:     at most 3 commands
cluster:  one slot
]]
return {1}
]==]

local function script(source)
  local h, findings = header.parse(source)
  assert(h, findings and findings[1].message)
  return { name = h.name, source = source, sha1 = 'x', header = h }
end

-- The script with its version and one other text changed.
local function changed(version, old, new)
  local text = SOURCE:gsub('1%.0%.0', version)
  return script(texts.with(text, old, new))
end

describe('the changes between two sets of scripts', function()
  local function finding(version, old, new)
    return changes.between({ script(SOURCE) }, { changed(version, old, new) })[1].finding
  end

  local function needs(level, reason, old, new)
    local below = { patch = '1.0.0', minor = '1.0.1', major = '1.1.0' }
    local enough = { patch = '1.0.1', minor = '1.1.0', major = '2.0.0' }
    local why = finding(below[level], old, new)

    assert.is_string(why, level)
    assert.matches(level, why, 1, true)
    assert.matches(reason, why, 1, true)
    assert.is_nil(finding(enough[level], old, new))
  end

  it('are none where the bytes are the same', function()
    assert.same({}, changes.between({ script(SOURCE) }, { script(SOURCE) }))
  end)

  it('name what was added and removed', function()
    local other = script((SOURCE:gsub('a/b', 'c/d')))

    local list = changes.between({ script(SOURCE) }, { other })

    assert.same({ 'a/b', 'removed', '1.0.0' }, { list[1].name, list[1].kind, list[1].old })
    assert.same({ 'c/d', 'added', '1.0.0' }, { list[2].name, list[2].kind, list[2].new })
  end)

  it('need a patch for another text', function()
    needs('patch', 'the bytes differ', 'return {1}', 'return { 1 }')
    needs('patch', 'the bytes differ', 'how long', 'for how long')
    needs('patch', 'the bytes differ', 'at most 3', 'at most 4')
  end)

  it('need a minor step for optional arguments at the end, and for fewer commands', function()
    needs('minor', 'optional arguments were added', 'how long\n',
      'how long\n  - more?    ms    1..2     more\n')
    needs('minor', 'fewer commands', 'at most 3', 'at most 2')
  end)

  it('need a major step for other keys, arguments, replies, errors and promises', function()
    needs('major', 'keys differ', 'hash  rw', 'hash  r')
    needs('major', 'keys differ', '{name}', 'prefix:p')
    needs('major', 'arguments differ', 'how long\n', 'how long\n  - more     ms    1..2     more\n')
    needs('major', 'arguments differ', '50..100', '60..100')
    needs('major', 'arguments differ', 'lease    ms', 'time     ms')
    needs('major', 'returns differ', '{0, n}', '{0, n, m}')
    needs('major', 'errors differ', 'LKARG    wrong', 'LKX      wrong')
    needs('major', '"repeat" differs', 'repeat:   hold', 'repeat:   no')
  end)

  it('need a major step for another channel that the script forms itself', function()
    local function on(version, form)
      return script((SOURCE:gsub('argv:', ('channels:\n  - bell     %s  told\nargv:'):format(form))
        :gsub('repeat:', 'message:  value\nrepeat:'):gsub('1%.0%.0', version)))
    end

    local why = changes.between({ on('1.0.0', 'a:{name}') }, { on('1.1.0', 'b:{name}') })[1].finding

    assert.matches('channels differ', why, 1, true)
    assert.is_nil(changes.between({ on('1.0.0', 'a:{name}') },
      { on('2.0.0', 'b:{name}') })[1].finding)
  end)

  it('are judged the same way when a version goes back', function()
    local new = changed('1.0.1', '50..100', '60..100')

    local back = changes.between({ new }, { script(SOURCE) })[1]
    local patch_back = changes.between({ changed('1.0.1', 'how long', 'long') },
      { script(SOURCE) })[1]
    local minor_back = changes.between({ changed('1.1.0', 'how long\n',
      'how long\n  - more?    ms    1..2     more\n') }, { script(SOURCE) })[1]

    assert.matches('needs a major one', back.finding, 1, true)
    assert.is_nil(patch_back.finding)
    assert.is_nil(minor_back.finding)
  end)

  it('are shown as diff shows them', function()
    local list = changes.between({ script(SOURCE) },
      { changed('1.0.1', 'return {1}', 'return {0, 1}') })

    local text = changes.text(list[1])

    assert.matches('--- a/b.lua 1.0.0\n+++ a/b.lua 1.0.1\n', text, 1, true)
    assert.matches('\n-return {1}\n+return {0, 1}\n', text, 1, true)
  end)

  -- A script without a header, whose contract says what its header would.
  local function adopted(version, argv)
    local contract = SOURCE:match('latchkey%-script\n(.-)%]%]'):gsub('1%.0%.0', version)
      :gsub('summary:', 'sha1:     ' .. ('0'):rep(40) .. '\nsummary:')
      :gsub('lease    ms    50%.%.100', argv)
    local h, findings = header.parse_contract(contract, 'return {1}\n', ('0'):rep(40))
    assert(h, findings and findings[1].message)
    return { name = h.name, source = 'return {1}\n', sha1 = ('0'):rep(40), header = h,
      contract = contract }
  end

  it('are those of contracts, too, where the texts of the scripts are the same', function()
    local old = adopted('1.0.0', 'lease    ms    50..100')

    assert.same({}, changes.between({ old }, { adopted('1.0.0', 'lease    ms    50..100') }))
    local change = changes.between({ old }, { adopted('1.1.0', 'lease    ms    60..100') })[1]
    assert.equal('1.0.0 to 1.1.0 is a minor step; needs a major one: arguments differ',
      change.finding)
    local text = changes.text(change)
    assert.equal('--- a/b.contract 1.0.0\n+++ a/b.contract 1.1.0\n', text:match('^.-\n.-\n'))
    assert.matches('\n-  - lease    ms    50..100  how long\n'
      .. '+  - lease    ms    60..100  how long\n', text, 1, true)
    assert.is_nil(changes.between({ old },
      { adopted('2.0.0', 'lease    ms    60..100') })[1].finding)
  end)

  it('show a contract that was added', function()
    local new = adopted('1.0.0', 'lease    ms    50..100')

    local text = changes.text(changes.between({}, { new })[1])

    assert.matches('+++ a/b.lua 1.0.0\n@@ -0,0 +1 @@\n+return {1}\n--- /dev/null\n'
      .. '+++ a/b.contract 1.0.0\n', text, 1, true)
  end)

  it('show an added script as a whole', function()
    local text = changes.text(changes.between({}, { script(SOURCE) })[1])

    assert.matches('--- /dev/null\n+++ a/b.lua 1.0.0\n', text, 1, true)
    assert.matches('+return {1}\n', text, 1, true)
  end)
end)

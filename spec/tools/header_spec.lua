-- SPDX-License-Identifier: Apache-2.0
local header = require('latchkey.script.header')
local texts = require('support.texts')

local GOOD = [==[
#!lua flags=allow-oom
--[[ latchkey-script
name:     room/enter
version:  1.2.3
summary:  Take a place in a room.
keys:
  - room     hash   rw  {name}                 who is inside
  - seats*   string  r   braces:seat  1..100    one for each
  - queue    list   rw  prefix:room_queue  shared  permanent  private matters, in order
  - seen     string  w   prefix:room_seen+guest+:x  private
derived:
  - visit    string  rw  suffix:*:visit:*       one a visit
argv:
  - stay     ms       50..86400000             how long
  - guest    owner    1..256
  - door     channel  suffix:door              told when it opens
  - publish  verb     PUBLISH|SPUBLISH
  - why?     text     0..80                    for the book
returns:
  - {1, places}            inside
  - {0}                    full
  - {-1, at, name...}      elsewhere
errors:
  - LKARG   a wrong argument
message:  0 or 1
repeat:   id
cost:     4 + 2 per seat, at most 204
dynamic:
  - HSET
  - SET   with a reason
cluster:  one slot
uses:     integer, tell
]]
return {0}
]==]

local function change(old, new)
  return texts.with(GOOD, old, new)
end

describe('header.parse', function()
  it('reads the single fields', function()
    local h = header.parse(GOOD, 'scripts/room/enter.lua')

    assert.equal('room/enter', h.name)
    assert.equal('1.2.3', h.version)
    assert.equal('Take a place in a room.', h.summary)
    assert.same({ 'allow-oom' }, h.flags)
    assert.equal('0 or 1', h.message)
    assert.equal('id', h.repeat_)
    assert.same({ base = 4, per = 2, of = 'seat', max = 204 }, h.cost)
    assert.equal('one slot', h.cluster)
    assert.same({ 'integer', 'tell' }, h.uses)
    assert.same({ 'HSET', 'SET' }, h.dynamic)
    assert.equal(34, h.first_code_line)
  end)

  it('reads keys: form, marks and how many', function()
    local h = header.parse(GOOD)

    assert.same({
      { name = 'room', type = 'hash', access = 'rw', marks = {}, text = 'who is inside',
        form = { kind = 'name', text = '', plus = '' } },
      { name = 'seats', type = 'string', access = 'r', marks = {}, text = 'one for each',
        form = { kind = 'braces', text = 'seat', plus = '' }, many = { min = 1, max = 100 } },
      { name = 'queue', type = 'list', access = 'rw', text = 'private matters, in order',
        form = { kind = 'prefix', text = 'room_queue', plus = '' },
        marks = { shared = true, permanent = true } },
      { name = 'seen', type = 'string', access = 'w', marks = { private = true }, text = '',
        form = { kind = 'prefix', text = 'room_seen', plus = 'guest+:x' } },
    }, h.keys)
    assert.same({ kind = 'suffix', text = '*:visit:*', plus = '' }, h.derived[1].form)
  end)

  it('reads arguments by their types', function()
    local h = header.parse(GOOD)

    assert.same({
      { name = 'stay', type = 'ms', kind = 'integer', min = 50, max = 86400000,
        optional = false, text = 'how long' },
      { name = 'guest', type = 'owner', kind = 'text', min = 1, max = 256,
        optional = false, text = '' },
      { name = 'door', type = 'channel', kind = 'channel', optional = false,
        form = { kind = 'suffix', text = 'door', plus = '' }, text = 'told when it opens' },
      { name = 'publish', type = 'verb', kind = 'choice', optional = false,
        values = { 'PUBLISH', 'SPUBLISH' }, text = '' },
      { name = 'why', type = 'text', kind = 'text', min = 0, max = 80,
        optional = true, text = 'for the book' },
    }, h.argv)
  end)

  it('reads channels that the script forms itself', function()
    local h = header.parse(change('argv:',
      'channels:\n  - bell  room:{name}:bell  told when\nargv:'))

    assert.same({ { name = 'bell', type = 'channel', text = 'told when',
      form = { kind = 'pattern', text = 'room:{name}:bell', plus = '' } } }, h.channels)
    for wrong, why in pairs({ ['bell'] = 'a channel has columns', ['bell  {slot}'] = 'is for keys',
      ['bell  {name}  a  b'] = 'one column too many', ['bell  x'] = 'forms no name' }) do
      local _, findings = header.parse(change('argv:', ('channels:\n  - %s\nargv:'):format(wrong)))
      assert.truthy(findings[1].message:find(why, 1, true), findings[1].message)
    end
  end)

  it('reads arguments that stand for many, or for a command', function()
    local h = header.parse(change('why?     text     0..80                    for the book',
      'call    command  dynamic\n  - words*  text     0..80  1..9   for the book'))

    assert.same({ name = 'call', type = 'command', kind = 'command', optional = false, text = '' },
      h.argv[5])
    assert.same({ name = 'words', type = 'text', kind = 'text', min = 0, max = 80,
      optional = false, many = { min = 1, max = 9 }, text = 'for the book' }, h.argv[6])
  end)

  it('reads a key that is any of the slot', function()
    local h = header.parse(change('room     hash   rw  {name}', 'room     any    rw  {slot}'))

    assert.same({ kind = 'slot', text = '', plus = '' }, h.keys[1].form)
  end)

  it('reads replies and errors', function()
    local h = header.parse(GOOD)

    assert.same({
      { shape = '{1, places}', first = 1, arity = 2, rest = false, text = 'inside' },
      { shape = '{0}', first = 0, arity = 1, rest = false, text = 'full' },
      { shape = '{-1, at, name...}', first = -1, rest = true, text = 'elsewhere' },
    }, h.returns)
    assert.same({ { code = 'LKARG', text = 'a wrong argument' } }, h.errors)
  end)

  it('reads every flag of the server that a script may have', function()
    local h = header.parse(change('allow-oom', 'no-writes,allow-oom,allow-stale'))

    assert.same({ 'no-writes', 'allow-oom', 'allow-stale' }, h.flags)
  end)

  it('takes a script without keys, arguments and repeat', function()
    local h = header.parse(table.concat({ '#!lua', '--[[ latchkey-script', 'name: a/b',
      'version: 0.0.1', 'summary: Nothing.', 'returns:', '  - {1}  done',
      'cost: at most 1 command', 'cluster: one slot', ']]' }, '\n'))

    assert.same({}, h.keys)
    assert.same({}, h.flags)
    assert.same({ base = 1 }, h.cost)
    assert.equal('no', h.repeat_)
  end)

  -- What is changed, line of the finding, words of its message.
  local wrong = {
    { '#!lua flags=allow-oom', '#!/usr/bin/lua', 1, 'the first line' },
    { 'allow-oom', 'allow-ooom', 1, 'unknown flag "allow-ooom"' },
    { '--[[ latchkey-script', '--[[', 2, 'the second line' },
    { '\n]]\nreturn {0}', '', 32, 'has no end' },
    { 'room/enter', 'enter', 3, 'no script name' },
    { 'room/enter', 'room/' .. ('x'):rep(60), 3, 'at most 63 bytes' },
    { '1.2.3', '1.2', 4, 'MAJOR.MINOR.PATCH' },
    { '1.2.3', '1.02.3', 4, 'MAJOR.MINOR.PATCH' },
    { 'summary:  Take a place in a room.', 'summary:', 5, 'needs a value' },
    { 'repeat:   ', '  - ', 26, 'a header line is' },
    { 'dynamic:\n  - HSET\n  - SET   with a reason', 'dynamic: SET', 28, 'start on the next line' },
    { 'keys:', 'locks:\n  - a  b\nkeys:', 6, 'unknown field "locks"' },
    { '1.2.3', '1.2.3\nversion: 1.2.3', 5, 'out of order or there twice' },
    { 'cost:     4', 'cost:\n  - 4', 27, 'needs a value' },
    { '  - room  ', '- room  ', 7, 'a header line is' },
    { 'who is inside', 'who is inside ', 7, 'spaces at the end' },
    { 'hash   rw  {name}                 who is inside', 'hash  rw', 7, 'a key has columns' },
    { 'room     hash', 'Room     hash', 7, 'a key has columns' },
    { 'hash   rw', 'hash rw', 7, 'unknown key type "hash rw"' },
    { 'who is inside', 'who  is inside', 7, '"is inside" is one column too many' },
    { 'how long', 'how  long', 14, '"long" is one column too many' },
    { 'hash ', 'hush ', 7, 'unknown key type "hush"' },
    { 'hash   rw', 'hash   rx', 7, 'unknown access "rx"' },
    { '{name}', '{nome}', 7, 'forms no name' },
    { 'seats*', 'seats ', 8, 'written "name*"' },
    { '1..100  ', 'many  ', 8, 'written "name*"' },
    { 'seen ', 'room ', 6, 'two fields are named "room"' },
    { '+guest+:x', '+host', 6, '"+host" names no argument' },
    { '50..86400000', '', 14, 'is no range' },
    { '50..86400000', '90..50', 14, 'is no range' },
    { '50..86400000', '0..9007199254740992', 14, 'is no range' },
    { 'ms       50..86400000             how long', 'ms', 14, 'an argument has columns' },
    { '  ms  ', '  mms ', 14, 'unknown argument type "mms"' },
    { 'why?     text     0..80     ', 'why*     text     0..80     ', 18, 'is written "name*"' },
    { 'guest    owner    1..256', 'guest*   owner    1..256  1..9', 13, 'is not the last' },
    { 'why?     text     0..80', 'why      command  0..80', 18, 'the field of that name lists' },
    { 'PUBLISH|SPUBLISH', 'PUBLISH|', 17, 'no list of values' },
    { 'publish  verb', 'guest    verb', 13, 'two fields are named "guest"' },
    { '{1, places}            inside', '{1, places}', 20, 'needs a shape and a meaning' },
    { '{1, places}', '{places}', 20, 'starts with its outcome' },
    { '{1, places}', '{1, Places}', 20, 'no element of a shape' },
    { '{-1, at, name...}', '{-1, at..., name}', 22, 'only the last element' },
    { '{0}    ', '{1, z}', 19, 'cannot be distinguished from' },
    { 'LKARG   a', 'lkarg   a', 24, 'needs a code' },
    { '0 or 1', '2', 25, 'not one of: 0, 0 or 1, 1' },
    { 'message:  0 or 1\n', '', 13, 'has a "message:"' },
    { 'repeat:   id', 'repeat:   often', 26, 'not one of: hold' },
    { '4 + 2 per seat, at most 204', 'cheap', 27, 'at most N commands' },
    { '- HSET', '- hset', 29, 'upper-case' },
    { 'one slot', 'two slots', 31, 'not one of: no, one slot' },
    { 'integer, tell', 'integer,tell', 32, 'separated by ", "' },
    { 'summary:  Take a place in a room.\n', '', 2, 'has no "summary:"' },
    { 'cluster:  one slot\n', '', 2, 'has no "cluster:"' },
  }
  for _, case in ipairs(wrong) do
    local old, new, line, words = unpack(case)
    it(('refuses %q for %q'):format(new, old), function()
      local h, findings = header.parse(change(old, new))

      assert.is_nil(h)
      assert.equal(1, #findings, findings[2] and findings[2].message)
      assert.equal('header', findings[1].rule)
      assert.equal(line, findings[1].line)
      assert.matches(words, findings[1].message, 1, true)
    end)
  end

  it('refuses more fields than the library has room for', function()
    local more = {}
    for i = 1, 28 do
      more[i] = ('  - k%d  hash  r  {name}\n'):format(i)
    end
    assert.is_table(header.parse(change('derived:', table.concat(more) .. 'derived:')))
    more[29] = '  - k29  hash  r  {name}\n'

    local _, findings = header.parse(change('derived:', table.concat(more) .. 'derived:'))

    assert.equal('33 fields, at most 32 are allowed', findings[1].message)
  end)

  it('refuses an argument that must be given behind one that need not', function()
    local source = change('door     channel', 'door?    channel')

    local h, findings = header.parse(source)

    assert.is_nil(h)
    assert.matches('"publish" follows an optional argument', findings[1].message, 1, true)
  end)

  it('refuses a command for argument where none is listed', function()
    local source = change('why?     text     0..80 ', 'why      command  dynamic')
      :gsub('dynamic:\n  %- HSET\n  %- SET   with a reason\n', '')

    local h, findings = header.parse(source)

    assert.is_nil(h)
    assert.matches('lists the possible ones', findings[1].message, 1, true)
  end)

  it('refuses a file that is not named like its script', function()
    for _, path in ipairs({ 'x/room/leave.lua', 'x/mushroom/enter.lua', 'enter.lua' }) do
      local h, findings = header.parse(GOOD, path)

      assert.is_nil(h)
      assert.equal('name', findings[1].rule)
      assert.equal(3, findings[1].line)
    end
    assert.is_table(header.parse(GOOD, 'room/enter.lua'))
  end)

  it('reports every finding of a header', function()
    local source = change('1.2.3', 'new'):gsub('{0}', '{x}', 1)

    local _, findings = header.parse(source)

    assert.equal(2, #findings)
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
local cjson = require('cjson')
local events_of = require('latchkey.checker.events')
local traces = require('support.traces')

-- What each kind of event has; a line of it is read, and none of its members may be another.
describe('a line of a trace', function()
  local ANY = { t = 1000, client = 'c1' }
  local GOOD = {
    trace = { version = 1, recheck_ms = 30000, command_ms = 1000 },
    begin = { lock = 'lock:orders', caller = 7, op = 'acquire', owner = 'lk-c1:1', wait_ms = -1,
      lease_ms = 30000, drift_ms = 302, renew = 1 },
    ['begin of a release'] = { e = 'begin', lock = 'lock:orders', caller = 7, op = 'release',
      owner = 'lk-c1:1', left = 0 },
    name = { lock = 'lock:orders', caller = 7, owner = 'lk-c1:2' },
    sent = { call = 1, copy = 1, script = 'lock/acquire', keys = { 'orders' },
      args = { '30000', 'lk-c1:1', '1' } },
    replied = { call = 1, reply = { 1, 1 } },
    unanswered = { call = 1, status = 'LK_UNSURE', copies = 1 },
    listen = { channel = 'c' }, listening = { channel = 'c' }, deaf = { channel = 'c' },
    message = { channel = 'c', text = '0' },
    timer = { timer = 'renew', owner = 'lk-c1:1' },
    deadline = { owner = 'lk-c1:1', ['until'] = 2000 },
    lost = { owner = 'lk-c1:1', reason = 'taken' },
    undo = { script = 'lock/release', owner = 'lk-c1:1' },
    ['end'] = { lock = 'lock:orders', caller = 7, op = 'acquire', status = 'LK_OK' },
  }

  local function line_of(title, name, value)
    local event = { e = title }
    for _, list in ipairs({ ANY, GOOD[title] }) do
      for member, its in pairs(list) do
        event[member] = its
      end
    end
    if name then
      event[name] = value
    end
    return cjson.encode(event)
  end

  -- What neither a text nor a number, list or reply may be.
  local function refused(title, name, value)
    local result = traces.check({ line_of('trace'), line_of(title, name, value) })
    local what = ('%s, %s: %s'):format(title, name, tostring(value))

    assert.is_table(result.finding, what)
    assert.is_true(result.finding.malformed, what)
    assert.equal(2, result.finding.line)
    assert.is_truthy(result.finding.message:find(('"%s"'):format(name), 1, true)
      or name == 'e', result.finding.message)
  end

  for title, members in pairs(GOOD) do
    it('of the kind ' .. title .. ' is read with its members alone', function()
      assert.is_table(events_of.read(line_of(title)))
      for _, list in ipairs({ ANY, members }) do
        for name in pairs(list) do
          for _, wrong in ipairs({ true, { a = 1 }, cjson.null }) do
            if name ~= 'reply' or wrong ~= cjson.null then
              refused(title, name, wrong)
            end
          end
        end
      end
    end)

    it('of the kind ' .. title .. ' is refused without one of its members', function()
      for _, list in ipairs({ ANY, members }) do
        for name in pairs(list) do
          if name ~= 'caller' and name ~= 'e' then
            local event = cjson.decode(line_of(title))
            event[name] = nil
            local result = traces.check({ cjson.encode(event) })
            assert.is_table(result.finding, title .. ' without ' .. name)
            assert.is_true(result.finding.malformed)
            assert.equal(1, result.finding.line)
          end
        end
      end
    end)
  end

  it('is refused with another op, timer, reason or version', function()
    for title, name in pairs({ begin = 'op', ['end'] = 'op', timer = 'timer', lost = 'reason' }) do
      refused(title, name, 'nothing')
    end
    refused('trace', 'version', 2)
  end)

  it('is refused with numbers that are none', function()
    for _, text in ipairs({ 'nan', '1e999', '-1e999', '9007199254740993' }) do
      local line = line_of('deadline'):gsub('2000', text)
      assert.is_true(traces.check({ line }).finding.malformed, line)
    end
  end)

  it('names no script outside of its folder, and none that is not there', function()
    for _, name in ipairs({ '/etc/passwd', '../scripts/lock/acquire', 'lock/../../x', '' }) do
      refused('sent', 'script', name)
      refused('undo', 'script', name)
    end
    local result = traces.check({ line_of('sent', 'script', 'lock/nothing') })
    assert.is_true(result.finding.malformed)
    assert.matches('^lock/nothing: ', result.finding.message)
  end)

  it('is shown without control characters', function()
    for _, text in ipairs({ '\27[2J', line_of('trace', 'e', '\27[2J') }) do
      local message = traces.check({ text }).finding.message

      assert.is_nil(message:find('%c'))
      assert.matches("?[2J", message, 1, true)
    end
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
-- trace.jsonl is what the library wrote of two threads that took one lock beside another process,
-- with leases of 240 ms: one process of a torture run, with shorter names.
local cjson = require('cjson')
local traces = require('support.traces')
local utils = require('pl.utils')

local REAL = utils.readlines('spec/checker/trace.jsonl')

local function events(lines)
  local list = {}
  for i, line in ipairs(lines) do
    list[i] = cjson.decode(line)
  end
  return list
end

-- The first line after `from` whose members are these.
local function find(list, members, from)
  for i = from or 1, #list do
    local matches = true
    for name, value in pairs(members) do
      matches = matches and list[i][name] == value
    end
    if matches then
      return i, list[i]
    end
  end
  error('the trace has no such line')
end

local function answer_of(list, i)
  return find(list, { e = 'replied', call = list[i].call }, i)
end

describe('a trace', function()
  local list

  before_each(function()
    list = events(REAL)
  end)

  local function checked()
    return traces.check_events(list)
  end

  -- Damages the trace; `damage` answers the line that is to be named, and what is to be said.
  local function refuses(title, damage)
    it('is refused with ' .. title, function()
      local line, words = damage()

      local result = checked()

      assert.is_table(result.finding)
      assert.equal(line, result.finding.line)
      assert.matches(words, result.finding.message)
    end)
  end

  it('that the library wrote is accepted to its last line', function()
    local result = checked()

    assert.is_nil(result.finding)
    assert.equal(#REAL, result.steps)
    assert.is_true(result.kinds.lock > #REAL / 2)
  end)

  refuses('a confirmation less', function()
    local i = find(list, { e = 'listening' })
    table.remove(list, i)
    return find(list, { e = 'sent', script = 'lock/acquire' }, i), 'looks again in'
  end)

  it('is accepted with the end of a deadline', function()
    local i, event = find(list, { e = 'end', op = 'acquire', status = 'LK_OK' })
    table.insert(list, i + 1, { e = 'timer', timer = 'deadline', t = event.t,
      client = event.client, owner = event.owner })

    assert.same({}, checked().finding or {})
  end)

  refuses('an acquire of a hold that nobody asked for', function()
    local i, event = find(list, { e = 'end', op = 'acquire', status = 'LK_OK' })
    local _, sent = find(list, { e = 'sent', script = 'lock/acquire' })
    table.insert(list, i + 1, { e = 'sent', t = event.t, client = event.client, call = 99999,
      copy = 1, script = sent.script, keys = sent.keys,
      args = { sent.args[1], event.owner, '2' } })
    return i + 1, 'sends no acquire in the state "held"'
  end)

  refuses('a deadline that is later', function()
    local i, event = find(list, { e = 'deadline' })
    event['until'] = event['until'] + 5000
    return i, 'believes until'
  end)

  refuses('a deadline after the first renewal that does not count from its send', function()
    local renewal = find(list, { e = 'sent', script = 'lock/renew' })
    local i, event = find(list, { e = 'deadline' }, renewal)
    event['until'] = list[renewal].t + 240000
    return i, 'believes until'
  end)

  refuses('a renewal that is early', function()
    local i, event = find(list, { e = 'sent', script = 'lock/renew' })
    event.t = event.t - 20000
    return i, 'renews in'
  end)

  refuses('a renewal after the release', function()
    local released = find(list, { e = 'sent', script = 'lock/release' },
      find(list, { e = 'begin', op = 'release', left = 0 }))
    while list[released].args[3] ~= '0' do
      released = find(list, { e = 'sent', script = 'lock/release' }, released + 1)
    end
    local done = answer_of(list, released)
    local late = { e = 'sent', t = list[done].t + 1, client = list[1].client, call = 9999, copy = 1,
      script = 'lock/renew', keys = { 'orders' }, args = { '240', list[released].args[2] } }
    table.insert(list, done + 1, late)
    return done + 1, 'model renews nothing there'
  end)

  refuses('a renewal of a name that was given up', function()
    local released = find(list, { e = 'begin', op = 'release', left = 0 })
    local ended = find(list, { e = 'end', op = 'release', caller = list[released].caller },
      released)
    table.insert(list, ended + 1, { e = 'sent', t = list[ended].t + 1, client = list[1].client,
      call = 9999, copy = 1, script = 'lock/renew', keys = { 'orders' },
      args = { '240', list[released].owner } })
    return ended + 1, 'given up'
  end)

  refuses('a grant that was read too late, and believed', function()
    local i, event = find(list, { e = 'deadline' })
    local sent = find(list, { e = 'sent', script = 'lock/acquire' })
    list[answer_of(list, sent)].reply = { 1, 1 }
    for k = sent + 1, i do
      list[k].t = list[sent].t + 240000 + k
    end
    local late = answer_of(list, sent)
    table.insert(list, late + 1, { e = 'deadline', t = list[late].t, client = event.client,
      owner = list[sent].args[2], ['until'] = list[sent].t + 235600 })
    return late + 1, 'holds nothing in the state "giveback"'
  end)

  refuses('an acquire that ended well and was refused', function()
    local sent = find(list, { e = 'sent', script = 'lock/acquire' })
    local i, event = find(list, { e = 'end', op = 'acquire', status = 'LK_OK' })
    local owner = event.owner
    local granted = find(list, { e = 'deadline', owner = owner }, sent)
    table.remove(list, granted)
    local answer = granted - 1
    while list[answer].e ~= 'replied' do
      answer = answer - 1
    end
    list[answer].reply = { 0, 200 }
    return i - 1, 'acquire ended well'
  end)

  refuses('another count than the levels that were taken', function()
    local i, event = find(list, { e = 'sent', script = 'lock/release' })
    event.args[3] = '7'
    return i, 'hold is 7'
  end)

  refuses('an end of a release that the server did not say', function()
    local i = find(list, { e = 'sent', script = 'lock/release' })
    list[answer_of(list, i)].reply = { -1 }
    return find(list, { e = 'end', op = 'release' }, i), 'release ended well'
  end)

  refuses('an end of a release that had not begun', function()
    local i, event = find(list, { e = 'begin', op = 'acquire' })
    table.insert(list, i + 1, { e = 'end', t = event.t, client = event.client, lock = event.lock,
      caller = event.caller, op = 'release', status = 'LK_UNREACHABLE' })
    return i + 1, 'had not begun'
  end)

  refuses('a release of which a copy found nothing, and that ended well', function()
    local i, event = find(list, { e = 'sent', script = 'lock/release' })
    local copy = cjson.decode(cjson.encode(event))
    copy.copy = 2
    list[answer_of(list, i)].reply = { -1 }
    table.insert(list, i + 1, copy)
    return find(list, { e = 'end', op = 'release' }, i), 'model says unsure'
  end)

  refuses('a name that was used before', function()
    local first = find(list, { e = 'begin', op = 'acquire' })
    local released = find(list, { e = 'begin', op = 'release', left = 0 })
    local _, again = find(list, { e = 'begin', op = 'acquire' }, released)
    again.owner = list[first].owner
    return find(list, { e = 'begin', op = 'acquire' }, released), 'name'
  end)

  refuses('an acquire that may be left at the server', function()
    local sent = find(list, { e = 'sent', script = 'lock/acquire' })
    local answer = answer_of(list, sent)
    local begun, event = find(list, { e = 'begin', op = 'acquire' })
    list[answer] = { e = 'unanswered', t = list[answer].t, client = event.client,
      call = list[sent].call, status = 'LK_UNSURE', copies = 1 }
    table.insert(list, answer + 1, { e = 'end', t = list[answer].t, client = event.client,
      lock = event.lock, caller = event.caller, op = 'acquire', status = 'LK_UNREACHABLE' })
    assert.equal(event.owner, list[sent].args[2], begun)
    return answer + 1, 'is not undone'
  end)

  it('is refused where a line is no event', function()
    local result = traces.check({ REAL[1], 'nonsense' })

    assert.equal(2, result.finding.line)
  end)
end)

describe('a trace whose lines are events', function()
  local list

  local function first(members)
    for _, event in ipairs(list) do
      local matches = true
      for name, value in pairs(members) do
        matches = matches and event[name] == value
      end
      if matches then
        return event
      end
    end
  end

  before_each(function()
    list = events(REAL)
  end)

  for title, case in pairs({
    ['an acquire under a name without a number'] = { function()
      first({ e = 'begin' }).owner = 'me'
    end, 'me is no name of a hold' },
    ['another name without a number'] = { function()
      table.insert(list, 3, { e = 'name', t = list[2].t, client = 'c1', lock = 'lock:orders',
        caller = 1, owner = 'lk-c1' })
    end, 'lk-c1 is no name of a hold' },
    ['a call without keys'] = { function()
      first({ e = 'sent' }).keys = {}
    end, 'the key is not of this lock' },
    ['a reply without elements'] = { function()
      first({ e = 'replied' }).reply = {}
    end, 'this is no reply of lock/acquire' },
    ['a reply of texts'] = { function()
      first({ e = 'replied' }).reply = { '1', '1' }
    end, 'this is no reply of lock/acquire' },
    ['a refusal that does not say for how long'] = { function()
      first({ e = 'replied' }).reply = { 0 }
    end, 'this is no reply of lock/acquire' },
    ['a heartbeat that is no number'] = { function()
      list = { first({ e = 'trace' }), first({ e = 'begin' }), first({ e = 'sent' }) }
      list[2].lock, list[3].script = 'fair:orders', 'fair/acquire'
      list[3].args = { '240', 'lk-c1:1', '1', '300000', 'soon', 'lk-c1', '1', 'c', 'PUBLISH' }
    end, 'the heartbeat is no number' },
  }) do
    it('is refused with ' .. title, function()
      case[1]()
      local finding = traces.check_events(list).finding

      assert.is_table(finding)
      assert.equal(case[2], finding.message)
      assert.is_nil(finding.malformed)
    end)
  end
end)
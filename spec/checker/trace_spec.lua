-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local trace = require('checker.trace')

local START = '{"e":"trace","t":1000,"client":"c1","version":1}'
local BEGIN = '{"e":"begin","t":1010,"client":"c1","lock":"lock:orders","caller":7,"op":"acquire",'
  .. '"wait_ms":-1,"lease_ms":30000,"drift_ms":302,"renew":true}'
local OF = '"client":"c1","lock":"lock:orders","caller":7'

local function event(name, time, more)
  return ('{"e":"%s","t":%d,%s,%s}'):format(name, time, OF, more)
end

local function sent(time, call, script, args, copy)
  return event('sent', time, ('"call":%d,"copy":%d,"script":"%s","keys":["orders"],"args":[%s]')
    :format(call, copy or 1, script, args))
end

local ACQUIRE = sent(2000, 1, 'lock/acquire', '"30000","lk-c1:1","1"')
local RELEASE = '"30000","lk-c1:1","0","redisson_lock__channel:{orders}","PUBLISH"'

local function check(...)
  local lines, i = { START, BEGIN, ... }, 0
  return trace.check(function()
    i = i + 1
    return lines[i]
  end, helper.scripts)
end

describe('a trace', function()
  it('of an acquire, a renewal and a release is one of the model', function()
    local result = check(ACQUIRE, event('replied', 3000, '"call":1,"reply":[1,1]'),
      event('deadline', 3001, '"owner":"lk-c1:1","until":29700000'),
      event('end', 3002, '"op":"acquire","status":"LK_OK"'),
      sent(10002000, 2, 'lock/renew', '"30000","lk-c1:1"'),
      event('replied', 10003000, '"call":2,"reply":[1]'),
      event('begin', 10004000, '"op":"release"'), sent(10004001, 3, 'lock/release', RELEASE),
      event('replied', 10005000, '"call":3,"reply":[1,0]'),
      event('end', 10005001, '"op":"release","status":"LK_OK"'))

    assert.is_nil(result.finding)
    assert.equal(12, result.steps)
  end)

  it('that listens, and tries again before it sleeps, is one of the model', function()
    local result = check(ACQUIRE, event('replied', 3000, '"call":1,"reply":[0,9000]'),
      event('listening', 4000, '"channel":"c"'),
      sent(4100, 2, 'lock/acquire', '"30000","lk-c1:1","1"'),
      event('replied', 5000, '"call":2,"reply":[1,1]'),
      event('end', 5001, '"op":"acquire","status":"LK_OK"'))

    assert.is_nil(result.finding)
  end)

  local function refuses(title, line, ...)
    local lines = { ... }
    it('is refused where ' .. title, function()
      local result = check(unpack(lines))

      assert.equal(line, result.finding and result.finding.line)
    end)
  end

  refuses('a deadline is too late', 5, ACQUIRE, event('replied', 3000, '"call":1,"reply":[1,1]'),
    event('deadline', 3001, '"owner":"lk-c1:1","until":30003000'))
  refuses('the second try does not wait for the subscription', 5, ACQUIRE,
    event('replied', 3000, '"call":1,"reply":[0,9000]'),
    sent(3100, 2, 'lock/acquire', '"30000","lk-c1:1","1"'))
  refuses('a renewal is early', 5, ACQUIRE, event('replied', 3000, '"call":1,"reply":[1,1]'),
    sent(5000000, 2, 'lock/renew', '"30000","lk-c1:1"'))
  refuses('an acquire ends well that was refused', 5, ACQUIRE,
    event('replied', 3000, '"call":1,"reply":[0,9000]'),
    event('end', 3001, '"op":"acquire","status":"LK_OK"'))
  refuses('a release ends well whose copy found nothing', 8, ACQUIRE,
    event('replied', 3000, '"call":1,"reply":[1,1]'), sent(4001, 3, 'lock/release', RELEASE),
    sent(4501, 3, 'lock/release', RELEASE, 2), event('replied', 5000, '"call":3,"reply":[-1]'),
    event('end', 5001, '"op":"release","status":"LK_OK"'))
  refuses('a line is no event', 3, 'nonsense')
end)

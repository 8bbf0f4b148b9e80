-- SPDX-License-Identifier: Apache-2.0
-- What was wrong with plain locks, and all that have their owners in a hash, once.
local helper = require('helper')

describe('a lock that others read or write', function()
  local keys = { job = 'job', counter = 'redisson_lock_token:{job}' }
  local before = {
    job = helper.hash({ mode = 'read', ['lk-bob:1'] = '1' }, 30000),
    ['{job}:lk-bob:1:rwlock_timeout:1'] = helper.string('1', 30000),
  }
  local fenced = { keys.job, keys.counter }
  local fair = { 'job', 'redisson_lock_queue:{job}', 'redisson_lock_timeout:{job}',
    'latchkey_fair:{job}' }
  local channel = 'redisson_lock__channel:{job}'
  local world

  before_each(function()
    world = helper.world()
    helper.fill(world, before)
  end)

  -- "mode" is a field of the hash: it was taken for an owner, with a hold of its own.
  for script, call in pairs({
    ['lock/acquire'] = { { 'job' }, { 30000, 'mode', 1 } },
    ['lock/acquire_all'] = { { 'job' }, { 30000, 'mode', 1 } },
    ['lock/renew'] = { { 'job' }, { 30000, 'mode' } },
    ['lock/release'] = { { 'job' }, { 30000, 'mode', 0, channel, 'PUBLISH' } },
    ['lock/transfer'] = { { 'job' }, { 30000, 'mode', 'lk-ann:1' } },
    ['lock/release_after'] = { { 'job' }, { 30000, 'mode', 'lk-ann:1', channel, 'PUBLISH' } },
    ['lock/break'] = { { 'job' }, { 'mode', channel, 'PUBLISH' } },
    ['fenced/acquire'] = { fenced, { 30000, 'mode', 1 } },
    ['fenced/transfer'] = { fenced, { 30000, 'mode', 'lk-ann:1' } },
    ['fenced/break'] = { fenced, { 'mode', channel, 'PUBLISH' } },
    ['fair/acquire'] = { fair,
      { 30000, 'mode', 1, 300000, 5000, 'lk-ann', 1, channel, 'PUBLISH' } },
    ['fair/wait_renew'] = { fair, { 30000, 'mode', 5000, channel, 'PUBLISH' } },
    ['fair/wait_renew_all'] = { fair, { 5000, channel, 'PUBLISH', 'lk-ann:1', 'mode' } },
    ['lock/release_all'] = { { 'job' }, { 30000, 'mode', 0, 'PUBLISH', channel } },
    ['fair/release'] = { fair, { 30000, 'mode', 0, channel, 'PUBLISH' } },
    ['fair/break'] = { fair, { 'mode', channel, 'PUBLISH' } },
    ['fair/leave'] = { fair, { 'mode', channel, 'PUBLISH' } },
    ['guard/call'] = { { 'job', 'latchkey_seq:{job}:c1', '{job}:target' },
      { 'mode', 'c1', 1, 'SET', 'x' } },
    ['guard/remove'] = { { 'job', 'latchkey_seq:{job}:c1', '{job}:target' },
      { 'mode', 'c1', 1, 'UNLINK' } },
  }) do
    it('has no owner that is called mode: ' .. script, function()
      assert.refused('LKARG', 'mode', world:eval(script, call[1], call[2]))

      assert.left(world, before)
    end)
  end
end)

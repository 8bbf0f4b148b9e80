-- SPDX-License-Identifier: Apache-2.0
-- Callers that write and read the same lock: down from writing to reading, and never up.
local both = require('latchkey.checker.roles.both')
local checker = require('latchkey.checker')
local helper = require('helper')
local mutated = require('support.mutated')

local function check(options, model)
  options.scripts = options.scripts or helper.scripts
  options.clients, options.rounds = options.clients or 2, 1
  options.limits = { both = options.both or 1, renewals = 1 }
  return checker.check(model or 'rw', options)
end

local function found(script, text, by, clients)
  local finding = check({ scripts = mutated(finally, 'rw', script, text, by), faults = 0,
    clients = clients }).findings[1]
  return finding and finding.property
end

describe('callers that write and read', function()
  it('keep every promise', function()
    for callers, kinds in ipairs({ { 'crash', 'silence' }, { 'crash' } }) do
      local verdict = check({ both = callers, kinds = kinds })

      assert.same({}, verdict.findings)
      assert.is_true(verdict.complete)
      assert.is_true(verdict.covered['rw/write_acquire']['{-2}'])
    end
  end)

  it('are never told to wait for themselves when they ask to write', function()
    assert.equal('G6', found('write_acquire', 'return {-2}', 'return {0, 1}'))
  end)

  it('nor when they read beside their writing', function()
    assert.equal('G6', found('read_acquire', "mode == 'write' and found[3]", 'false'))
  end)

  it('read on when they write no more', function()
    assert.equal('G4', found('write_release', "if longest_ms == -2 then\n  redis.call('DEL'",
      "if longest_ms then\n  redis.call('DEL'"))
  end)

  it('let other readers in then, and tell them', function()
    assert.equal('G6', found('write_release', "tell(channel, publish, '1')\nreturn", 'return', 2))
  end)

  it('are told that they read no more, and not that they had lost it', function()
    assert.equal('G5', found('read_release', 'if count then',
      "if count and found[1] == 'read' then", 1))
  end)

  it('write on when they read no more', function()
    assert.equal('G4', found('read_release', "if found[1] == 'read' then",
      "if found[1] then"))
  end)
end)

describe('a wrong caller is found:', function()
  it('one that writes on when it only reads', function()
    local rw, model = checker.model('rw'), {}
    for name, value in pairs(rw) do
      model[name] = value
    end
    local role = both.role(rw.roles.writer.row)
    role.believes = function(c)
      return (c.deadline or c.side_deadline) and 'write' or nil
    end
    model.roles = { both = role, reader = rw.roles.reader }

    assert.equal('G2', check({ faults = 0 }, model).findings[1].property)
  end)
end)

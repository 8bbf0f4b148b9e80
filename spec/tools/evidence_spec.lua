-- SPDX-License-Identifier: Apache-2.0
-- What a statement says of scripts, and when it is not believed.
local cjson = require('cjson')

local bundle = require('latchkey.bundle')
local catalog = require('latchkey.script.catalog')
local evidence = require('latchkey.bundle.evidence')
local helper = require('helper')

local ABOUT = { version = '0.1.0', commit = 'c0ffee', date = '2026-11-22T00:00:00Z' }
local FOLDER = helper.root .. '/scripts'
local PARTS = { { name = 'lint', command = 'latchkey lint', exact = true, minutes = 1,
  says = '0 findings', figures = { findings = 0 } },
  { name = 'faults', command = 'tools/faults', exact = false, minutes = 20, says = 'nothing' } }

describe('evidence', function()
  local scripts

  before_each(function()
    scripts = catalog.read(FOLDER)
  end)

  local function written(parts)
    return evidence.write(ABOUT, scripts, parts or PARTS, { 'not made: mutants' })
  end

  -- The statement as somebody else would have changed it.
  local function changed(change)
    local statement = cjson.decode(written())
    change(statement)
    return evidence.read(cjson.encode(statement), scripts)
  end

  it('is a statement of in-toto about each script', function()
    local statement = cjson.decode(written())

    assert.equal('https://in-toto.io/Statement/v1', statement._type)
    assert.equal(#scripts, #statement.subject)
    assert.equal('scripts/' .. scripts[1].name .. '.lua', statement.subject[1].name)
    assert.equal(scripts[1].sha1, statement.subject[1].digest.sha1)
    assert.equal(64, #statement.subject[1].digest.sha256)
  end)

  it('is the same bytes whenever it says the same', function()
    assert.equal(written(), written())
  end)

  it('is read again as it was written', function()
    assert.same(cjson.decode(written()), evidence.read(written(), scripts))
  end)

  it('is shown with its commands, and with what it does not cover', function()
    local shown = evidence.table(evidence.read(written(), scripts))

    assert.matches('lint +0 findings +findings 0\n +latchkey lint\n', shown)
    assert.matches('not covered:\n  not made: mutants\n', shown)
    for _, text in ipairs(evidence.NOT_COVERED) do
      assert.truthy(shown:find(text, 1, true))
    end
  end)

  for title, case in pairs({
    ['other bytes of a script'] = { function(statement)
      statement.subject[3].digest.sha256 = ('0'):rep(64)
    end, 'other bytes of scripts/' },
    ['a script less'] = { function(statement)
      table.remove(statement.subject, 3)
    end, 'says nothing about scripts/' },
    ['a script more'] = { function(statement)
      table.insert(statement.subject, { name = 'scripts/a/b.lua', digest = {} })
    end, 'scripts/a/b.lua, which is not there' },
    ['another form'] = { function(statement)
      statement.predicateType = 'urn:latchkey:evidence:2'
    end, 'no statement that this version knows' },
    ['a subject that is no object'] = { function(statement)
      table.insert(statement.subject, 1)
    end, 'no statement that this version knows' },
    ['a figure that is no number'] = { function(statement)
      statement.predicate.parts[1].figures.findings = 'none'
    end, 'no statement that this version knows' },
    ['a control character that is none of ASCII'] = { function(statement)
      statement.predicate.parts[1].says = 'well\194\1552J'
    end, 'no statement that this version knows' },
    ['a figure without a name'] = { function(statement)
      statement.predicate.parts[1].figures = { 1, 2 }
    end, 'no statement that this version knows' },
    ['bounds that are no text'] = { function(statement)
      statement.predicate.parts[1].bounds = { clients = 2 }
    end, 'no statement that this version knows' },
    ['control characters in bounds'] = { function(statement)
      statement.predicate.parts[1].bounds = 'clients=2\27[2J'
    end, 'no statement that this version knows' },
    ['control characters in the name of a figure'] = { function(statement)
      statement.predicate.parts[1].figures['\27[2J'] = 1
    end, 'no statement that this version knows' },
    ['control characters'] = { function(statement)
      statement.predicate.parts[1].says = 'well\27[2J'
    end, 'no statement that this version knows' },
  }) do
    it('is refused with ' .. title, function()
      local statement, why = changed(case[1])

      assert.is_nil(statement)
      assert.truthy(why:find(case[2], 1, true), why)
    end)
  end

  it('is refused with a figure that JSON has no number for', function()
    local statement, why = evidence.read(written():gsub('"findings": 0', '"findings": 1e999', 1),
      scripts)

    assert.is_nil(statement)
    assert.matches('no statement that this version knows', why)
  end)

  it('travels in a bundle, which refuses what is about other scripts', function()
    local about = { name = 'mine', version = '1.0.0' }
    local contents = assert(bundle.pack(about, FOLDER, nil, written()))
    assert.equal('c0ffee', contents.statement.predicate.toolkit.commit)

    table.remove(scripts)
    local _, why = bundle.pack(about, FOLDER, nil, written())
    assert.matches('says nothing about scripts/', why)
  end)

  it('comes out the same when its exact parts are made again, and the others are not', function()
    local rows = evidence.redo(evidence.read(written(), scripts), FOLDER)

    assert.same({ { name = 'lint', command = 'latchkey lint', outcome = 'the same', again = true,
      differs = false },
      { name = 'faults', command = 'tools/faults', again = false, differs = false,
        outcome = 'not made again: run the command in a clone' } }, rows)
  end)

  it('differs when it said what does not come out', function()
    local exact = { { name = 'lint', make = function(folder)
      assert.equal(FOLDER, folder)
      return { says = '0 findings', figures = { findings = 1 } }
    end } }

    local rows = evidence.redo(evidence.read(written(), scripts), FOLDER, exact)

    assert.is_true(rows[1].differs)
    assert.equal('was findings 0 (-), is findings 1 (-)', rows[1].outcome)
  end)

  it('has the verdict, the bounds and the states of the checker', function()
    local parts = evidence.make(FOLDER, function(name) return name == 'check mutex' end)

    assert.equal(1, #parts)
    assert.equal('exhaustive', parts[1].says)
    assert.equal('clients=2 faults=1 rounds=2', parts[1].bounds)
    assert.is_true(parts[1].figures.states > 10000)
  end)
end)

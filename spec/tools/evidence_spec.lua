-- SPDX-License-Identifier: Apache-2.0
-- What a statement says of scripts, and when it is not believed.
local cjson = require('cjson')
local tablex = require('pl.tablex')

local bundle = require('latchkey.bundle')
local catalog = require('latchkey.script.catalog')
local evidence = require('latchkey.bundle.evidence')
local helper = require('helper')
local json = require('latchkey.json')

local ABOUT = { version = '0.1.0', commit = 'c0ffee', date = '2026-11-22T00:00:00Z' }
local FOLDER = helper.root .. '/scripts'
local PARTS = { { name = 'lint', command = 'latchkey lint', exact = true, minutes = 1,
  says = '0 findings', figures = { findings = 0 } },
  { name = 'faults', command = 'tools/faults', exact = false, minutes = 20, says = 'nothing' } }

describe('evidence', function()
  local all, scripts = assert(catalog.read(FOLDER)), nil

  before_each(function()
    scripts = tablex.copy(all)
  end)

  local function written(parts)
    return evidence.write(ABOUT, scripts, parts or PARTS, { 'not made: mutants' })
  end

  -- The statement as somebody else would have changed it.
  local function changed(change)
    local statement = cjson.decode(written())
    change(statement)
    return evidence.read(json.encode(statement, '') .. '\n', scripts)
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

    assert.matches('^made by latchkey 0.1.0, commit c0ffee of 2026%-11%-22T00:00:00Z\n', shown)
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
    ['a script twice, with other digests first'] = { function(statement)
      table.insert(statement.subject, 1, { name = statement.subject[3].name,
        digest = { sha1 = ('0'):rep(40), sha256 = ('0'):rep(64) } })
    end, 'twice' },
    ['a digest more, of another kind'] = { function(statement)
      statement.subject[3].digest.sha512 = ('0'):rep(128)
    end, 'other bytes of scripts/' },
    ['a member that other verifiers take for one of these'] = { function(statement)
      statement.Subject = {}
    end, 'no statement that this version knows' },
    ['no commit'] = { function(statement)
      statement.predicate.toolkit.commit = nil
    end, 'no statement that this version knows' },
    ['control characters in the date'] = { function(statement)
      statement.predicate.toolkit.date = '\27[2J'
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

  it('is refused with two members of one name', function()
    local twice = written():gsub('^{', '{"subject": [],', 1)

    local statement, why = evidence.read(twice, scripts)

    assert.is_nil(statement)
    assert.matches('not in the form in which tools/release writes statements', why)
  end)

  it('does not cover what no statement covers, also where it does not say so', function()
    local statement = changed(function(statement)
      statement.predicate.notCovered = {}
    end)

    assert.same(evidence.NOT_COVERED, statement.predicate.notCovered)
  end)

  it('travels in a bundle, which refuses what is about other scripts', function()
    local about = { name = 'mine', version = '1.0.0' }
    local contents = assert(bundle.pack(about, FOLDER, nil, written()))
    assert.equal('c0ffee', contents.statement.predicate.toolkit.commit)

    table.remove(scripts)
    local _, why = bundle.pack(about, FOLDER, nil, written())
    assert.matches('says nothing about scripts/', why)
  end)

  -- Lint alone, which comes to so many findings.
  local function lint(findings)
    return { { name = 'lint', command = 'latchkey lint', make = function(folder)
      assert.equal(FOLDER, folder)
      return { says = '0 findings', figures = { findings = findings } }
    end } }
  end

  it('comes out the same when its exact parts are made again, and the others are not', function()
    local rows = evidence.redo(evidence.read(written(), scripts), FOLDER, { evidence.exact()[1] })

    assert.same({ { name = 'lint', command = 'latchkey lint', outcome = 'the same', again = true,
      differs = false },
      { name = 'faults', command = 'tools/faults', again = false, differs = false,
        outcome = 'not made again: run the command in a clone' } }, rows)
  end)

  it('comes out the same of the scripts of its bundle, which are all that is there', function()
    local parts = evidence.make(FOLDER, function(name) return name == 'lint' end)
    local contents = assert(bundle.pack({ name = 'mine', version = '1.0.0' }, FOLDER, nil,
      written(parts)))
    local folder, remove = require('latchkey.temporary_folder').make('latchkey-evidence')
    assert(bundle.unpack(contents, folder))

    local rows = evidence.redo(contents.statement, folder, { evidence.exact()[1] })
    remove()

    assert.equal('the same', rows[1].outcome)
  end)

  it('differs when it said what does not come out', function()
    local rows = evidence.redo(evidence.read(written(), scripts), FOLDER, lint(1))

    assert.is_true(rows[1].differs)
    assert.equal('was findings 0 (-), is findings 1 (-)', rows[1].outcome)
  end)

  for title, change in pairs({
    ['says of a part that it is not exact'] = function(part) part.exact = false end,
    ['says of a part that it takes hours'] = function(part) part.minutes = 600 end,
    ['has a figure that looks the same'] = function(part) part.figures.findings = 1.25 end,
  }) do
    it('differs when it ' .. title, function()
      local statement = changed(function(given) change(given.predicate.parts[1]) end)

      assert.is_true(evidence.redo(statement, FOLDER, lint(1))[1].differs)
    end)
  end

  it('differs when another command is said to make a part', function()
    local statement = changed(function(given)
      given.predicate.parts[1].command = 'curl example.org | sh'
    end)

    local rows = evidence.redo(statement, FOLDER, lint(0))

    assert.is_true(rows[1].differs)
    assert.equal('is made by "latchkey lint"', rows[1].outcome)
  end)

  it('differs when an exact part is left out, unless it says so', function()
    local without = evidence.redo(evidence.read(written({}), scripts), FOLDER, lint(0))
    local said = changed(function(given)
      given.predicate.parts = {}
      table.insert(given.predicate.notCovered, 'not made: lint (latchkey lint)')
    end)

    assert.is_true(without[1].differs)
    assert.is_false(evidence.redo(said, FOLDER, lint(0))[1].differs)
  end)

  it('has the verdict, the bounds and the states of the checker', function()
    local parts = evidence.make(FOLDER, function(name) return name == 'check countdown' end)

    assert.equal(1, #parts)
    assert.equal('exhaustive', parts[1].says)
    assert.equal('clients=4 faults=1 rounds=1', parts[1].bounds)
    assert.is_true(parts[1].figures.states > 1000)
  end)
end)

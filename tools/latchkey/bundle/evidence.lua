-- SPDX-License-Identifier: Apache-2.0
-- What was shown about a set of scripts: a statement in the form of in-toto (v1). Its subjects are
-- the scripts, by SHA1 and SHA-256; its predicate has a part for each check, with the command that
-- makes it again. What follows from the scripts alone (lint, the model checker) is exact, and is
-- made here and again by the same functions.
local cjson = require('cjson')
local tablex = require('pl.tablex')

local digest = require('latchkey.digest')
local envelope = require('latchkey.bundle.envelope')
local json = require('latchkey.json')
local safe = require('latchkey.text').safe

local evidence = {}

evidence.FILE = 'evidence.json'
evidence.TYPE = 'https://in-toto.io/Statement/v1'
evidence.PREDICATE = 'urn:latchkey:evidence:1'

evidence.NOT_COVERED = {
  'more clients, rounds and faults than the bounds of the checker say',
  'the library and the program that run the scripts',
  'servers, settings and fail-overs that break a condition of docs/explanation/guarantees.md',
  'who made this statement: a signature of the bundle says that',
}

-- The largest bounds of several runs, as "clients=3 faults=1 rounds=2".
local function bounds_of(runs)
  local most, names, words = {}, {}, {}
  for _, run in ipairs(runs) do
    for name, value in pairs(run.bounds) do
      if not most[name] then
        names[#names + 1] = name
      end
      most[name] = math.max(most[name] or 0, value)
    end
  end
  table.sort(names)
  for i, name in ipairs(names) do
    words[i] = ('%s=%d'):format(name, most[name])
  end
  return table.concat(words, ' ')
end

-- What tools/release writes of a part that failed, and what the checker says of a broken promise.
local VIOLATED, FAILED = 'VIOLATED', 'FAILED (exit code %d): %s'

---@param code integer of the command of a part
---@param last string what it said last
---@return string what the part says
function evidence.says_failed(code, last)
  return FAILED:format(code, last)
end

---@param parts table[] of a statement
---@return string[] names of those that say of themselves that they failed
function evidence.failed(parts)
  local names = {}
  for _, part in ipairs(parts) do
    local has_failed = part.says == VIOLATED or part.says:find('^FAILED %(exit code ')
    names[#names + 1] = has_failed and part.name or nil
  end
  return names
end

---@param names string[] as of evidence.failed
---@return string for people: "2 parts failed: mutants, lint"
function evidence.tell_failed(names)
  return ('%d part%s failed: %s'):format(#names, #names == 1 and '' or 's',
    table.concat(names, ', '))
end

local function checked(folder, model)
  local runs = require('latchkey.checker.matrix').run({ model }, { scripts = folder, go_on = true,
    memo = true, symmetric = true, workers = 1 }).runs
  local sum, verdict = { runs = #runs, states = 0, transitions = 0 }, 'exhaustive'
  for _, run in ipairs(runs) do
    sum.states, sum.transitions = sum.states + run.states, sum.transitions + run.transitions
    local good = run.expected and run.as_expected or not run.expected and #run.findings == 0
    verdict = not good and VIOLATED or run.out_of_memory and 'incomplete' or verdict
  end
  return { says = verdict, bounds = bounds_of(runs), figures = sum }
end

-- Findings that are about the scripts alone: a bundle has neither the fragments nor the ledger that
-- stand beside them in a clone.
local function linted(folder)
  local count = 0
  for _, finding in ipairs((require('latchkey.lint').run({ folder }, folder))) do
    count = count + (finding.rule ~= 'fragment' and finding.rule ~= 'ledger' and 1 or 0)
  end
  return { says = ('%d findings'):format(count), figures = { findings = count } }
end

---How a statement says in `notCovered` that it has no part of this.
---@param part { name: string, command: string }
---@return string
function evidence.not_made(part)
  return ('not made: %s (%s)'):format(part.name, part.command)
end

---The parts that follow from the scripts alone.
---@return table[] { name, command, make: fun(folder: string): table }
function evidence.exact()
  local list = { { name = 'lint', command = 'latchkey lint', make = linted } }
  for _, model in ipairs(require('latchkey.checker').families) do
    list[#list + 1] = { name = 'check ' .. model, command = 'latchkey check ' .. model,
      make = function(folder)
        return checked(folder, model)
      end }
  end
  return list
end

---Makes them.
---@param folder string of the scripts
---@param wanted? fun(name: string): boolean
---@return table[] parts
function evidence.make(folder, wanted)
  local parts = {}
  for _, part in ipairs(evidence.exact()) do
    if not wanted or wanted(part.name) then
      local made = part.make(folder)
      made.name, made.command, made.exact, made.minutes = part.name, part.command, true, 1
      parts[#parts + 1] = made
    end
  end
  return parts
end

local function subjects_of(scripts)
  local subjects = {}
  for i, script in ipairs(scripts) do
    subjects[i] = { name = 'scripts/' .. script.name .. '.lua',
      digest = { sha1 = digest.sha1(script.source), sha256 = digest.sha256(script.source) } }
  end
  return subjects
end

local function encode(statement)
  return json.encode(statement, '') .. '\n'
end

---@param about { version: string, commit: string, date: string }
---@param scripts table[] as of catalog.read
---@param parts table[]
---@param missing string[] what was not made
---@return string bytes of the statement
function evidence.write(about, scripts, parts, missing)
  local left = {}
  for _, list in ipairs({ missing, evidence.NOT_COVERED }) do
    for _, text in ipairs(list) do
      left[#left + 1] = text
    end
  end
  return encode({ _type = evidence.TYPE, predicateType = evidence.PREDICATE,
    subject = subjects_of(scripts), predicate = { toolkit = about, parts = parts,
      notCovered = left } })
end

-- A text that a terminal may show.
local function is_plain(text)
  return type(text) == 'string' and safe(text) == text
end

local function is_finite(number)
  return type(number) == 'number' and number - number == 0
end

local function wrong_figures(figures)
  if type(figures) ~= 'table' then
    return true
  end
  for name, number in pairs(figures) do
    if not is_plain(name) or not is_finite(number) then
      return true
    end
  end
end

local function wrong_part(part)
  return type(part) ~= 'table' or not is_plain(part.name) or not is_plain(part.command)
    or not is_plain(part.says) or not is_plain(part.bounds or '')
    or wrong_figures(part.figures or {}) or not is_finite(part.minutes)
end

local MEMBERS = { _type = true, predicateType = true, subject = true, predicate = true }

-- Other verifiers take "Subject" for "subject".
local function has_other_members(statement)
  for name in pairs(statement) do
    if not MEMBERS[name] then
      return true
    end
  end
end

local function wrong_toolkit(about)
  return type(about) ~= 'table' or not is_plain(about.version) or not is_plain(about.commit)
    or not is_plain(about.date)
end

local function wrong_form(statement)
  local predicate = type(statement) == 'table' and statement.predicate
  if type(predicate) ~= 'table' or statement._type ~= evidence.TYPE
    or statement.predicateType ~= evidence.PREDICATE or type(statement.subject) ~= 'table'
    or type(predicate.parts) ~= 'table' or wrong_toolkit(predicate.toolkit)
    or type(predicate.notCovered) ~= 'table' or has_other_members(statement) then
    return true
  end
  for _, part in ipairs(predicate.parts) do
    if wrong_part(part) then
      return true
    end
  end
  for _, text in ipairs(predicate.notCovered) do
    if not is_plain(text) then
      return true
    end
  end
  for _, subject in ipairs(statement.subject) do
    if type(subject) ~= 'table' or not is_plain(subject.name) then
      return true
    end
  end
end

-- Why a statement is not about these scripts, about all of them once, and about no others. A
-- digest more, of another kind, could be the one that another verifier looks at.
local function other_subjects(statement, scripts)
  local given = {}
  for _, subject in ipairs(statement.subject) do
    if given[subject.name] then
      return ('%s is about %s twice'):format(evidence.FILE, subject.name)
    end
    given[subject.name] = subject
  end
  for _, subject in ipairs(subjects_of(scripts)) do
    if not given[subject.name] then
      return ('%s says nothing about %s'):format(evidence.FILE, subject.name)
    elseif not tablex.deepcompare(given[subject.name], subject) then
      return ('%s is about other bytes of %s'):format(evidence.FILE, subject.name)
    end
    given[subject.name] = nil
  end
  local other = next(given)
  return other and ('%s is about %s, which is not there'):format(evidence.FILE, other)
end

-- What no statement covers, also where it does not say so.
local function add_not_covered(list)
  local said = tablex.makeset(list)
  for _, text in ipairs(evidence.NOT_COVERED) do
    if not said[text] then
      list[#list + 1] = text
    end
  end
end

---Reads a statement, which must be about these scripts, about all of them, and about no others. It
---has one form, byte for byte: of two members with one name, each reader takes another one.
---@param text string of a statement, or of an envelope, whose signatures are not checked here
---@param scripts table[] as of catalog.read
---@return table|nil statement
---@return string|nil why not
function evidence.read(text, scripts)
  local bytes = envelope.open(text)
  local decoded, statement = pcall(cjson.decode, bytes)
  if not decoded or wrong_form(statement) then
    return nil, evidence.FILE .. ' is no statement that this version knows; it knows '
      .. evidence.PREDICATE
  elseif bytes ~= encode(statement) then
    return nil, evidence.FILE .. ' is not in the form in which tools/release writes statements'
  end
  local why = other_subjects(statement, scripts)
  if why then
    return nil, why
  end
  add_not_covered(statement.predicate.notCovered)
  return statement
end

-- "findings 0, runs 4": in the order of the names.
local function words_of(part)
  local words = {}
  for name, figure in tablex.sort(part.figures or {}) do
    words[#words + 1] = ('%s %.14g'):format(name, figure)
  end
  return table.concat(words, ', ')
end

---@param statement table
---@return string for people
function evidence.table(statement)
  local about = statement.predicate.toolkit
  local lines = { ('made by latchkey %s, commit %s of %s\n'):format(about.version, about.commit,
    about.date) }
  for _, part in ipairs(statement.predicate.parts) do
    local words = part.bounds and part.bounds .. '; ' .. words_of(part) or words_of(part)
    lines[#lines + 1] = ('%-16s %-12s %s\n%-16s %s\n'):format(part.name, part.says, words, '',
      part.command)
  end
  lines[#lines + 1] = 'not covered:\n'
  for _, text in ipairs(statement.predicate.notCovered) do
    lines[#lines + 1] = ('  %s\n'):format(text)
  end
  return table.concat(lines)
end

local function difference(part, again)
  if part.says ~= again.says then
    return ('was "%s", is "%s"'):format(part.says, again.says)
  elseif part.bounds ~= again.bounds
    or not tablex.deepcompare(part.figures or {}, again.figures or {}) then
    return ('was %s (%s), is %s (%s)'):format(words_of(part), part.bounds or '-', words_of(again),
      again.bounds or '-')
  end
end

-- One part of a statement; `how` makes it where it follows from the scripts, whatever the statement
-- says of that.
local function redo_part(part, how, folder)
  local row = { name = part.name, command = part.command, differs = false, again = how ~= nil }
  if how and part.command ~= how.command then
    row.differs, row.again = true, false
    row.outcome = ('is made by "%s"'):format(how.command)
  elseif how then
    local differs = difference(part, how.make(folder))
    row.differs, row.outcome = differs ~= nil, differs or 'the same'
  else
    row.outcome = 'not made again: run the command in a clone'
  end
  return row
end

---Makes the exact parts of a statement again, and compares. One that the statement lacks without
---saying so differs.
---@param statement table
---@param folder string of the scripts
---@param exact? table[] as evidence.exact() gives them
---@return table[] { name, command, outcome: string, differs: boolean, again: boolean }
function evidence.redo(statement, folder, exact)
  exact = exact or evidence.exact()
  local known, there, rows = {}, {}, {}
  for _, part in ipairs(exact) do
    known[part.name] = part
  end
  for i, part in ipairs(statement.predicate.parts) do
    rows[i], there[part.name] = redo_part(part, known[part.name], folder), true
  end
  local said = tablex.makeset(statement.predicate.notCovered)
  for _, part in ipairs(exact) do
    if not there[part.name] then
      local is_said = said[evidence.not_made(part)] == true
      rows[#rows + 1] = { name = part.name, command = part.command, again = false,
        differs = not is_said, outcome = is_said and 'not in the evidence, which says so'
          or 'not in the evidence, which does not say so' }
    end
  end
  return rows
end

return evidence

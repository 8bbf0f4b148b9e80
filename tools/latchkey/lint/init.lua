-- SPDX-License-Identifier: Apache-2.0
-- Runs the rules over scripts.
local path = require('pl.path')
local stdlib = require('posix.stdlib')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local families = require('latchkey.lint.families')
local files = require('latchkey.files')
local ledger = require('latchkey.script.ledger')
local report = require('latchkey.report')
local script_of = require('latchkey.lint.script')

local lint = {}

-- Rules that other pieces report by their names.
lint.rules = {
  { id = 'file', wants = 'the file can be read' },
  { id = 'header', wants = 'the header follows its grammar' },
  { id = 'name', wants = 'a script is named like its file, and no two alike' },
  { id = 'syntax', wants = 'the code is Lua 5.1' },
  { id = 'dialect', wants = 'nothing that LuaJIT takes and Lua 5.1 reads otherwise or refuses' },
  { id = 'ledger', wants = 'a released version keeps its bytes; raise the version instead' },
  { id = 'sha1', wants = 'a contract is of the bytes that the script has' },
  { id = 'forms', wants = 'keys and channels of one name are formed alike in a family' },
}

-- What holds of everybody's scripts: what would fail or surprise on a server, and what their
-- contracts say. The other rules are the order of latchkey's house.
local EVERYBODYS = { bytes = true, globals = true, library = true, unpack = true, numbers = true,
  command = true, keys = true, derived = true, time = true, cost = true, owner = true,
  options = true }
local GROUPS = { 'form', 'language', 'contract', 'replies', 'calls', 'cost', 'foreign' }
for _, group in ipairs(GROUPS) do
  for _, rule in ipairs(require('latchkey.lint.' .. group)) do
    lint.rules[#lint.rules + 1] = rule
  end
end

local function applies(rule, script)
  if rule.of_contract and not script.contract
    or script.contract and not (rule.of_contract or EVERYBODYS[rule.id]) then
    return false
  elseif rule.needs == 'both' then
    return script.header and script.block
  end
  return rule.check and (not rule.needs or script[rule.needs])
end

local function check(file, source, home, add)
  local script, problems = script_of.read(file, source)
  script.home = home
  for _, problem in ipairs(problems) do
    add(problem.rule)(problem.line, problem.message)
  end
  for _, rule in ipairs(lint.rules) do
    if applies(rule, script) then
      rule.check(script, add(rule.id))
    end
  end
  return script
end

-- A sum of thousands is as deep as it is long, and servers take it.
local TOO_DEEP = 'an expression has too many terms for lint; split it'

local function too_deep_or_defect(err)
  return tostring(err):find('stack overflow', 1, true) and TOO_DEEP or debug.traceback(err, 2)
end

---One script.
---@param file string
---@param home? string the folder of the project's own scripts, for fragments a folder has not
---@return table[] findings
---@return table|nil script
function lint.file(file, home)
  local findings = {}
  local function add(rule)
    return function(line, message)
      local in_contract = type(line) == 'table'
      findings[#findings + 1] = { file = in_contract and line.contract or file,
        line = in_contract and line.line or line, rule = rule, message = message }
    end
  end

  local source, why = utils.readfile(file, true)
  if not source then
    add('file')(0, why)
    return findings
  end
  local good, script = xpcall(function()
    return check(file, source, home, add)
  end, too_deep_or_defect)
  if not good and script == TOO_DEEP then
    return { { file = file, line = 1, rule = 'syntax', message = TOO_DEEP } }
  end
  return findings, good and script or error(script, 0)
end

local function check_release(script, rows, add)
  local h = script.header
  local same, newest = ledger.find(rows, h.name, h.version)
  if same and same.sha1 ~= script.sha1 then
    add(script.path, h.lines.version, ('%s %s was released with other bytes; raise the version')
      :format(h.name, h.version))
  elseif newest and not same and not ledger.above(h.version, newest.version) then
    add(script.path, h.lines.version, ('%s is below the released %s'):format(h.version,
      newest.version))
  elseif not newest and h.version ~= '1.0.0' then
    add(script.path, h.lines.version, ('%s was never released; until then it stays 1.0.0'):format(
      h.name))
  end
end

-- Scripts of one folder against its ledger, if it has one.
local function check_ledger(root, scripts, findings)
  local file = path.join(root, ledger.FILE)
  local text = utils.readfile(file, true)
  if not text then
    return
  end
  local function add(name, line, message)
    findings[#findings + 1] = { file = name, line = line, rule = 'ledger', message = message }
  end

  local rows, problems = ledger.parse(text)
  for _, problem in ipairs(problems) do
    add(file, problem.line, problem.message)
  end
  local committed = ledger.committed(root)
  if committed and text:sub(1, #committed) ~= committed then
    add(file, 1, 'rows that were released have changed; the ledger only grows')
  end
  for _, script in ipairs(scripts) do
    check_release(script, rows, add)
  end
end

-- A file by its folder, whatever way leads there, and its own name.
local function identity(file)
  local folder = path.dirname(file)
  return path.join(stdlib.realpath(folder ~= '' and folder or '.') or folder, path.basename(file))
end

-- The files of all targets, each once, and what was passed over; what cannot be read is a finding.
local function expand(targets, findings)
  local list, all_passed_over, seen = {}, {}, {}
  for _, target in ipairs(targets) do
    local found, problems, passed_over = files.named({ target }, '.lua')
    for _, why in ipairs(problems) do
      findings[#findings + 1] = { file = target, line = 0, rule = 'file', message = why }
    end
    for _, file in ipairs(found) do
      local id = identity(file)
      list[#list + 1] = not seen[id] and file or nil
      seen[id] = true
    end
    tablex.insertvalues(all_passed_over, passed_over)
  end
  return list, all_passed_over
end

---Scripts and folders of scripts.
---@param targets string[]
---@param home? string the folder of the project's own scripts
---@return table[] findings sorted
---@return integer checked how many scripts
---@return string[] passed_over folders
function lint.run(targets, home)
  local findings = {}
  local list, passed_over = expand(targets, findings)
  local roots, by_root, names = {}, {}, {}
  for _, file in ipairs(list) do
    local found, script = lint.file(file, home)
    for _, finding in ipairs(found) do
      findings[#findings + 1] = finding
    end
    local h = script and script.header
    if h and names[h.name] then
      findings[#findings + 1] = { file = file, line = script.contract and 1 or h.lines.name,
        rule = 'name', message = ('%s is the name of %s too'):format(h.name, names[h.name]) }
    elseif h then
      names[h.name] = file
      if not by_root[script.root] then
        by_root[script.root] = {}
        roots[#roots + 1] = script.root
      end
      table.insert(by_root[script.root], script)
    end
  end
  for _, root in ipairs(roots) do
    check_ledger(root, by_root[root], findings)
    families.check(by_root[root], function(file, line, message)
      findings[#findings + 1] = { file = file, line = line, rule = 'forms', message = message }
    end)
  end
  return report.sort(findings), #list, passed_over
end

return lint

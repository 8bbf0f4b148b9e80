-- SPDX-License-Identifier: Apache-2.0
local tablex = require('pl.tablex')

local bundle = require('latchkey.bundle')
local cli = require('latchkey.cli')
local envelope = require('latchkey.bundle.envelope')
local evidence = require('latchkey.bundle.evidence')
local loaded = require('latchkey.servers.loaded')
local nodes = require('latchkey.servers.nodes')
local pages = require('latchkey.bundle.pages')
local targets = require('latchkey.servers.targets')
local trust = require('latchkey.bundle.trust')

local command = { summary = 'is a bundle whole, signed, and on the servers?', server = true }

function command.configure(parser)
  parser:argument('file', 'A bundle, as latchkey bundle writes it.')
  trust.options(parser)
  parser:flag('--evidence', 'Show what was shown about its scripts, and what not.')
  parser:option('--evidence-key', 'With --evidence: refuse what is not signed with this key '
    .. '(PEM; its public half).'):argname('FILE')
  parser:flag('--redo', 'With --evidence: make the parts again that follow from the scripts alone, '
    .. 'and the reference pages (some minutes), and compare.')
  parser:flag('--functions', 'With --url: check for its function libraries.')
  nodes.options(parser)
  parser:epilog('With --url, each server (and replica) must have exactly the bundle\'s scripts: '
    .. 'a line for each, and with --verbose one for each script that it lacks. '
    .. 'Exit code 1: refused, a server lacks some, or a part of the evidence failed or '
    .. 'differs; 2: a server could not be asked.')
end

-- The names of what a node lacks or has otherwise.
local function lacking(node)
  local names = {}
  for _, item in ipairs(node.plan.new) do
    names[#names + 1] = item.name
  end
  for _, list in ipairs({ node.plan.goes, node.plan.refused }) do
    for _, step in ipairs(list) do
      names[#names + 1] = step.wanted.name
    end
  end
  table.sort(names)
  return names
end

-- In one line: has it what the bundle has? With --verbose, a line for each script that it has not.
local function verdict(node, names, wanted, what, is_verbose)
  local lines = { ('%s: %s'):format(nodes.title(node), #names == 0
    and ('has all %d %s'):format(#wanted, what)
    or ('lacks or has otherwise %d of %d %s: %s'):format(#names, #wanted, what,
      loaded.first_of(names))) }
  for _, name in ipairs(is_verbose and names or {}) do
    lines[#lines + 1] = '  ' .. name
  end
  return table.concat(lines, '\n') .. '\n'
end

-- Rows for the document, words for people, exit code.
local function compare(ctx, list, target, wanted)
  require('latchkey.bundle.loader').plan(list, target, wanted)
  local rows, shown, lacks = {}, {}, false
  for i, node in ipairs(list) do
    local names = node.plan and lacking(node)
    rows[i] = nodes.plain(node, { missing = names })
    if names then
      lacks = lacks or #names > 0
      shown[#shown + 1] = verdict(node, names, wanted, target.what, ctx.verbose)
    end
  end
  local failed, first = nodes.tell(ctx, list)
  local code = lacks and cli.exits.found or failed > 0 and cli.exits.incomplete or cli.exits.done
  if failed == #list then
    code = ctx.exit_of(first.status)
  end
  return rows, table.concat(shown), code
end

-- The reference pages, which follow from the headers of the scripts and from this version.
local function redo_pages(contents)
  local wanted, other = {}, nil
  for name, page in pairs(pages.all(contents.scripts)) do
    wanted['docs/' .. name] = page
  end
  for _, files in ipairs({ wanted, contents.files }) do
    for file in tablex.sort(files) do
      if file:find('^docs/') and wanted[file] ~= contents.files[file] then
        other = other or file
      end
    end
  end
  return { name = 'pages', command = 'latchkey bundle', again = true, differs = other ~= nil,
    outcome = other and other .. ' is not what this version makes of the scripts' or 'the same' }
end

-- Makes parts again on the scripts of the bundle: rows for the document, words for people. Without
-- a folder for them nil, and why.
local function redo(contents)
  local folder, remove = require('latchkey.temporary_folder').make('latchkey-verify')
  if not folder then
    return nil, remove
  end
  local rows
  local done, why = bundle.unpack(contents, folder)
  if done then
    done, rows = pcall(evidence.redo, contents.statement, folder)
    why = not done and rows or nil
  end
  remove()
  assert(done, why)
  local lines, differs, again = {}, false, false
  for _, row in ipairs(rows) do
    again = again or row.again
  end
  rows[#rows + 1] = redo_pages(contents)
  for i, row in ipairs(rows) do
    lines[i] = ('%-16s %s\n'):format(row.name, row.outcome)
    differs = differs or row.differs
  end
  if not again then
    lines[#lines + 1], differs = 'nothing could be made again\n', true
  end
  return rows, 'made again:\n' .. table.concat(lines), differs
end

-- Who signed the evidence, in a sentence; else why it is not taken.
local function signed_by(contents, key)
  local text = contents.files[evidence.FILE]
  local _, signatures = envelope.open(text)
  if not key then
    return #signatures == 0 and 'evidence: not signed by itself'
      or 'evidence: its signature is not checked; give --evidence-key FILE'
  end
  local id, why = envelope.check(text, key)
  return id and 'evidence: signed with key ' .. id, why
end

-- What the evidence says: fields of the document, words for people, and exit code 1 where a part
-- failed or came out otherwise. nil and why where parts could not be made again.
local function tell_evidence(contents, about, again_too)
  local predicate = contents.statement.predicate
  local failed, rows, words, differs = evidence.failed(predicate.parts), nil, '', false
  if again_too then
    rows, words, differs = redo(contents)
    if not rows then
      return nil, words
    end
  end
  local shown = about .. '\n' .. evidence.table(contents.statement) .. words
  if #failed > 0 then
    shown = shown .. evidence.tell_failed(failed) .. '\n'
  end
  return { evidence = predicate, again = rows, failed = failed }, shown,
    (differs or #failed > 0) and cli.exits.found or nil
end

function command.run(args, ctx)
  if args.redo and not args.evidence then
    return ctx:misuse('--redo goes with --evidence')
  elseif args.evidence_key and not args.evidence then
    return ctx:misuse('--evidence-key goes with --evidence')
  end
  local contents, why, hint = trust.open(args.file, args)
  if contents and args.evidence and not contents.statement then
    contents, why = nil, args.file .. ' carries no evidence'
  end
  local signed
  if contents and args.evidence then
    signed, why = signed_by(contents, args.evidence_key)
    contents = signed and contents
  end
  if not contents then
    return trust.refuse(ctx, why, hint)
  end
  local rows, shown, code = {}, '', cli.exits.done
  -- The bundle alone is looked at unless a server is named here: LATCHKEY_URL is not asked.
  if args.url then
    local target = args.functions and targets.functions or targets.scripts
    local list, wrong = nodes.open(ctx)
    if not list then
      return wrong
    end
    rows, shown, code = compare(ctx, list, target, assert(target.wanted(contents.scripts)))
  end
  local fields = {}
  if args.evidence then
    local words, found
    fields, words, found = tell_evidence(contents, signed, args.redo)
    if not fields then
      return ctx:misuse('no folder for the scripts of the bundle: ' .. words)
    end
    shown, code = shown .. words, found or code
  end
  ctx:result({ file = args.file, name = contents.name, version = contents.version,
    sha256 = contents.sha256, scripts = #contents.scripts, signer = contents.signer,
    trust = contents.trust, nodes = rows, evidence = fields.evidence, again = fields.again,
    failed = fields.failed }, ('%s %s: %d scripts\nsha256 %s\n%s\n%s'):format(contents.name,
    contents.version, #contents.scripts, contents.sha256, contents.trust, shown))
  return code
end

return command

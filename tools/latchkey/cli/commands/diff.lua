-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')

local bundle = require('latchkey.bundle')
local catalog = require('latchkey.script.catalog')
local changes = require('latchkey.bundle.changes')
local cli = require('latchkey.cli')
local report = require('latchkey.report')
local trust = require('latchkey.bundle.trust')
local words = require('latchkey.text')

local command = { summary = 'what differs between two bundles or folders of scripts' }

function command.configure(parser)
  parser:argument('before', 'A bundle, or a folder of scripts.')
  parser:argument('after', 'Another.')
  parser:flag('--names', 'Only which scripts differ, not their texts.')
  parser:epilog('Says of each change whether the versions show it, as far as headers and contracts '
    .. 'show: a new text is a patch, an optional argument at the end a minor, other keys, '
    .. 'arguments or replies a major. Exit code 1: something differs.')
end

local function scripts_of(source)
  if path.isdir(source) then
    local scripts, findings = catalog.read(source)
    return scripts, findings and report.text(findings):gsub('\n$', '')
  end
  local bytes, why = bundle.bytes_of(source)
  local contents
  if bytes then
    contents, why = bundle.read(bytes)
  end
  return contents and contents.scripts, why and ('%s is refused: %s'):format(source, why)
end

local function title(change)
  if change.kind == 'changed' then
    return ('changed  %s %s -> %s\n'):format(change.name, change.old, change.new)
  end
  return ('%-8s %s %s\n'):format(change.kind, change.name, change.old or change.new)
end

function command.run(args, ctx)
  local sources, sides = { args.before, args.after }, {}
  for _, source in ipairs(sources) do
    if not path.exists(source) then
      return ctx:misuse(('there is no file or folder %s'):format(source))
    end
  end
  for i, source in ipairs(sources) do
    local why
    sides[i], why = scripts_of(source)
    if not sides[i] then
      return trust.refuse(ctx, why)
    end
  end

  local list = changes.between(sides[1], sides[2])
  local rows, shown = {}, {}
  for i, change in ipairs(list) do
    rows[i] = changes.plain(change)
    shown[#shown + 1] = title(change)
    if change.finding then
      shown[#shown + 1] = '  version: ' .. change.finding .. '\n'
    end
    if not args.names then
      local text, why = changes.text(change)
      if not text then
        return trust.refuse(ctx, why)
      end
      rows[i].text = text
      -- Whoever made the bundle may have written what a terminal obeys.
      shown[#shown + 1] = words.safe_lines(text)
    end
  end
  ctx:result({ changes = rows }, table.concat(shown))
  return #list > 0 and cli.exits.found or cli.exits.done
end

return command

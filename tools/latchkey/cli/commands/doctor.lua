-- SPDX-License-Identifier: Apache-2.0
local cli = require('latchkey.cli')
local fleet = require('latchkey.servers.fleet')
local nodes = require('latchkey.servers.nodes')
local scratch = require('latchkey.doctor.scratch')
local terminal = require('latchkey.cli.terminal')
local text = require('latchkey.text')

local command = { summary = 'is this server fit for locks?', server = true }

function command.configure(parser)
  parser:option('--user', 'Whose permissions are checked; by default those of the URL\'s user.')
  parser:option('--name', 'Of a lock that this user is to use: its keys and channels are '
    .. 'checked, too, and not only the commands.')
  parser:option('--family', 'Try and ask for this family alone, and not for all that the user may '
    .. 'use: ' .. table.concat(scratch.FAMILIES, ', ') .. '; may be given several times.')
    :argname('FAMILY'):choices(scratch.FAMILIES):count('*')
  parser:epilog('A lock of each family is taken and released, under a random name whose keys end '
    .. 'within a minute. The scripts of these are loaded, and three others at most, as by their '
    .. 'first use. Else nothing is changed. On a cluster every master is examined. Exit code 1: '
    .. 'there is a problem; notes are no problems, but good to know. 2: a master could not be '
    .. 'asked.')
end

local MARKS = { good = 'ok', note = 'note', problem = 'PROBLEM' }
local COLOURS = { good = '32', note = '33', problem = '31;1' }

local function shown(findings, target, is_coloured)
  local lines = { target }
  for _, finding in ipairs(findings) do
    local mark = ('%-7s'):format(MARKS[finding.level])
    if is_coloured then
      mark = ('\27[%sm%s\27[0m'):format(COLOURS[finding.level], mark)
    end
    lines[#lines + 1] = ('  %s  %-11s  %s'):format(mark, finding.check, text.safe(finding.message))
    if finding.advice then
      lines[#lines + 1] = (' '):rep(24) .. '-> ' .. text.safe(finding.advice)
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

-- Examines every master: { target, findings, err } of each.
local function examine(client, ctx, options)
  local masters, err = fleet.masters(client)
  local list = {}
  for i, master in ipairs(masters or {}) do
    list[i] = { target = master:target() }
    list[i].findings, list[i].err = require('latchkey.doctor').examine(client, master, ctx.home,
      options)
    options.show(nil)
  end
  return masters and list, err
end

-- The findings for JSON; of several servers each says of which.
local function documents(findings, at)
  local list, problems = {}, 0
  for i, finding in ipairs(findings) do
    problems = problems + (finding.level == 'problem' and 1 or 0)
    list[i] = { check = finding.check, level = finding.level, message = text.safe(finding.message),
      advice = finding.advice and text.safe(finding.advice), node = at }
  end
  return list, problems
end

local function report(ctx, client, list)
  local rows, texts, problems = {}, {}, 0
  for i, part in ipairs(list) do
    local found, count = documents(part.findings or {}, #list > 1 and part.target or nil)
    problems = problems + count
    for _, row in ipairs(found) do
      rows[#rows + 1] = row
    end
    texts[i] = part.findings and shown(part.findings, part.target, terminal.has_colours()) or ''
  end
  local failed = {}
  for _, part in ipairs(list) do
    failed[#failed + 1] = part.err and part or nil
  end
  ctx:result({ target = client:target(), findings = rows, problems = problems,
    failed = nodes.failed(failed) }, table.concat(texts))
  nodes.tell(ctx, failed)
  return problems > 0 and cli.exits.found or #failed > 0 and cli.exits.incomplete or cli.exits.done
end

function command.run(args, ctx)
  local client, code = ctx:client_for(args.name)
  if not client then
    return code
  end
  local topology = fleet.topology(client:target())
  local options = { user = args.user, name = args.name, families = args.family,
    topology = topology, show = terminal.progress(ctx) }
  local list, err = examine(client, ctx, options)
  local reached = false
  for _, part in ipairs(list or {}) do
    err, reached = err or part.err, reached or #part.findings > 0
  end
  if not reached then
    return ctx:fail(err)
  end
  local around = require('latchkey.doctor').around(client, ctx.home, ctx:url(), options,
    list)
  if #list > 1 then
    table.insert(list, { target = client:target() })
  end
  local last = list[#list]
  last.findings = last.findings or {}
  for _, finding in ipairs(around) do
    table.insert(last.findings, finding)
  end
  return report(ctx, client, list)
end

command.several = {
  whole = function(codes, count)
    local several = require('latchkey.cli.several')
    local good = several.count(codes, cli.exits.done)
    return ('%d of %d servers are fit for locks; a majority needs %d'):format(good, count,
      several.quorum(count))
  end,
}

return command

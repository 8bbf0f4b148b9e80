-- SPDX-License-Identifier: Apache-2.0
-- Manual pages in mdoc(7), from the models of the commands.
local pretty = require('pl.text')

local exits = require('latchkey.cli.exits')

local man = {}

-- Marks are added to some lines after that.
local WIDTH = 72

-- Text on lines of its own: nothing in it is a macro, a sentence starts a line, and none is long.
local function flow(out, text)
  text = text:gsub('%s+', ' '):gsub('([%.%?!]) (%u)', '%1\n%2')
  for sentence in text:gmatch('[^\n]+') do
    for line in pretty.wrap(sentence, WIDTH):iter() do
      line = line:gsub('\\', '\\e'):gsub("^[.']", '\\&%0'):gsub('%-%-', '\\-\\-')
        :gsub('(%a)%(%)', '%1\\&()')
      out[#out + 1] = line
    end
  end
end

local function verbatim(out, text)
  out[#out + 1] = '.Bd -literal'
  for line in text:gmatch('[^\n]+') do
    out[#out + 1] = line:gsub('\\', '\\e'):gsub("^[.']", '\\&%0'):gsub('%-', '\\-')
  end
  out[#out + 1] = '.Ed'
end

local function item_of(row)
  if not row.names then
    return '.It Ar ' .. row.label
  end
  local words = {}
  for i, name in ipairs(row.names) do
    local flag = name:gsub('^%-', ''):gsub('^%-', '\\-')
    words[i] = 'Fl ' .. flag .. (row.value and ' Ar ' .. row.value or '')
  end
  return '.It ' .. table.concat(words, ' , ')
end

local function rows(out, list)
  out[#out + 1] = '.Bl -tag -width Ds'
  for _, row in ipairs(list) do
    out[#out + 1] = item_of(row)
    flow(out, row.text)
    if row.choices and not row.text:find(row.choices[#row.choices], 1, true) then
      flow(out, 'One of ' .. table.concat(row.choices, ', ') .. '.')
    end
  end
  out[#out + 1] = '.El'
end

local function header(title, section, name, summary, date)
  return { '.Dd ' .. date, ('.Dt %s %d'):format(title:upper(), section), '.Os', '.Sh NAME',
    '.Nm ' .. name, '.Nd ' .. summary:gsub('%?$', '') }
end

man.flow, man.header, man.verbatim = flow, header, verbatim

local function environment(out)
  out[#out + 1] = '.Sh ENVIRONMENT'
  rows(out, {
    { label = 'LATCHKEY_URL', text = 'The server, where --url names none. There is no default.' },
    { label = 'LATCHKEY_PASSWORD', text = 'Its password, out of the process list; not '
      .. 'that of local:, which has none.' },
    { label = 'LATCHKEY_LOCAL_DIR', text = 'The folder of the server that local: means.' },
    { label = 'LATCHKEY_HOME', text = 'The folder of scripts and tools, where they are not beside '
      .. 'the program.' },
    { label = 'NO_COLOR', text = 'No colours on a terminal.' },
    { label = 'TRACEPARENT, OTEL_SERVICE_NAME', text = 'exec --spans: the trace, and the attribute '
      .. 'service.name.' },
  })
end

local function exit_status(out)
  out[#out + 1] = '.Sh EXIT STATUS'
  out[#out + 1] = '.Bl -tag -width Ds'
  for _, exit in ipairs(exits) do
    out[#out + 1] = '.It ' .. exit.code
    flow(out, exit.text:gsub('^%l', string.upper) .. '.')
  end
  out[#out + 1] = '.El'
end

local function see_also(out, names)
  out[#out + 1] = '.Sh SEE ALSO'
  for i, name in ipairs(names) do
    out[#out + 1] = ('.Xr %s 1%s'):format(name, i < #names and ' ,' or '')
  end
end

---The page of one command.
---@param command table model
---@param date string "November 21, 2026"
---@return string
function man.command(command, date)
  local name = 'latchkey-' .. command.name
  local out = header(name, 1, name, command.summary, date)
  out[#out + 1] = '.Sh SYNOPSIS'
  verbatim(out, command.usage)
  out[#out + 1] = '.Sh DESCRIPTION'
  flow(out, command.description)
  for _, section in ipairs(command.sections) do
    out[#out + 1] = '.Ss ' .. section.title
    if section.rows then
      rows(out, section.rows)
    else
      verbatim(out, section.text)
    end
  end
  for i, note in ipairs(command.notes) do
    out[#out + 1] = i == 1 and '.Ss Notes' or '.Pp'
    flow(out, note)
  end
  out[#out + 1] = '.Sh EXIT STATUS'
  out[#out + 1] = 'The codes are those of'
  out[#out + 1] = '.Xr latchkey 1 .'
  see_also(out, { 'latchkey' })
  return table.concat(out, '\n') .. '\n'
end

---The page of the program.
---@param commands table[] models
---@param date string
---@return string
function man.program(commands, date)
  local out = header('latchkey', 1, 'latchkey', 'distributed locks on Redis and Valkey', date)
  out[#out + 1] = '.Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar option ...\n.Sh DESCRIPTION\n.Nm'
  flow(out, 'holds locks on a Redis or Valkey server for programs and people, shows and repairs '
    .. 'them, and checks and ships the scripts that they are made of. Its commands:')
  out[#out + 1] = '.Bl -tag -width Ds'
  local names = {}
  for i, command in ipairs(commands) do
    names[i] = 'latchkey-' .. command.name
    out[#out + 1] = '.It Xr ' .. names[i] .. ' 1'
    flow(out, command.summary:gsub('^%l', string.upper):gsub('([^.?!])$', '%1.'))
  end
  out[#out + 1] = '.El\n.Pp'
  flow(out, 'A duration has a unit: 250ms, 10s, 2m, 1h. With --json a command writes one document '
    .. 'that names its schema; results go to standard output, everything else to standard error.')
  out[#out + 1] = '.Pp'
  flow(out, 'A server is named by a URL: redis://[user:password@]host[:port][/db]; '
    .. 'redis-sentinel://host[:port],.../master for the master that Sentinel names; '
    .. 'redis-cluster://host[:port],... for a cluster; rediss://, rediss-sentinel:// and '
    .. 'rediss-cluster:// over TLS; unix:///path?db=0; or local: for one of this user\'s own on '
    .. 'this machine, started when it is first used.')
  environment(out)
  exit_status(out)
  out[#out + 1] = '.Sh EXAMPLES\nOne backup at a time, wherever it is started:'
  verbatim(out, 'latchkey exec --url redis://locks.example:6379 --wait 10m backup -- make backup')
  see_also(out, names)
  return table.concat(out, '\n') .. '\n'
end

return man

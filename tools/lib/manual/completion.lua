-- SPDX-License-Identifier: Apache-2.0
-- Completions for bash, zsh and fish, from the models of the commands.
local acl = require('latchkey.locks.acl')
local model = require('lib.manual.model')

local completion = {}

local FILES = { FILE = true, KEY = true }
local FOLDERS = { DIR = true, FOLDER = true }

local HOME = debug.getinfo(1, 'S').source:match('^@(.*)/tools/lib/manual/') or '.'

-- What stands in a sentence of the help alone.
local CHOICES = {
  acl = { ['--family'] = acl.families(HOME) },
  exec = { ['--kind'] = { 'lock', 'fenced', 'fair', 'read', 'write', 'mutex', 'permit:' },
    ['--wait'] = { '0', 'forever' } },
}

local function quoted(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The options of a command: name -> { value, choices, text }, and the names in the help's order. An
-- option that has a row for each of its values takes these.
local function options_of(command)
  local options, names = {}, {}
  for _, row in ipairs(model.options(command)) do
    for _, name in ipairs(row.names) do
      local known = options[name]
      if known then
        known.choices = known.choices or { known.value }
        table.insert(known.choices, row.value)
        known.text = ''
      else
        local choices = row.choices or (CHOICES[command.name] or {})[name]
        options[name] = { value = row.value, choices = choices, text = row.text }
        names[#names + 1] = name
      end
    end
  end
  return options, names
end

-- The words that an argument may be.
local function words_of(command)
  for _, section in ipairs(command.sections) do
    for _, row in ipairs(section.rows or {}) do
      if row.label and (row.choices or row.words) then
        return row.choices or row.words
      end
    end
  end
  return {}
end

local function sentence(text)
  return (text:match('^(.-)[.;:] ') or text):gsub('%.$', '')
end

local function names_of(commands)
  local names = {}
  for i, command in ipairs(commands) do
    names[i] = command.name
  end
  return names
end

local BASH = [==[
# bash completion for latchkey, made from the parsers of its commands.
_latchkey() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} options='' words='' i
  COMPREPLY=()
  # In "--name=value" the "=" is a word of its own.
  if [[ $current == = ]]; then
    current=''
  elif [[ $previous == = ]] && ((COMP_CWORD > 3)); then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '%s' -- "$current")
    return
  fi
  if [[ $command == exec ]]; then
    for ((i = 2; i < COMP_CWORD; i++)); do
      [[ ${COMP_WORDS[i]} == -- ]] || continue
      if ((i == COMP_CWORD - 1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$current")
      else
        compopt -o default
      fi
      return
    done
  fi
  case "$command $previous" in
%s  esac
  case $command in
%s  *) return ;;
  esac
  if [[ $current == -* ]]; then words=$options; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if ((${#COMPREPLY[@]} == 0)); then compopt -o default; fi
}
complete -F _latchkey latchkey
]==]

---@param commands table[] models
---@return string
function completion.bash(commands)
  local values, cases = {}, {}
  for _, command in ipairs(commands) do
    local options, names = options_of(command)
    for _, name in ipairs(names) do
      local option, action = options[name], nil
      if option.choices then
        action = ('mapfile -t COMPREPLY < <(compgen -W %s -- "$current")'):format(
          quoted(table.concat(option.choices, ' ')))
      elseif FOLDERS[option.value] then
        action = 'compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$current")'
      elseif FILES[option.value] then
        action = 'compopt -o default'
      elseif option.value then
        action = ':'
      end
      if action then
        values[#values + 1] = ("  '%s %s') %s && return ;;\n"):format(command.name, name, action)
      end
    end
    cases[#cases + 1] = ('  %s) options=%s words=%s ;;\n'):format(command.name,
      quoted(table.concat(names, ' ')), quoted(table.concat(words_of(command), ' ')))
  end
  return BASH:format(table.concat(names_of(commands), ' '), table.concat(values),
    table.concat(cases))
end

-- Inside of a specification of _arguments.
local function zsh_text(text)
  return (sentence(text):gsub('[%[%]:\\]', '\\%0'):gsub("'", "'\\''"))
end

-- A colon would end what the words are for.
local function zsh_words(words)
  return '(' .. table.concat(words, ' '):gsub('[:\\]', '\\%0') .. ')'
end

local function zsh_value(option)
  if not option.value then
    return ''
  end
  local action = option.choices and zsh_words(option.choices)
    or FILES[option.value] and '_files' or FOLDERS[option.value] and '_files -/' or ' '
  return (':%s:%s'):format(option.value:lower(), action)
end

-- Behind a "--" of exec stands a command of its own.
local ZSH_COMMAND = [==[
  integer at=${words[(i)--]}
  if [[ $command == exec ]] && ((at < CURRENT)); then
    shift $at words
    ((CURRENT -= at))
    _normal
    return
  fi]==]

---@param commands table[] models
---@return string
function completion.zsh(commands)
  local out = { '#compdef latchkey', '# zsh completion for latchkey, made from the parsers of its '
    .. 'commands.', '_latchkey() {', '  local -a known', '  known=(' }
  for _, command in ipairs(commands) do
    local summary = command.summary:gsub(':', '\\:')
    out[#out + 1] = '    ' .. quoted(command.name .. ':' .. summary)
  end
  out[#out + 1] = '  )'
  out[#out + 1] = '  if ((CURRENT == 2)); then'
  out[#out + 1] = '    _describe command known'
  out[#out + 1] = '    return\n  fi'
  out[#out + 1] = '  local command=$words[2]'
  out[#out + 1] = '  shift words\n  ((CURRENT--))'
  out[#out + 1] = ZSH_COMMAND
  out[#out + 1] = '  case $command in'
  for _, command in ipairs(commands) do
    local options, names = options_of(command)
    out[#out + 1] = ('  %s)\n    _arguments -s \\'):format(command.name)
    for _, name in ipairs(names) do
      -- "--name=": the value may stand behind a "=" as well.
      local equals = options[name].value and name:find('^%-%-') and '=' or ''
      out[#out + 1] = ("      '*%s%s[%s]%s' \\"):format(name, equals,
        zsh_text(options[name].text), zsh_value(options[name]))
    end
    local words = words_of(command)
    out[#out + 1] = #words > 0 and ("      ': :%s'"):format(zsh_words(words))
      or "      '*: :_files'"
    out[#out + 1] = '    ;;'
  end
  out[#out + 1] = '  esac\n}\n_latchkey "$@"'
  return table.concat(out, '\n') .. '\n'
end

-- Behind a "--" of exec stands a command of its own.
local FISH_COMMAND = [==[
function __latchkey_command
  set -l words (commandline -opc)
  set -l at (contains -i -- -- $words); or return
  set -e words[1..$at]
  complete -C (string join -- ' ' (string escape -- $words) (commandline -ct))
end
function __latchkey_has_command
  __fish_seen_subcommand_from exec; and contains -- -- (commandline -opc)
end
complete -c latchkey -n __latchkey_has_command -f -a '(__latchkey_command)']==]

---@param commands table[] models
---@return string
function completion.fish(commands)
  local out = { '# fish completion for latchkey, made from the parsers of its commands.',
    FISH_COMMAND }
  local function add(condition, rest)
    out[#out + 1] = ('complete -c latchkey -n %s %s'):format(quoted(condition), rest)
  end
  for _, command in ipairs(commands) do
    add('__fish_use_subcommand', ('-f -a %s -d %s'):format(command.name, quoted(command.summary)))
  end
  for _, command in ipairs(commands) do
    local condition = '__fish_seen_subcommand_from ' .. command.name
    local options, names = options_of(command)
    for _, name in ipairs(names) do
      local option = options[name]
      local flag = name:find('^%-%-') and '-l ' .. name:sub(3) or '-s ' .. name:sub(2)
      local choices = option.choices and quoted(table.concat(option.choices, ' '))
      local value = choices and '-x -a ' .. choices
        or (FILES[option.value] or FOLDERS[option.value]) and '-r' or option.value and '-x' or ''
      add(condition, (('%s %s -d %s'):format(flag, value, quoted(sentence(option.text)))
        :gsub('  ', ' ')))
    end
    local words = words_of(command)
    if #words > 0 then
      add(condition, '-f -a ' .. quoted(table.concat(words, ' ')))
    end
  end
  return table.concat(out, '\n') .. '\n'
end

return completion

-- SPDX-License-Identifier: Apache-2.0
-- Man pages and completions, as the build makes them of the commands' parsers, beside the program.
local dir = require('pl.dir')
local path = require('pl.path')
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local program = require('cli.program')

local BUILD = path.dirname(program.path)
local MANUAL = BUILD .. '/manual/'

-- A library that needs a sanitizer cannot be loaded where the manual is made.
local cache = utils.readfile(BUILD .. '/CMakeCache.txt') or ''
if cache:find('\nLK_SANITIZE:[^=]+=%a') then
  return
end

-- The commands as the program lists them.
local function commands()
  local names = {}
  for name in program.run({ '--help' }).out:gmatch('\n  (%l+) +%l') do
    names[#names + 1] = name
  end
  assert.is_true(#names > 20)
  return names
end

-- The long options that a command's --help names.
local function options_of(name)
  local options, seen = {}, {}
  for option in program.run({ name, '--help' }).out:gmatch('[ (](%-%-%l[%w_-]+)') do
    if not seen[option] then
      seen[option] = true
      options[#options + 1] = option
    end
  end
  return options
end

local function run(shell, script)
  local result = program.start_any(shell, { '-c', script, shell, MANUAL }):wait()
  assert.equal('', result.err)
  return stringx.splitlines(result.out)
end

local function has(list, word)
  for _, element in ipairs(list) do
    if element == word or stringx.startswith(element, word .. '\t') then
      return true
    end
  end
  return false
end

local function is_there(shell)
  if program.start_any('sh', { '-c', 'command -v ' .. shell }):wait().code ~= 0 then
    pending(shell .. ' is not installed')
  end
end

describe('the manual', function()
  after_each(program.clean)

  it('has a page of each command, which names all its options', function()
    for _, name in ipairs(commands()) do
      local page = assert(utils.readfile(MANUAL .. 'man1/latchkey-' .. name .. '.1'))
      page = page:gsub('\\%-', '-'):gsub('Fl ', '-')
      for _, option in ipairs(options_of(name)) do
        assert.truthy(page:find(option, 1, true), name .. ' ' .. option)
      end
    end
  end)

  it('leads only to pages that are there', function()
    for _, file in ipairs(dir.getfiles(MANUAL .. 'man1')) do
      for name in utils.readfile(file):gmatch('%.Xr (%S+) 1') do
        assert.is_string(path.exists(MANUAL .. 'man1/' .. name .. '.1'), name)
      end
    end
  end)

  it('is good in the eyes of mandoc', function()
    is_there('mandoc')
    local files = dir.getfiles(MANUAL .. 'man1', '*.1')

    local found = {}
    for line in program.start_any('mandoc', { '-T', 'lint', unpack(files) }):wait().out
      :gmatch('[^\n]+') do
      if not line:find('referenced manual not found', 1, true) then
        found[#found + 1] = line
      end
    end

    assert.same({}, found)
  end)
end)

describe('the completion', function()
  after_each(program.clean)

  local function of_bash(...)
    local words = table.concat({ ... }, "' '")
    return run('bash', ([[
      compopt() { :; }
      source "$1"/completion/bash/latchkey
      COMP_WORDS=('latchkey' '%s') COMP_CWORD=%d
      _latchkey
      printf '%%s\n' "${COMPREPLY[@]}"]]):format(words, select('#', ...)))
  end

  it('of bash knows the commands, their options and what these may be', function()
    assert.same({ 'inspect' }, of_bash('ins'))
    assert.same({ 'term', 'kill', 'warn' }, of_bash('exec', 'name', '--on-lost', ''))
    assert.same({ 'status', 'stop' }, of_bash('local', 'st'))
    assert.is_true(has(of_bash('exec', 'name', '--', 'tou'), 'touch'))
    for _, name in ipairs(commands()) do
      local known = of_bash(name, '--')
      for _, option in ipairs(options_of(name)) do
        assert.is_true(has(known, option), name .. ' ' .. option)
      end
    end
  end)

  it('of fish knows them', function()
    is_there('fish')
    local function of_fish(line)
      return run('fish', ("source $argv[2]/completion/fish/latchkey.fish; complete -C '%s'")
        :format(line))
    end

    assert.is_true(has(of_fish('latchkey ins'), 'inspect'))
    assert.is_true(has(of_fish('latchkey exec --on-lost '), 'kill'))
    assert.is_true(has(of_fish('latchkey local s'), 'stop'))
    for _, name in ipairs(commands()) do
      local known = of_fish(('latchkey %s --'):format(name))
      for _, option in ipairs(options_of(name)) do
        assert.is_true(has(known, option), name .. ' ' .. option)
      end
    end
  end)

  it('of zsh is accepted by it', function()
    is_there('zsh')

    run('zsh', 'zsh -n "$1"/completion/zsh/_latchkey')
    local text = utils.readfile(MANUAL .. 'completion/zsh/_latchkey')
    for _, name in ipairs(commands()) do
      assert.truthy(text:find("'" .. name .. ':', 1, true), name)
    end
  end)
end)

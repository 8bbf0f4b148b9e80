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
if program.sanitizer() then
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

  it('have each form of a URL, as has the help of the commands in C', function()
    local manual = assert(utils.readfile(MANUAL .. 'man1/latchkey.1'))
    local exec = program.run({ 'exec', '--help' }).out
    local bench = program.run({ 'bench', '--help' }).out
    local source = assert(utils.readfile(program.root .. '/c/src/base/url.c'))
    local count = 0
    for scheme in source:gmatch('{"(%l[%l-]+:)//", %l+, ') do
      local over_tls = scheme:find('^rediss%-') ~= nil
      assert.truthy(manual:find(scheme, 1, true), scheme)
      assert.truthy(exec:find(scheme, 1, true), scheme)
      assert.truthy(bench:find(over_tls and 'over TLS' or scheme, 1, true), scheme)
      count = count + 1
    end
    assert.is_true(count > 5, count)
  end)

  it('has a page of each command, which names all its options', function()
    for _, name in ipairs(commands()) do
      local page = assert(utils.readfile(MANUAL .. 'man1/latchkey-' .. name .. '.1'))
      page = page:gsub('\\%-', '-'):gsub('Fl ', '-')
      for _, option in ipairs(options_of(name)) do
        assert.truthy(page:find(option, 1, true), name .. ' ' .. option)
      end
    end
  end)

  it('has a page of each public function, and of concepts', function()
    local count = 0
    for _, file in ipairs(dir.getfiles(program.root .. '/c/include/latchkey', '*.h')) do
      local text = utils.readfile(file):gsub('/%*.-%*/', '')
      for name in text:gmatch('\nLK_API [^;]-([%l_%d]+)%(') do
        local page = assert(utils.readfile(MANUAL .. 'man3/' .. name .. '.3'), name)
        assert.truthy(page:find('\n.In latchkey/' .. path.basename(file) .. '\n', 1, true), name)
        assert.truthy(page:find('\n.Fo ' .. name .. '\n', 1, true), name)
        count = count + 1
      end
    end
    assert.is_true(count > 100)
    assert.is_true(#dir.getfiles(MANUAL .. 'man7') >= 5)
  end)

  it('has a page of each public type, with its members and their limits', function()
    local types = 0
    for _, file in ipairs(dir.getfiles(program.root .. '/c/include/latchkey', '*.h')) do
      for name in utils.readfile(file):gmatch('\n} (lk_[%l_]+);') do
        assert.is_string(path.exists(MANUAL .. 'man3/' .. name .. '.3'), name)
        types = types + 1
      end
    end
    assert.is_true(types >= 20)
    local options = assert(utils.readfile(MANUAL .. 'man3/lk_lock_options.3'))
    assert.truthy(options:find('\n  int64_t lease_ms;\n', 1, true), options)
    assert.truthy(options:find('\n.It Va lease_ms\n50 to 86,400,000; ', 1, true), options)
    assert.truthy(options:find('\n.It Va on_lost\nonce per hold\n', 1, true), options)
    local kinds = assert(utils.readfile(MANUAL .. 'man3/lk_kind.3'))
    assert.truthy(kinds:find('\n.It Dv LK_FENCED\nLK_LOCK with a fencing token', 1, true), kinds)
    local statuses = assert(utils.readfile(MANUAL .. 'man3/lk_status.3'))
    assert.truthy(statuses:find('\n.It Dv LK_BUSY (1)\nanother owner holds the lock\n', 1, true),
      statuses)
  end)

  it('leads only to pages that are there, and from a call to its neighbours and types', function()
    for _, section in ipairs({ '1', '3' }) do
      for _, file in ipairs(dir.getfiles(MANUAL .. 'man' .. section)) do
        for name, other in utils.readfile(file):gmatch('%.Xr (%S+) (%d)') do
          assert.is_string(path.exists(('%sman%s/%s.%s'):format(MANUAL, other, name, other)), name)
        end
      end
    end
    local page = assert(utils.readfile(MANUAL .. 'man3/lk_lock_acquire.3'))
    for _, name in ipairs({ 'lk_lock_release', 'lk_lock_options', 'lk_caller', 'lk_status' }) do
      assert.truthy(page:find('\n.Xr ' .. name .. ' 3', 1, true), name)
    end
  end)

  -- mandoc looks for what a page refers to in the folder where it works, beside the system's pages.
  it('is good in the eyes of mandoc, which also finds a page that is referred to and is not there',
    function()
      is_there('mandoc')
      local folder = program.folder()
      for _, section in ipairs({ '1', '3', '7' }) do
        local pages = dir.getfiles(MANUAL .. 'man' .. section, '*.' .. section)
        assert.is_true(#pages > 0)
        for _, file in ipairs(pages) do
          assert(dir.copyfile(file, folder))
        end
      end
      local function lint(files) -- it reads the folder of the system's pages for each reference
        return program.start_any('sh', { '-c', 'cd "$1" && mandoc -T lint ' .. files, 'sh',
          folder }):wait(120).out
      end

      assert.equal('', lint('*'))

      assert(os.remove(folder .. '/lk_status_text.3'))
      assert.truthy(lint('lk_status.3'):find('manual not found: Xr lk_status_text 3', 1, true))
    end)
end)

describe('the reader of helps', function()
  it('refuses an option whose text begins a blank behind it: it would have none', function()
    local model = require('lib.manual.model')
    local help = 'Usage: latchkey x\n\nDoes it.\n\nMore\n  --at-least TIME%s how long\n'

    local good = model.of_help('x', 'does it', help:format(' '))
    assert.same({ 'More', 'how long' },
      { good.sections[1].title, good.sections[1].rows[1].text })
    assert.error_matches(function()
      model.of_help('x', 'does it', help:format(''))
    end, 'two blanks stand before the text of an option, in:   %-%-at%-least TIME how long')
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
    assert.same({ 'fenced', 'fair' }, of_bash('exec', '--kind', 'f'))
    assert.same({ 'fenced', 'fair' }, of_bash('exec', '--kind', '=', 'f'))
    assert.same(of_bash('exec', '--kind', ''), of_bash('exec', '--kind', '='))
    assert.same({ '' }, of_bash('exec', 'name', '--label', '=', 'f'))
    assert.same({ 'fair', 'fence', 'fenced' }, of_bash('acl', 'me', '--family', 'f'))
    assert.same({ 'LK_BUSY' }, of_bash('explain', 'LK_BUS'))
    assert.same({ '75' }, of_bash('explain', '75'))
    assert.same({ 'mutex/break' }, of_bash('eval', 'mutex/b'))
    assert.is_true(has(of_bash('exec', 'name', '--', 'tou'), 'touch'))
    for _, name in ipairs(commands()) do
      local known = of_bash(name, '--')
      for _, option in ipairs(options_of(name)) do
        assert.is_true(has(known, option), name .. ' ' .. option)
      end
    end
  end)

  it('offers each kind that exec takes, and no other', function()
    for _, kind in ipairs(of_bash('exec', '--kind', '')) do
      local words = { 'exec', '--url', 'unix:///nowhere', '--wait', '0', '--kind',
        kind:gsub(':$', ':3'), 'job', '--', 'true' }
      assert.equal(69, program.run(words).code, kind)
    end
    local refused = program.run({ 'exec', '--kind', 'x', 'job', '--', 'true' }).err
    for kind in refused:match('the kinds are (.-)\n'):gmatch('%l+') do
      assert.is_true(kind == 'and' or has(of_bash('exec', '--kind', ''), kind)
        or kind == 'permit', kind)
    end
  end)

  local function of_fish(line)
    return run('fish', ("source $argv[2]/completion/fish/latchkey.fish; complete -C '%s'")
      :format(line))
  end

  it('of fish knows them', function()
    is_there('fish')

    assert.is_true(has(of_fish('latchkey ins'), 'inspect'))
    assert.is_true(has(of_fish('latchkey exec --on-lost '), 'kill'))
    assert.is_true(has(of_fish('latchkey exec name -- touc'), 'touch'))
    assert.is_false(has(of_fish('latchkey exec nam'), 'name'))
    assert.is_true(has(of_fish('latchkey local s'), 'stop'))
    for _, name in ipairs(commands()) do
      local known = of_fish(('latchkey %s --'):format(name))
      for _, option in ipairs(options_of(name)) do
        assert.is_true(has(known, option), name .. ' ' .. option)
      end
    end
  end)

  -- What zsh offers for each of these lines.
  local function of_zsh(...)
    local result = program.start_any('zsh', { '-f', program.root .. '/spec/cli/complete.zsh',
      MANUAL .. 'completion/zsh', program.folder(), ... }):wait()
    assert.equal('', result.err)
    local offers, list = {}, {}
    for _, line in ipairs(stringx.splitlines(result.out)) do
      if line == '#' then
        offers[#offers + 1], list = list, {}
      else
        list[#list + 1] = line
      end
    end
    assert.equal(select('#', ...), #offers)
    return offers
  end

  it('of zsh knows what options may be, and the words behind them', function()
    is_there('zsh')
    local folder = program.folder()
    assert(utils.writefile(folder .. '/key', ''))
    assert(dir.makepath(folder .. '/keys'))

    local offers = of_zsh('latchkey ins', 'latchkey exec --on-lost ', 'latchkey exec --on-lost=t',
      'latchkey ls --kind f', 'latchkey local s', 'latchkey exec name -- touc',
      'latchkey bundle --sign ' .. folder .. '/k', 'latchkey load --dir ' .. folder .. '/k',
      'latchkey ls --limit ')

    assert.same({ 'inspect' }, offers[1])
    assert.same({ 'term', 'kill', 'warn' }, offers[2])
    assert.same({ 'term' }, offers[3])
    assert.same({ 'fenced', 'fair' }, offers[4])
    assert.same({ 'status', 'stop' }, offers[5])
    assert.is_true(has(offers[6], 'touch'))
    assert.same({ true, true }, { has(offers[7], 'key'), has(offers[7], 'keys') })
    assert.same({ false, true }, { has(offers[8], 'key'), has(offers[8], 'keys') })
    assert.same({}, offers[9])
  end)

  it('of zsh offers the kinds that bash offers', function()
    is_there('zsh')
    local kinds = of_bash('exec', '--kind', '')

    local offers = of_zsh('latchkey exec --kind ', 'latchkey exec --kind=',
      'latchkey exec --kind p')

    assert.is_true(has(kinds, 'permit:'))
    assert.same(kinds, offers[1])
    assert.same(kinds, offers[2])
    assert.same({ 'permit:' }, offers[3])
  end)

  it('offers files where a command takes one', function()
    local folder = program.folder()
    assert(utils.writefile(folder .. '/key', ''))
    for _, name in ipairs({ 'exec', 'bench', 'ls' }) do
      local words = ('latchkey %s --password-file %s/k'):format(name, folder)
      local asked = run('bash', ([[
        compopt() { printf '%%s ' "$@"; }
        source "$1"/completion/bash/latchkey
        COMP_WORDS=(%s) COMP_CWORD=3
        _latchkey]]):format(words))
      assert.same({ '-o default ' }, asked, name)
      for _, shell in ipairs({ 'fish', 'zsh' }) do
        is_there(shell)
        local offers = shell == 'fish' and of_fish(words) or of_zsh(words)[1]
        assert.is_true(has(offers, 'key') or has(offers, folder .. '/key'), shell .. ' ' .. words)
      end
    end
  end)

  it('says of each option of the commands in C what it does', function()
    local fish = assert(utils.readfile(MANUAL .. 'completion/fish/latchkey.fish'))
    for _, name in ipairs({ 'exec', 'bench' }) do
      local count = 0
      for option in program.run({ name, '--help' }).out:gmatch('\n  %-*%l?,? ?%-%-(%l[%w-]+)') do
        local line = fish:match(("\n(complete [^\n]*from %s' %%-l %s [^\n]*)"):format(name,
          (option:gsub('%-', '%%-'))))
        assert.truthy(line:find(" %-d '[^']") or line:find(' %-a '), line)
        count = count + 1
      end
      assert.is_true(count > 10)
    end
    local page = assert(utils.readfile(MANUAL .. 'man1/latchkey-exec.1'))
    assert.truthy(page:find('\n.It Fl \\-kind Ar KIND\n', 1, true), page)
  end)

  it('of zsh knows the options of each command', function()
    is_there('zsh')
    local names, lines = commands(), {}
    for i, name in ipairs(names) do
      lines[i] = ('latchkey %s --'):format(name)
    end

    for i, offers in ipairs(of_zsh(unpack(lines))) do
      for _, option in ipairs(options_of(names[i])) do
        assert.is_true(has(offers, option), names[i] .. ' ' .. option)
      end
    end
  end)
end)

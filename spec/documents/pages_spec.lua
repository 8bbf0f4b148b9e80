-- SPDX-License-Identifier: Apache-2.0
-- Every page of the documentation, done in a scratch folder, with a scratch server and an installed
-- latchkey.
local dir = require('pl.dir')
local path = require('pl.path')
local socket = require('posix.sys.socket')
local stringx = require('pl.stringx')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local document = require('documents.document')
local program = require('cli.program')

local DOCS = program.root .. '/docs/'

-- Words of fences that are shown and not done here: commands_spec.lua looks at them. `debian` is
-- done by c/packaging/test, `build` by the sections `packages` and `consumer` of tools/test.
local SHOWN = { [''] = true, build = true, console = true, crontab = true, debian = true,
  diagram = true, json = true, systemd = true, url = true, yaml = true }

-- The library as an application finds it.
local function installed()
  local prefix = program.folder()
  local result = program.start_any('cmake', { '--install', path.dirname(program.path), '--prefix',
    prefix }):wait()
  assert(result.code == 0, result.err)
  local libraries = path.dirname(assert(dir.getallfiles(prefix, '*liblatchkey.a')[1]))
  return { PKG_CONFIG_PATH = libraries .. '/pkgconfig', LD_LIBRARY_PATH = libraries }
end

-- No variable of the machine reaches the commands.
local function clean_env(more)
  local env = { LATCHKEY_URL = false, LATCHKEY_PASSWORD = false, LATCHKEY_HOME = false,
    LATCHKEY_LIB = false, LATCHKEY_SPEC_URL = false, LATCHKEY_SPEC_SCRIPTS = false,
    LATCHKEY_HELD = false, LATCHKEY_LOCK = false, LATCHKEY_TOKEN = false }
  for name, value in pairs(more) do
    env[name] = value
  end
  return env
end

-- A port that nobody listens on.
local function free_port()
  local fd = assert(socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0))
  assert(socket.bind(fd, { family = socket.AF_INET, addr = '127.0.0.1', port = 0 }))
  local port = socket.getsockname(fd).port
  unistd.close(fd)
  return tostring(port)
end

local function with_scripts()
  return { prepare = ('cp -r "%s/scripts" .'):format(program.root) }
end

-- As much of a clone as a page uses, which is clean again when it has been followed.
local function in_clone()
  return { prepare = ([[
    cp -r "%s/scripts" .
    mkdir spec && cp -r "%s/spec/regress" spec/
    git init -q . && git add -A
    git -c user.name=me -c user.email=me@example.org commit -q -m clone]]):format(program.root,
    program.root), finish = 'git status --porcelain && test -z "$(git status --porcelain)"' }
end

-- What some pages need besides.
local needs = {
  ['howto/deploy-scripts.md'] = function()
    local home = program.folder()
    program.start_any('sh', { '-c', 'mkdir -m 700 "$1/.ssh" && '
      .. 'ssh-keygen -q -t ed25519 -N "" -C release -f "$1/.ssh/release_key"', 'sh', home }):wait()
    return { env = { HOME = home }, replace = { ['redis://db1:6379'] = program.server().url,
      ['redis://db2:6379'] = program.server().url } }
  end,
  ['howto/tls-and-acl.md'] = function()
    return { replace = { ['6390'] = free_port() } }
  end,
  ['howto/debug-a-script.md'] = with_scripts,
  ['tutorial/counterexample.md'] = in_clone,
}

local pages = {}
for _, file in ipairs(dir.getallfiles(DOCS, '*.md')) do
  pages[#pages + 1] = path.relpath(file, DOCS)
end
table.sort(pages)

local function does_something(file)
  for _, block in ipairs(document.blocks(file)) do
    if block.kind == 'sh' or block.kind == 'repl' or block.argument then
      return true
    end
  end
  return false
end

describe('the page', function()
  local with_library

  setup(function()
    with_library = installed()
  end)

  teardown(program.clean)

  for _, page in ipairs({ '../README.md', unpack(pages) }) do
    if does_something(DOCS .. page) then
      it(page .. ' shows what happens', function()
        local options = needs[page] and needs[page]() or {}
        local env = clean_env(options.env or {})
        env.LATCHKEY_LOCAL_DIR = program.folder() .. '/local'
        for name, value in pairs(with_library) do
          env[name] = value
        end
        finally(function()
          program.start_any(program.path, { 'local', 'stop' }, { env = env }):wait()
        end)

        assert.is_nil(document.follow(DOCS .. page,
          { env = env, replace = options.replace, prepare = options.prepare,
            finish = options.finish }))
      end)
    end
  end
end)

describe('the pages', function()
  it('have no fences but those that are done, and those that only show', function()
    for _, page in ipairs(pages) do
      for _, block in ipairs(document.blocks(DOCS .. page)) do
        local is_done = block.kind == 'sh' or block.kind == 'text' or block.kind == 'repl'
          or block.argument
        local is_good = is_done or SHOWN[block.kind]
          or block.kind == 'lua' and load(block.text) ~= nil -- a piece of a program
        assert.truthy(is_good, ('docs/%s:%d: ```%s'):format(page, block.line, block.kind))
      end
    end
  end)

  it('lead only to files that are there', function()
    local files = { 'README.md', 'CONTRIBUTING.md' }
    for i, page in ipairs(pages) do
      files[i + 2] = 'docs/' .. page
    end
    for _, file in ipairs(files) do
      local text = assert(utils.readfile(program.root .. '/' .. file)):gsub('```.-\n```', '')
      for target in text:gmatch('%]%(([^)#%s]+)[^)]*%)') do
        local there = path.join(program.root, path.dirname(file), target)
        assert.is_true(stringx.startswith(target, 'https:') or path.exists(there) ~= false,
          file .. ' leads to ' .. target)
      end
    end
  end)

  it('are all found from the front page', function()
    local front, missing = assert(utils.readfile(DOCS .. 'index.md')), {}
    for _, page in ipairs(pages) do
      if page ~= 'index.md' and not front:find('](' .. page .. ')', 1, true) then
        missing[#missing + 1] = page
      end
    end

    assert.same({}, missing)
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
-- What is public, against what is described: symbols of the library, scripts, the binding.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local headers = require('lib.site.headers')
local helper = require('helper')
local pages = require('latchkey.bundle.pages')
local properties = require('latchkey.checker.properties')
local states = require('lib.site.states')

local ROOT = helper.root .. '/'

local function read(file)
  return assert(utils.readfile(ROOT .. file))
end

local function sorted(set)
  local list = {}
  for name in pairs(set) do
    list[#list + 1] = name
  end
  table.sort(list)
  return list
end

local files = dir.getfiles(ROOT .. 'c/include/latchkey', '*.h')
table.sort(files)

describe('the C interface', function()
  -- The functions of all headers, as the compiler's marks have them, not as the pages are made.
  local function declared()
    local set = {}
    for _, file in ipairs(files) do
      local text = utils.readfile(file):gsub('/%*.-%*/', '')
      for name in text:gmatch('\nLK_API [^;]-([%l_%d]+)%(') do
        set[name] = true
      end
    end
    return set
  end

  it('has on its pages each function, and each type and constant', function()
    for _, file in ipairs(files) do
      local text = utils.readfile(file)
      local page = headers.page(path.basename(file), text)
      local code = text:gsub('/%*.-%*/', '')
      for name in code:gmatch('\nLK_API [^;]-([%l_%d]+)%(') do
        assert.truthy(page:find('### `' .. name .. '`', 1, true), name)
      end
      for name in code:gmatch('\n#define (LK_[%u_%d]+)') do
        if name ~= 'LK_API' and name ~= 'LK_STATUS_ENUM' then
          assert.truthy(page:find('`' .. name .. '`', 1, true), name)
        end
      end
      for name in code:gmatch('\n} (lk_[%l_]+);') do
        assert.truthy(page:find('### `' .. name .. '`', 1, true), name)
      end
    end
  end)

  it('says of each function what it does, and since when', function()
    for _, file in ipairs(files) do
      for _, item in ipairs(headers.parse(utils.readfile(file)).items) do
        if item.code and item.code:find('^LK_API') then
          assert.is_true(#item.doc.text > 10 or item.doc.tags['return'] ~= nil, item.name)
          assert.is_string(item.doc.tags.since, item.name)
        end
      end
    end
  end)

  it('says of each that can fail how, for how long, and what a lost reply leaves', function()
    local count = 0
    for _, file in ipairs(files) do
      for _, item in ipairs(headers.parse(utils.readfile(file)).items) do
        if item.code and item.code:find('^LK_API lk_status ') then
          local tags = item.doc.tags
          for _, tag in ipairs({ 'return', 'blocks', 'threads' }) do
            assert.is_string(tags[tag], item.name .. ' @' .. tag)
          end
          assert.is_truthy(tags['after-io'] or tags.blocks == 'no', item.name .. ' @after-io')
          count = count + 1
        end
      end
    end

    assert.is_true(count > 40, count)
  end)

  it('has no parameters on its pages but those of the functions', function()
    for _, file in ipairs(files) do
      for _, item in ipairs(headers.parse(utils.readfile(file)).items) do
        for _, param in ipairs(item.code and item.code:find('^LK_API') and item.doc.params or {}) do
          assert.truthy(item.code:find('%f[%w_]' .. param.name .. '%f[^%w_]'),
            item.name .. ' ' .. param.name)
        end
      end
    end
  end)

  it('names in the comment of lk_client_open each scheme of URLs', function()
    local text, count = read('c/include/latchkey/client.h'), 0
    for scheme in read('c/src/base/url.c'):gmatch('{"(%l[%l-]+:)//", %l+, %l+, LK_URL') do
      assert.truthy(text:find('[ ,]' .. scheme:gsub('%-', '%%-') .. '//'), scheme)
      count = count + 1
    end

    assert.is_true(count > 5, count)
  end)

  it('is what the library exports, and nothing else', function()
    local library = os.getenv('LATCHKEY_LIB')
    if not library then
      pending('LATCHKEY_LIB names no library')
    end

    local exported = {}
    local _, code, out = utils.executeex(("nm -D --defined-only '%s'"):format(library))
    assert.equal(0, code)
    for name in out:gmatch(' %u ([%w_]+)\n') do
      exported[name] = true
    end

    assert.same(sorted(declared()), sorted(exported))
  end)
end)

describe('the scripts', function()
  local scripts = assert(catalog.read(ROOT .. 'scripts'))
  local rows = states.read(ROOT .. 'docs/reference/states.tsv')

  it('have a page each', function()
    local all = pages.all(scripts)

    for _, script in ipairs(scripts) do
      assert.is_string(all[script.name .. '.md'], script.name)
      assert.truthy(all['README.md']:find('(' .. script.name .. '.md)', 1, true), script.name)
    end
  end)

  it('stand in the diagram of their family, those that write', function()
    local drawn = {}
    for _, row in ipairs(rows) do
      drawn[row.by] = true
    end

    for _, script in ipairs(scripts) do
      local only_reads = false
      for _, flag in ipairs(script.header.flags) do
        only_reads = only_reads or flag == 'no-writes'
      end
      assert.equal(not only_reads, drawn[script.name] == true, script.name)
    end
  end)

  it('answer in the diagrams what their headers say', function()
    for _, row in ipairs(rows) do
      local script, found = scripts[row.by], row.reply == '-'
      assert.equal(row.reply ~= '-', script ~= nil, row.by)
      for _, reply in ipairs(script and script.header.returns or {}) do
        found = found or reply.shape == row.reply
      end
      assert.is_true(found, row.by .. ' ' .. row.reply)
    end
  end)
end)

describe('the page of the LuaJIT binding', function()
  local page, source = read('docs/reference/lua.md'), read('tools/latchkey/init.lua')

  it('names each function of the module, and no others', function()
    local public, described = { ['client:close'] = true, ['lock:close'] = true,
      ['watch:close'] = true, ['wait:close'] = true, ['caller:close'] = true }, {}
    for object, name in source:gmatch('\nfunction (%a+)[.:]([%l_]+)%(') do
      public[(object == 'latchkey' and 'latchkey.' or object:lower() .. ':') .. name] = true
    end
    for row in page:gmatch('\n(| `[^\n]*)') do
      for name in row:gmatch('`(%l+[.:][%l_]+)%(') do
        described[name] = true
      end
    end

    assert.same(sorted(public), sorted(described))
  end)
end)

describe('the page of the guarantees', function()
  it('has a row for each promise that the checker knows, with evidence that is there', function()
    local page, rows = read('docs/explanation/guarantees.md'), {}
    for name, evidence in page:gmatch('\n| (G%d+) | [^|]+ | ([^|]+) |') do
      rows[name] = true
      for place in evidence:gmatch('`([%l_/.*]+)`') do
        local patched = ROOT .. 'c/tests/torture/sabotages/' .. place .. '.patch'
        local full = ROOT .. place:gsub('%*', 'lock'):gsub('^test_', 'c/tests/live/test_')
        assert.truthy(path.exists(full) or path.exists(patched), name .. ' ' .. place)
      end
    end

    for name in pairs(properties.names) do
      assert.is_true(rows[name] or not name:find('^G'), name)
    end
  end)
end)

describe('the page of the examples', function()
  it('has all of them, and they are short', function()
    local page, there, named = read('docs/reference/examples.md'), {}, {}
    for _, file in ipairs(dir.getfiles(ROOT .. 'c/examples', '*.c')) do
      local _, lines = read('c/examples/' .. path.basename(file)):gsub('\n', '')
      assert.is_true(lines <= 120, file)
      there[path.basename(file)] = true
    end
    for name in page:gmatch('%[([%l_]+%.c)%]%(%.%./%.%./c/examples/%1%)') do
      named[name] = true
    end

    assert.same(sorted(there), sorted(named))
  end)
end)

describe('the page of URLs', function()
  local page, source = read('docs/reference/url.md'), read('c/src/base/url.c')

  it('names each scheme, parameter and option of a client', function()
    local count = 0
    for scheme in source:gmatch('{"(%l[%l-]+://)", %l+, %l+, LK_URL') do
      assert.truthy(page:find('`' .. scheme, 1, true), scheme)
      count = count + 1
    end
    for parameter in source:gmatch('\n      {"([%l_]+)", [&N]') do
      assert.truthy(page:find('`' .. parameter .. '[=`]'), parameter)
      count = count + 1
    end
    local options = read('c/include/latchkey/client.h'):gsub('/%*.-%*/', '')
      :match('typedef struct lk_client_options {(.-)\n}')
    for option in options:gmatch('([%l_]+);') do
      assert.truthy(option == 'size' or option == 'trace_user'
        or page:find('`' .. option .. '`', 1, true), option)
    end
    assert.is_true(count > 15)
  end)
end)

describe('an enum of the C interface', function()
  it('has a function that names its values', function()
    local count = 0
    for _, file in ipairs(files) do
      local source = utils.readfile(file)
      for name in source:gmatch('typedef enum lk_([%l_]+)') do
        assert.truthy(source:find(' *lk_' .. name:gsub('_reason$', '') .. '_name(int ', 1, true),
          name)
        count = count + 1
      end
    end
    assert.is_true(count >= 7)
  end)
end)

describe('the page of options', function()
  local page = read('docs/reference/options.md')

  it('names each variable of the environment that is read', function()
    local part, read_ones = page:match('\n## Environment\n(.-)\n## '), {}
    for _, folder in ipairs({ 'c/src', 'c/cli', 'tools/latchkey' }) do
      for _, file in ipairs(dir.getallfiles(ROOT .. folder)) do
        for name in utils.readfile(file):gmatch('getenv%([\'"]([%u_]+)[\'"]%)') do
          read_ones[name] = true
        end
      end
    end

    for name in pairs(read_ones) do
      assert.truthy(part:find('[`$]' .. name .. '%f[^%u_]'), name)
    end
    assert.is_true(read_ones.LATCHKEY_URL and read_ones.TMPDIR)
  end)

  for _, name in ipairs({ 'lk_client_options', 'lk_lock_options', 'lk_permits_options',
    'lk_counter_options' }) do
    it('names each member of ' .. name, function()
      local part = assert((page .. '\n## '):match('\n## [^\n]*`' .. name .. '`\n(.-)\n## '), name)
      local count = 0
      for _, header in ipairs({ 'client.h', 'lock.h', 'counters.h' }) do
        local members = read('c/include/latchkey/' .. header):gsub('/%*.-%*/', '')
          :match('typedef struct ' .. name .. ' {(.-)\n}') or ''
        for member in members:gmatch('([%l_]+);') do
          assert.truthy(member == 'size' or part:find('`' .. member .. '`', 1, true), member)
          count = count + 1
        end
        for member in members:gmatch('%(%*([%l_]+)%)') do
          assert.truthy(part:find('`' .. member .. '`', 1, true), member)
        end
      end
      assert.is_true(count >= 3, count)
    end)
  end
end)

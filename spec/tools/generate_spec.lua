-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')

-- Prints each row of the C table: name, sha1, length, repeat, keys, arguments, shapes.
local READER = [[
#include "harness/catalog.h"
#include <stdio.h>

static void fields(const lk_field *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    printf(" %s/%s/%d/%s/%s", list[i].name, list[i].type, (int)list[i].form, list[i].text,
           list[i].plus);
  printf("\n");
}

int main(void) {
  for (size_t i = 0; i < lk_embedded_count; i++) {
    const lk_script_def *def = &lk_embedded_scripts[i];
    char file[64];
    snprintf(file, sizeof file, "out_%zu", i);
    FILE *out = fopen(file, "wb");
    if (!out || fwrite(def->source, 1, def->source_len, out) != def->source_len || fclose(out))
      return 1;
    if (def->source[def->source_len])
      return 2;
    printf("%s %s %s %d\n", def->name, def->version, def->sha1, (int)def->repeat);
    fields(def->keys, def->nkeys);
    fields(def->args, def->nargs);
    printf("%s\n", def->returns);
  }
  return 0;
}
]]

local STRICT = '-std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes '
  .. '-Woverlength-strings -Werror'

local SCRIPT = [==[
#!lua
--[[ latchkey-script
name:     odd/bytes
version:  2.1.0
summary:  Nothing.
keys:
  - one      string  r  {name}
  - two      hash   rw  prefix:p+who
argv:
  - who      caller   1..64
  - channel  channel  suffix:s
  - tag      channel  braces:b
returns:
  - {1}     done
  - {0, n}  not done
message:  value
repeat:   seq
cost:     at most 1 command
cluster:  one slot
]]
]==] .. "-- ' \" \\ \t \1 \195\188 ??/ %% \r\n" .. ('-- long\n'):rep(1000) .. 'return {1} --\127'

describe('generate.lua', function()
  local folder

  local function run(scripts, c_file, lua_file)
    return utils.executeex(('luajit tools/generate.lua --scripts %s --c %s --lua %s'):format(
      scripts, c_file, lua_file))
  end

  local function generate(scripts)
    local ok, _, _, why = run(scripts, folder .. '/e.c', folder .. '/e.lua')
    assert.is_true(ok, why)
    return utils.readfile(folder .. '/e.c', true), utils.readfile(folder .. '/e.lua', true)
  end

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    dir.makepath(folder .. '/scripts/odd')
    utils.writefile(folder .. '/scripts/odd/bytes.lua', SCRIPT, true)
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  it('writes C that compiles without a warning and holds every byte of a script', function()
    generate(folder .. '/scripts')
    utils.writefile(folder .. '/reader.c', READER)

    local root = path.currentdir()
    local ok, _, out, why = utils.executeex(
      ("cd '%s' && cc %s -I'%s/c/include' -I'%s/c/src' e.c reader.c -o reader && ./reader"):format(
        folder, STRICT, root, root))

    assert.is_true(ok, why)
    assert.equal('odd/bytes 2.1.0 ' .. catalog.read(folder .. '/scripts')[1].sha1 .. ' 3\n'
      .. ' one/string/1// two/hash/2/p/who\n'
      .. ' who/caller/0// channel/channel/3/s/ tag/channel/4/b/\n'
      .. '{1}\n{0, n}\n', out)
    assert.equal(SCRIPT, utils.readfile(folder .. '/out_0', true))
  end)

  it('writes a Lua table of names, hashes, shapes and headers', function()
    generate('scripts')

    local rows = dofile(folder .. '/e.lua')

    local scripts = catalog.read('scripts')
    assert.equal(#scripts, #rows)
    for i, script in ipairs(scripts) do
      assert.equal(script.name, rows[i].name)
      assert.equal(script.sha1, rows[i].sha1)
      assert.same(script.header, rows[i].header)
      assert.equal(script.header.returns[1].shape, rows[i].shapes:match('^[^\n]+'))
    end
  end)

  it('writes the same bytes again', function()
    local c_text, lua_text = generate('scripts')

    assert.same({ c_text, lua_text }, { generate('scripts') })
  end)

  it('refuses a script whose header is wrong, and writes nothing', function()
    utils.writefile(folder .. '/scripts/odd/wrong.lua', (SCRIPT:gsub('2.1.0', '2')))

    local ok, code, _, why = run(folder .. '/scripts', folder .. '/e.c', folder .. '/e.lua')

    assert.is_false(ok)
    assert.equal(1, code)
    assert.matches('wrong.lua:4: header: a version is', why, 1, true)
    assert.is_false(path.exists(folder .. '/e.c'))
  end)

  it('refuses a folder without scripts', function()
    dir.rmtree(folder .. '/scripts/odd')

    local _, code, _, why = run(folder .. '/scripts', folder .. '/e.c', folder .. '/e.lua')

    assert.equal(1, code)
    assert.matches('no script there', why, 1, true)
  end)

  it('refuses wrong use', function()
    local _, code = utils.executeex('luajit tools/generate.lua --scripts scripts')

    assert.equal(64, code)
  end)

  it('says that a file cannot be written', function()
    local _, code, _, why = run('scripts', folder .. '/none/e.c', folder .. '/e.lua')

    assert.equal(1, code)
    assert.matches('none/e.c', why, 1, true)
  end)
end)

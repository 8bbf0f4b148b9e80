-- SPDX-License-Identifier: Apache-2.0
local cjson = require('cjson')
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local bundle = require('latchkey.bundle')
local digest = require('latchkey.digest')
local functions = require('latchkey.bundle.functions')
local gzip = require('latchkey.bundle.gzip')
local manifest = require('latchkey.bundle.manifest')
local tar = require('latchkey.bundle.tar')

local SCHEMA = 'tools/latchkey/bundle/manifest.schema.json'
local ABOUT = { name = 'small', version = '1.2.3' }

-- Every seventh byte is tried, so that each bit of a byte has its turn: from the first under
-- LuaJIT, from another under PUC Lua.
local FIRST, STEP = rawget(_G, 'jit') and 1 or 4, 7

local SCRIPT = [==[
#!lua flags=no-writes
--[[ latchkey-script
name:     a/b
version:  1.0.0
summary:  S.
returns:
  - {1}  done
cost:     at most 0 commands
cluster:  one slot
]]
return {1}
]==]

describe('a bundle', function()
  local folder

  local function write(name, text)
    local file = path.join(folder, name)
    dir.makepath(path.dirname(file))
    assert(utils.writefile(file, text, true))
    return file
  end

  local function pack()
    return assert(bundle.pack(ABOUT, folder, 'Free.\n'))
  end

  -- The bytes of a bundle of these files, in the right form whatever they say.
  local function sealed(files, top)
    return gzip.pack(tar.pack(top or 'small-1.2.3', files))
  end

  local function refuses(bytes, words)
    local contents, why = bundle.read(bytes)

    assert.is_nil(contents)
    assert.matches(words, why, 1, true)
  end

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    write('a/b.lua', SCRIPT)
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  it('is the same bytes again, and wherever the folder is', function()
    local bytes = pack().bytes
    local elsewhere = os.tmpname()
    os.remove(elsewhere)
    dir.makepath(elsewhere .. '/a')
    assert(utils.writefile(elsewhere .. '/a/b.lua', SCRIPT, true))

    local again = assert(bundle.pack(ABOUT, elsewhere, 'Free.\n'))

    dir.rmtree(elsewhere)
    assert.equal(bytes, again.bytes)
    assert.equal(digest.sha256(bytes), again.sha256)
  end)

  it('is what these bytes have always been', function()
    -- On every machine, under every Lua. The pages are in it: a change of theirs changes it, too.
    assert.equal('b931e7da2ccc82fbd4ad3beaa56f2e497ef2053516d56942121ef7484801cb58', pack().sha256)
  end)

  it('is an archive that tar and gzip read', function()
    local file = write('out.tar.gz', pack().bytes)

    local good, _, listed, why =
      utils.executeex(('gzip -t %s && tar -xOzf %s small-1.2.3/scripts/a/b.lua'):format(file, file))

    assert.is_true(good, why)
    assert.equal(SCRIPT, listed)
  end)

  it('holds scripts, function libraries, pages, licence and manifest', function()
    local names = {}
    for name in pairs(pack().files) do
      names[#names + 1] = name
    end

    table.sort(names)
    assert.same({ 'LICENSE', 'docs/README.md', 'docs/a/b.md', 'functions/a_b_1.lua',
      'manifest.json', 'scripts/a/b.lua' }, names)
  end)

  it('has a manifest of its scripts\' digests, keys, arguments, replies and flags', function()
    local contents = assert(bundle.pack(ABOUT, 'scripts'))
    local document = cjson.decode(contents.files['manifest.json'])

    local row
    for _, script in ipairs(document.scripts) do
      row = script.name == 'lock/release' and script or row
    end
    local source = utils.readfile('scripts/lock/release.lua', true)
    assert.equal(digest.sha256(source), row.file.sha256)
    assert.equal(digest.sha1(source), row.sha1)
    assert.same({ 'allow-oom' }, row.flags)
    assert.same({ name = 'lock', type = 'hash', access = 'rw', form = '{name}', marks = {},
      text = 'owner -> hold count; its TTL is the lease' }, row.keys[1])
    assert.same({ name = 'lease', type = 'ms', range = { 50, 86400000 }, optional = false,
      text = row.argv[1].text }, row.argv[1])
    assert.equal('{1, hold}', row.returns[1].shape)
    assert.equal('lock_release_1', row['function'].name)
    assert.same({ redis = '7.0.0', valkey = '7.2.0' }, document.server)
  end)

  it('has a manifest that fits its JSON Schema, and the schema refuses others', function()
    if not utils.executeex('jsonschema --version') then
      pending('jsonschema is not installed')
      return
    end
    local text = assert(bundle.pack(ABOUT, 'scripts', 'Free.\n')).files['manifest.json']
    local document = cjson.decode(text)
    document.scripts[1].sha1 = 'short'
    local good, bad = write('good.json', text), write('bad.json', cjson.encode(document))

    local fits, _, _, why = utils.executeex(('jsonschema -i %s %s'):format(good, SCHEMA))
    local fits_too = utils.executeex(('jsonschema -i %s %s'):format(bad, SCHEMA))

    assert.is_true(fits, why)
    assert.is_false(fits_too)
  end)

  it('is refused when any one byte is another', function()
    local bytes = pack().bytes
    local read = {}
    for place = FIRST, #bytes, STEP do
      -- Another bit for each place, so that all kinds of changes come up.
      local changed = (bytes:byte(place) + 2 ^ (place % 8)) % 256
      if bundle.read(bytes:sub(1, place - 1) .. string.char(changed) .. bytes:sub(place + 1)) then
        read[#read + 1] = place
      end
    end

    assert.same({}, read)
  end)

  it('is refused when any one byte of the archive is another and its checksum made to fit',
    function()
      local archive = gzip.unpack(pack().bytes)
      local read = {}
      for place = FIRST, #archive, STEP do
        local changed = (archive:byte(place) + 2 ^ (place % 8)) % 256
        if bundle.read(gzip.pack(archive:sub(1, place - 1) .. string.char(changed)
          .. archive:sub(place + 1))) then
          read[#read + 1] = place
        end
      end

      assert.same({}, read)
    end)

  it('is refused wherever it is cut off, and with anything behind its end', function()
    local bytes = pack().bytes
    local read = {}
    for length = 0, #bytes - 1, STEP do
      if bundle.read(bytes:sub(1, length)) then
        read[#read + 1] = length
      end
    end

    assert.same({}, read)
    refuses(bytes .. '\0', 'damaged or cut off')
    refuses(bytes .. bytes, 'damaged or cut off')
  end)

  it('is refused when it was compressed by another program', function()
    local file = write('out.tar', gzip.unpack(pack().bytes))
    utils.executeex('gzip -9 ' .. file)

    refuses(utils.readfile(file .. '.gz', true), 'not written by latchkey bundle')
  end)

  it('is refused with paths that climb out, or that are hidden', function()
    for _, name in ipairs({ '../evil', 'scripts/../../evil', '/etc/evil', 'scripts//x', './x',
      'scripts/.x', '-x', 'a\nb' }) do
      local files = pack().files
      files[name] = 'x'

      refuses(sealed(files), 'is not a path of a bundle')
    end
    refuses(sealed(pack().files, '..'), 'is not a path of a bundle')
    refuses(sealed(pack().files, 'a/b'), 'is not a path of a bundle')
  end)

  it('is refused with anything but plain files', function()
    local archive = gzip.unpack(pack().bytes)
    for _, kind in ipairs({ '1', '2', '3', '5', 'L', 'x' }) do
      refuses(gzip.pack(archive:sub(1, 156) .. kind .. archive:sub(158)), 'is not a plain file')
    end
  end)

  it('is refused with a file that is too large, and with too many', function()
    local files = pack().files
    files['docs/large.md'] = ('x'):rep(1024 * 1024 + 1)
    refuses(sealed(files), '"docs/large.md" is larger than 1048576 bytes')

    files['docs/large.md'] = nil
    for i = 1, 4000 do
      files['docs/' .. i] = ''
    end
    refuses(sealed(files), 'more than 4000 files')
  end)

  it('is refused when it is too large as a whole, before it is read', function()
    local file = write('large', '')
    assert(io.open(file, 'wb')):close()
    local out = assert(io.open(file, 'r+b'))
    out:seek('set', bundle.BYTES_MAX)
    out:write('x')
    out:close()

    local bytes, why = bundle.bytes_of(file)

    assert.is_nil(bytes)
    assert.matches('is larger than 16777216 bytes', why, 1, true)
    refuses(('x'):rep(bundle.BYTES_MAX + 1), 'is larger than 16777216 bytes')
  end)

  it('is refused when its manifest lies, and says where', function()
    local function lie(change)
      local files = pack().files
      local text, count = files['manifest.json']:gsub(change[1], change[2], 1)
      assert.equal(1, count)
      files['manifest.json'] = text
      refuses(sealed(files), change[3])
    end

    lie({ '"sha1": "%x+"', '"sha1": "' .. ('0'):rep(40) .. '"', 'look at scripts[0].sha1' })
    lie({ '"version": "1.0.0"', '"version": "1.0.1"', 'look at scripts[0].version' })
    lie({ '"no%-writes"', '"allow-oom"', 'look at scripts[0].flags[0]' })
    lie({ '"redis": "7.0.0"', '"redis": "6.0.0"', 'look at server.redis' })
    lie({ '"bytes": %d+', '"bytes": 1', 'look at files[0].bytes' })
    lie({ 'small', 'other', 'its folder is small-1.2.3' })
    lie({ 'manifest/1"', 'manifest/2"', 'a form that this version does not know' })
    lie({ '{', '{"extra": 1,', 'look at extra' })
    lie({ '{', '{{', 'not JSON' })
    lie({ '"small"', '["small"]', 'has no name' })
  end)

  it('is refused with a file too many or too few, or another than its manifest has', function()
    local function change(name, text, words)
      local files = pack().files
      files[name] = text
      refuses(sealed(files), words)
    end

    change('docs/more.md', 'x', 'look at files')
    change('docs/a/b.md', nil, 'look at files')
    change('LICENSE', 'Other.\n', 'look at files[0]')
    change('manifest.json', nil, 'manifest.json is missing')
    change('scripts/a/b.lua', SCRIPT:gsub('{1}\n$', '{2}\n'), 'functions/a_b_1.lua is missing or')
    change('scripts/a/b.lua', nil, 'functions/a_b_1.lua is missing or')
    change('functions/a_b_1.lua', nil, 'functions/a_b_1.lua is missing or')
    change('functions/more.lua', '#!lua name=more', 'functions/more.lua is missing or')
    change('scripts/a/c.lua', SCRIPT, 'the script is named a/b but its file is scripts/a/c.lua')
  end)

  it('is not built of wrong headers, of no scripts, or of code that does not compile', function()
    local function fails(words)
      local contents, why = bundle.pack(ABOUT, folder)
      assert.is_nil(contents)
      assert.matches(words, why, 1, true)
    end

    write('a/b.lua', (SCRIPT:gsub('1%.0%.0', '1')))
    fails('a/b.lua:4: header: a version is')
    write('a/b.lua', SCRIPT .. 'end} redis.register_function{function_name="x", callback=print')
    fails("a/b:12: '<eof>' expected near 'end'")
    write('a/b.lua', SCRIPT)
    write('a_b/c.lua', (SCRIPT:gsub('a/b', 'a_b/c')))
    write('a/b_c.lua', (SCRIPT:gsub('a/b', 'a/b_c')))
    fails('would be one function, a_b_c_1')
    dir.rmtree(folder)
    dir.makepath(folder)
    fails('has no scripts')
  end)

  describe('of scripts with contracts beside them', function()
    local BARE = "if redis.call('get', KEYS[1]) then\n  return 1\nend\nreturn 0\n"
    local CONTRACT = [[
name:     c/d
version:  1.0.0
sha1:     %s
summary:  S.
keys:
  - lock  string  r  acme:{name}:lock  the owner
returns:
  - 1  held
  - 0  free
cost:     at most 1 commands
cluster:  one slot
]]

    before_each(function()
      write('c/d.lua', BARE)
      write('c/d.contract', CONTRACT:format(digest.sha1(BARE)))
    end)

    it('holds the contracts, and lays them out again', function()
      local contents = pack()
      local document = cjson.decode(contents.files['manifest.json'])
      local out = path.join(folder, 'out')

      assert(bundle.unpack(contents, out))

      assert.equal('scripts/c/d.contract', document.scripts[2].contract.path)
      assert.is_nil(document.scripts[1].contract)
      assert.equal(BARE, utils.readfile(out .. '/c/d.lua', true))
      assert.equal(utils.readfile(folder .. '/c/d.contract', true),
        utils.readfile(out .. '/c/d.contract', true))
    end)

    it('names channels that a script forms itself, in its manifest and on its page', function()
      write('c/d.contract', (CONTRACT:format(digest.sha1(BARE)):gsub('returns:',
        'channels:\n  - bell  acme:{name}:bell  told\nreturns:'):gsub('cost:',
        'message:  value\ncost:')))

      local files = pack().files
      local listed = cjson.decode(files['manifest.json']).scripts

      assert.same({ { name = 'bell', type = 'channel', form = 'acme:{name}:bell', text = 'told' } },
        listed[2].channels)
      assert.is_nil(listed[1].channels)
      assert.matches('## Channels.-`bell` | channel | `acme:N:bell` | told',
        files['docs/c/d.md'])
    end)

    it('has them as functions, whose first line is code', function()
      local world = require('latchkey.mock.world').new({ strict = false })
      local code = pack().files['functions/c_d_1.lua']

      assert.equal(functions.name('c/d', '1.0.0'), world:command('FUNCTION', 'LOAD', code))

      assert.equal(0, world:command('FCALL', 'c_d_1', 1, 'k'))
      world:command('SET', 'k', 'x')
      assert.equal(1, world:command('FCALL', 'c_d_1', 1, 'k'))
    end)

    it('is refused with a contract of another text, and with one of no script', function()
      local files = pack().files
      files['scripts/c/d.lua'] = BARE .. '\n'
      refuses(sealed(files), 'scripts/c/d.contract, line 3: the contract is of another text')

      files['scripts/c/d.lua'] = nil
      refuses(sealed(files), 'scripts/c/d.contract is a contract of no script')
    end)

    it('is not built where a script takes what functions have not', function()
      local source = 'return ...\n'
      write('c/d.lua', source)
      write('c/d.contract', CONTRACT:format(digest.sha1(source)))

      local contents, why = bundle.pack(ABOUT, folder)

      assert.is_nil(contents)
      assert.matches("c/d:1: cannot use '...' outside a vararg function", why, 1, true)
    end)
  end)

  it('can be laid out as a folder of scripts', function()
    local out = path.join(folder, 'out')

    assert(bundle.unpack(pack(), out))

    assert.equal(SCRIPT, utils.readfile(out .. '/a/b.lua', true))
  end)

  it('has a name and a version that can stand in file names', function()
    assert.is_nil(bundle.check_name('my-scripts2', '10.0.1'))
    for _, name in ipairs({ '', 'My', '-x', 'a/b', '..', ('x'):rep(64) }) do
      assert.is_string(bundle.check_name(name, '1.0.0'), name)
    end
    for _, version in ipairs({ '', '1', '1.0', '1.0.0-rc', '1.0.0\n' }) do
      assert.is_string(bundle.check_name('x', version), version)
    end
  end)

  it('says of every script in the project what its header says', function()
    local contents = assert(bundle.pack(ABOUT, 'scripts'))

    assert.is_true(#contents.scripts > 40)
    assert.equal(manifest.SCHEMA, cjson.decode(contents.files['manifest.json']).schema)
  end)
end)

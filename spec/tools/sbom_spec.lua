-- SPDX-License-Identifier: Apache-2.0
-- What the build says that the library is made of, beside what other tools see in it.
local cjson = require('cjson')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local helper = require('helper')

local LIBRARY = os.getenv('LATCHKEY_LIB') or helper.root .. '/build/liblatchkey.so'

describe('tools/sbom.lua', function()
  local document, text

  local function made(options, environment)
    local file = os.tmpname()
    local ok, _, _, err = utils.executeex(("cd '%s' && %s luajit tools/sbom.lua --file '%s' --name "
      .. "liblatchkey --type library --version 1.2.3 --epoch 86400 -o '%s' %s"):format(helper.root,
      environment or '', LIBRARY, file, options))
    assert(ok, err)
    local said = utils.readfile(file, true)
    os.remove(file)
    return said
  end

  setup(function()
    text = made('--hiredis 1.2.0 --scripts scripts')
    document = cjson.decode(text)
  end)

  local function named(pattern)
    local names = {}
    for _, component in ipairs(document.components) do
      if component.name:find(pattern) then
        names[#names + 1] = component.name
      end
    end
    table.sort(names)
    return names
  end

  it('is a document of CycloneDX 1.5 about the library', function()
    assert.equal('CycloneDX', document.bomFormat)
    assert.equal('1.5', document.specVersion)
    assert.equal('1970-01-02T00:00:00Z', document.metadata.timestamp)
    assert.equal('liblatchkey', document.metadata.component.name)
    assert.equal('1.2.3', document.metadata.component.version)
  end)

  it('names each library that readelf sees, and no other', function()
    local _, _, said = utils.executeex(("LC_ALL=C readelf -d '%s'"):format(LIBRARY))
    local wanted = {}
    for soname in said:gmatch('%(NEEDED%)[^\n]*%[(.-)%]') do
      wanted[#wanted + 1] = soname
    end
    table.sort(wanted)

    assert.is_true(#wanted > 0)
    assert.same(wanted, named('%.so[%d.]*$'))
  end)

  it('has each script with the digest that a server knows it by', function()
    local scripts = catalog.read(helper.root .. '/scripts')
    assert.equal(#scripts, #named('^scripts/'))
    for _, component in ipairs(document.components) do
      local name = component.name:match('^scripts/(.*)%.lua$')
      if name then
        assert.equal(scripts[name].sha1, component.hashes[1].content)
        assert.equal(scripts[name].header.version, component.version)
      end
    end
  end)

  it('has hiredis where it is built in, and there alone', function()
    assert.same({ 'hiredis' }, named('^hiredis$'))
    assert.is_nil(made(''):find('"name":"hiredis"', 1, true))
  end)

  it('calls each component by a name of its own, on which the library depends', function()
    local seen, refs = {}, document.dependencies[1].dependsOn
    for i, component in ipairs(document.components) do
      assert.is_nil(seen[component['bom-ref']])
      seen[component['bom-ref']] = true
      assert.equal(component['bom-ref'], refs[i])
    end
    assert.equal(#document.components, #refs)
  end)

  it('asks programs in folders of any name', function()
    local folder = os.tmpname()
    os.remove(folder)
    folder = folder .. " it's ü"
    assert(utils.execute(('mkdir %s && ln -s "$(command -v objdump)" "$(command -v cc)" %s')
      :format(utils.quote_arg(folder), utils.quote_arg(folder))))
    local options = (' --objdump %s --compiler %s'):format(utils.quote_arg(folder .. '/objdump'),
      utils.quote_arg(folder .. '/cc'))

    local said = made('--hiredis 1.2.0 --scripts scripts' .. options)
    utils.execute('rm -r ' .. utils.quote_arg(folder))

    assert.equal(text, said)
  end)

  -- Where an older latchkey is installed, the compiler finds its library.
  it('names its own library by the version that is built, whatever is installed', function()
    local folder = os.tmpname()
    os.remove(folder)
    assert(utils.execute('mkdir ' .. folder))
    local function fake(name, lines)
      assert(utils.writefile(folder .. '/' .. name, '#!/bin/sh\n' .. lines))
      assert(utils.execute(('chmod +x %s/%s'):format(folder, name)))
    end
    assert(utils.writefile(folder .. '/liblatchkey.so.0', ''))
    fake('cc', ('echo %s/liblatchkey.so.0\n'):format(folder))
    fake('objdump', "echo '  NEEDED               liblatchkey.so.0'\n")
    fake('dpkg-query', ('case $1 in\n-S) echo "liblatchkey0: %s/liblatchkey.so.0" ;;\n'
      .. "*) printf '0.0.9-1 amd64' ;;\nesac\n"):format(folder))

    local said = made(('--objdump %s/objdump --compiler %s/cc'):format(folder, folder),
      ('PATH=%s:$PATH'):format(folder))
    utils.execute('rm -r ' .. folder)

    assert.same({ { type = 'library', name = 'liblatchkey.so.0', scope = 'required',
      version = '1.2.3', ['bom-ref'] = 'liblatchkey.so.0' } }, cjson.decode(said).components)
  end)

  it('is the same bytes each time', function()
    assert.equal(text, made('--hiredis 1.2.0 --scripts scripts'))
  end)
end)

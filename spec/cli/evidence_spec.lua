-- SPDX-License-Identifier: Apache-2.0
-- Bundles that carry what was shown about their scripts.
local dir = require('pl.dir')
local utils = require('pl.utils')

local bundles = require('latchkey.bundle')
local catalog = require('latchkey.script.catalog')
local envelope = require('latchkey.bundle.envelope')
local evidence = require('latchkey.bundle.evidence')
local pages = require('latchkey.bundle.pages')
local program = require('cli.program')
local SCRIPT = require('support.own_count')

local function is_lint(name)
  return name == 'lint'
end

-- What a statement says that has lint alone.
local function others_are_not_made()
  local missing = {}
  for _, part in ipairs(evidence.exact()) do
    missing[#missing + 1] = not is_lint(part.name) and evidence.not_made(part) or nil
  end
  return missing
end

describe('a bundle with evidence', function()
  local folder

  before_each(function()
    folder = program.folder()
    assert(dir.makepath(folder .. '/my'))
    assert(utils.writefile(folder .. '/my/count.lua', SCRIPT, true))
  end)

  after_each(program.clean)

  -- A bundle with a statement that lint came to so many findings more than it does.
  local function bundle(more, key, change)
    local file, statement = program.folder() .. '/mine.tar.gz', program.folder() .. '/evidence.json'
    local parts = evidence.make(folder, is_lint)
    parts[1].figures.findings = parts[1].figures.findings + more
    local text = evidence.write({ version = '0.1.0', commit = 'c0ffee', date = '2026-11-22' },
      catalog.read(folder), change and change(parts) or parts, others_are_not_made())
    assert(utils.writefile(statement, key and assert(envelope.sign(text, key)) or text, true))
    local result = program.run({ 'bundle', folder, '--name', 'mine', '--set-version', '1.0.0', '-o',
      file, '--evidence', statement })
    return file, result
  end

  local function verify(...)
    return program.run({ 'verify', '--allow-unsigned', ... })
  end

  it('shows it, and what it does not cover', function()
    local result = verify('--evidence', (bundle(0)))

    assert.equal(0, result.code, result.err)
    assert.matches('\nlint +%d findings .*latchkey lint\n', result.out)
    assert.truthy(result.out:find('\n  ' .. evidence.NOT_COVERED[1], 1, true))
  end)

  it('is made again with --redo, and comes out the same', function()
    local result = verify('--evidence', '--redo', (bundle(0)))

    assert.equal(0, result.code, result.err)
    assert.matches('made again:\nlint +the same\n', result.out)
    assert.matches('\npages +the same\n', result.out)
  end)

  it('is found out with --redo when a reference page says what its script does not', function()
    local file = bundle(0)
    local whole = assert(bundles.read(assert(utils.readfile(file, true))))
    local all = pages.all
    pages.all = function(scripts)
      local made = all(scripts)
      made['README.md'] = made['README.md'] .. 'They are fast.\n'
      return made
    end
    local changed = bundles.pack(whole, folder, nil, whole.files[evidence.FILE])
    pages.all = all
    assert(utils.writefile(file, assert(changed).bytes, true))
    os.remove(file .. '.sha256')

    local result = verify('--evidence', '--redo', file)

    assert.equal(1, result.code, result.err)
    assert.matches('\npages +docs/README.md is not what this version makes of the scripts\n',
      result.out)
  end)

  it('is made again nowhere where TMPDIR has no room for scripts, which it says', function()
    local file = bundle(0)

    local result = program.run({ 'verify', '--allow-unsigned', '--evidence', '--redo', file },
      { env = { TMPDIR = '/no/such/folder' } })

    assert.equal(64, result.code, result.err)
    assert.truthy(result.err:find('no folder for the scripts of the bundle: /no/such/folder', 1,
      true), result.err)
  end)

  it('is found out with --redo when it said what does not come out', function()
    local result = verify('--evidence', '--redo', '--json', (bundle(1)))

    assert.equal(1, result.code)
    local again = program.decode(result.out).again
    assert.is_true(again[1].differs)
    assert.matches('^was findings', again[1].outcome)
  end)

  -- As tools/release writes what failed, and what the checker found.
  local function with_failures(parts)
    parts[#parts + 1] = { name = 'mutants', command = 'tools/test --only mutants', exact = false,
      minutes = 20, says = 'FAILED (exit code 1): 3 live' }
    parts[#parts + 1] = { name = 'check mine', command = 'latchkey check mine', exact = true,
      minutes = 1, says = 'VIOLATED', bounds = 'clients=2', figures = { runs = 1 } }
    return parts
  end

  it('that says that a part failed does not pass, however often that comes out', function()
    local file, made = bundle(0, nil, with_failures)

    assert.equal(0, made.code, made.err)
    assert.matches('2 parts failed: mutants, check mine', made.err)
    for _, words in ipairs({ { '--evidence', file }, { '--evidence', '--redo', file } }) do
      local result = verify(unpack(words))

      assert.equal(1, result.code, result.err)
      assert.matches('\n2 parts failed: mutants, check mine\n$', result.out)
    end
    local result = verify('--evidence', '--json', file)
    assert.equal(1, result.code)
    assert.same({ 'mutants', 'check mine' }, program.decode(result.out).failed)
    assert.same({}, program.decode(verify('--evidence', '--json', (bundle(0))).out).failed)
  end)

  it('is not believed with --redo where nothing can be made again', function()
    local file = bundle(0, nil, function() return {} end)
    local none = program.run({ 'verify', '--allow-unsigned', '--evidence', '--redo', file })

    assert.equal(1, none.code)
    assert.matches('lint +not in the evidence, which does not say so\n', none.out)
    assert.matches('nothing could be made again\n', none.out)
  end)

  -- Files of a private key and of its public half.
  local function keys(name)
    local key = folder .. '/../' .. name
    assert(utils.executeex(("cd %s && rm -f %s && ssh-keygen -q -t ecdsa -b 256 -m PKCS8 -N '' "
      .. '-f %s && openssl pkey -in %s -pubout -out %s.pem'):format(folder, key, key, key, key)))
    return key, key .. '.pem'
  end

  it('is taken when the key that is asked for signed it', function()
    local key, public = keys('mine')
    local file = bundle(0, key)

    local result = verify('--evidence', '--evidence-key', public, file)

    assert.equal(0, result.code, result.err)
    assert.matches('\nevidence: signed with key %x+\nmade by .*\nlint +%d findings', result.out)
    assert.matches('\nevidence: its signature is not checked', verify('--evidence', file).out)
  end)

  it('is refused when another key signed it, or none', function()
    local key = keys('mine')
    local _, other = keys('other')

    for _, file in ipairs({ (bundle(0, key)), (bundle(0)) }) do
      local result = verify('--evidence', '--evidence-key', other, file)

      assert.equal(1, result.code)
      assert.equal('', result.out)
      assert.matches('the evidence is not signed', result.err)
    end
  end)

  it('is not made of a statement about other scripts', function()
    local file = bundle(0)
    assert(utils.writefile(folder .. '/my/count.lua', (SCRIPT:gsub('HLEN', 'HSTRLEN')), true))
    local statement = program.folder() .. '/other.json'
    assert(utils.writefile(statement, evidence.write({ version = '0.1.0', commit = 'c0ffee',
      date = '2026-11-22' }, {}, {}, {}), true))
    local result = program.run({ 'bundle', folder, '--name', 'mine', '--set-version', '1.0.0', '-o',
      file, '--evidence', statement })

    assert.equal(1, result.code)
    assert.matches('says nothing about scripts/my/count.lua', result.err)
  end)

  it('is asked for in vain where there is none', function()
    local file = program.folder() .. '/bare.tar.gz'
    assert.equal(0, program.run({ 'bundle', folder, '--name', 'mine', '--set-version', '1.0.0',
      '-o', file }).code)

    local result = verify('--evidence', file)
    assert.equal(1, result.code)
    assert.matches('carries no evidence', result.err)
    assert.equal(64, verify('--redo', file).code)
  end)
end)

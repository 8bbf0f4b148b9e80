-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local changelog = require('lib.changelog')
local helper = require('helper')
local ledger = require('latchkey.script.ledger')

local HEAD = '# name\tversion\tsha1\tsince\n'

describe('tools/release', function()
  local clone

  local function shell(command_line)
    local ok, code, out, err = utils.executeex(('cd %s && %s'):format(clone, command_line))
    return ok, code, out, err
  end

  local function commit()
    local ok, _, _, why = shell('git add -A && '
      .. 'git -c user.name=x -c user.email=x@example.com commit -qm change')
    assert.is_true(ok, why)
  end

  local function release(arguments)
    local _, code, out, err = shell('tools/release ' .. arguments)
    return code, out, err
  end

  local function read(file)
    return utils.readfile(clone .. '/' .. file, true)
  end

  local function write(file, text)
    utils.writefile(clone .. '/' .. file, text, true)
  end

  local function change(file, old, new)
    local text, count = read(file):gsub(old, new, 1)
    assert.equal(1, count)
    write(file, text)
  end

  local function tag(name)
    assert.is_true((shell(('git -c user.name=x -c user.email=x@example.com tag -a %s -m %s'):format(
      name, name))))
  end

  local function rows(since)
    local list = {}
    for i, script in ipairs(catalog.read(clone .. '/scripts')) do
      list[i] = table.concat({ script.name, script.header.version, script.sha1, since }, '\t')
    end
    return table.concat(list, '\n') .. '\n'
  end

  -- The section of what is not released, with a row for each script of the clone.
  local function unreleased(skipped)
    local lines = { '## Unreleased\n' }
    for _, script in ipairs(catalog.read(clone .. '/scripts')) do
      if script.name ~= skipped then
        lines[#lines + 1] = ('| %s | %s | new |'):format(script.name, script.header.version)
      end
    end
    return table.concat(lines, '\n') .. '\n'
  end

  -- Two families do: what is said of a script is said of each.
  setup(function()
    clone = os.tmpname()
    os.remove(clone)
    dir.makepath(clone .. '/tools')
    dir.makepath(clone .. '/scripts')
    assert.is_true((utils.execute(('cp -r scripts/_fragments scripts/lock scripts/mutex %s/scripts '
      .. '&& cp -r tools/release tools/lib tools/latchkey %s/tools'):format(clone, clone))))
    write('scripts/released.tsv', HEAD)
    write('VERSION', '0.1.0\n')
    write('CHANGELOG.md', '# Changelog\n\n' .. unreleased() .. '\n## 0.0.1\n\n- old\n')
    assert.is_true((shell('git init -q')))
    commit()
    assert.is_true((shell('git branch begin')))
  end)

  before_each(function()
    assert.is_true((shell('git reset -q --hard begin && git clean -fdqx '
      .. '&& git tag | xargs -r git tag -d')))
  end)

  teardown(function()
    dir.rmtree(clone)
  end)

  it('appends a row for every script, and says so', function()
    local code, out, err = release('0.1.0')

    assert.equal(0, code, err)
    assert.equal(HEAD .. rows('0.1.0'), read('scripts/released.tsv'))
    assert.equal('0.1.0\n', read('VERSION'))
    assert.matches(rows('0.1.0'), out, 1, true)
    assert.equal('# Changelog\n\n' .. unreleased():gsub('Unreleased', '0.1.0')
      .. '\n## 0.0.1\n\n- old\n', read('CHANGELOG.md'))
  end)

  it('appends only what is new, below what is there', function()
    release('0.1.0')
    local first = read('scripts/released.tsv')
    commit()
    tag('v0.1.0')
    change('scripts/lock/renew.lua', '1%.0%.0', '1.0.1')
    change('CHANGELOG.md', '## ', '## Unreleased\n\n| lock/renew | 1.0.1 | words |\n\n## ')
    commit()

    local code, _, err = release('0.1.1')

    assert.equal(0, code, err)
    local sha1 = catalog.read(clone .. '/scripts')['lock/renew'].sha1
    assert.equal(first .. 'lock/renew\t1.0.1\t' .. sha1 .. '\t0.1.1\n',
      read('scripts/released.tsv'))
    assert.equal('0.1.1\n', read('VERSION'))
  end)

  it('changes nothing in a dry run', function()
    local code, out = release('0.1.1 --dry-run')

    assert.equal(0, code)
    assert.matches(rows('0.1.1'), out, 1, true)
    assert.equal(HEAD, read('scripts/released.tsv'))
    assert.equal('0.1.0\n', read('VERSION'))
    assert.equal('Unreleased', changelog.first(read('CHANGELOG.md')))
  end)

  describe('with --evidence', function()
    local PARTS = 'part\tminutes\tcommand\nquick\t0\techo 3 of; echo 4 fine\n'
      .. 'long\t50\tfalse\n'

    before_each(function()
      write('tools/lib/evidence.tsv', PARTS)
      commit()
    end)

    local function statement()
      return require('cjson').decode(read('evidence.json'))
    end

    it('says of each part what its command said last, and what was not made', function()
      local code, out, err = release('--evidence evidence.json --minutes 0')

      assert.equal(0, code, err)
      assert.matches('quick +4 fine\nevidence.json: 1 parts, 0 failed, ', out)
      local predicate = statement().predicate
      assert.same({ { name = 'quick', command = 'echo 3 of; echo 4 fine', exact = false,
        minutes = 0, says = '4 fine' } }, predicate.parts)
      local left = table.concat(predicate.notCovered, '\n')
      assert.truthy(left:find('not made: long (false)', 1, true))
      assert.truthy(left:find('not made: check lock (latchkey check lock)', 1, true))
      assert.equal('0.1.0', predicate.toolkit.version)
    end)

    it('is about each script of the clone, and about the commit', function()
      release('--evidence evidence.json --minutes 0')

      local made = statement()
      assert.equal(#catalog.read(clone .. '/scripts'), #made.subject)
      local _, _, head = shell('git rev-parse HEAD')
      assert.equal(head:match('%x+'), made.predicate.toolkit.commit)
    end)

    it('says that what is changed beside the commit was checked, too', function()
      write('VERSION', '0.1.1\n')

      release('--evidence evidence.json --minutes 0')

      assert.matches('^%x+, and changes that are not committed$',
        statement().predicate.toolkit.commit)
    end)

    it('ends with 1 where a part failed, and says so in the statement', function()
      write('tools/lib/evidence.tsv', 'part\tminutes\tcommand\nbad\t0\techo so; exit 3\n')

      local code = release('--evidence evidence.json --minutes 0')

      assert.equal(1, code)
      assert.equal('FAILED (exit code 3): so', statement().predicate.parts[1].says)
    end)

    it('signs it, in an envelope that holds the same statement', function()
      local envelope = require('latchkey.bundle.envelope')
      assert(shell("ssh-keygen -q -t ecdsa -b 256 -m PKCS8 -N '' -f key"))
      assert(shell('openssl pkey -in key -pubout -out key.pem'))
      release('--evidence evidence.json --minutes 0')
      local bare = read('evidence.json')

      local code, _, err = release('--evidence evidence.json --minutes 0 --sign key')

      assert.equal(0, code, err)
      assert.equal(bare, (envelope.open(read('evidence.json'))))
      assert.is_truthy(envelope.check(read('evidence.json'), clone .. '/key.pem'))
    end)

    it('refuses a key that cannot sign before it makes anything', function()
      local code, out, err = release('--evidence evidence.json --sign VERSION')

      assert.equal(1, code)
      assert.equal('', out)
      assert.matches('VERSION is not a private key in PEM', err)
    end)
  end)

  local function refuses(arguments, words)
    local before = read('scripts/released.tsv')

    local code, out, err = release(arguments)

    assert.equal(1, code)
    assert.equal('', out)
    assert.matches(words, err, 1, true)
    assert.equal(before, read('scripts/released.tsv'))
  end

  it('refuses a work tree that is not clean', function()
    write('new.txt', '')

    refuses('0.1.0', 'not clean; commit or remove:\n?? new.txt')
  end)

  it('refuses to release outside of git', function()
    assert.is_true((shell('mv .git git.away')))
    finally(function()
      shell('mv git.away .git')
    end)

    refuses('0.1.0', 'no git work tree')
  end)

  it('refuses a version below VERSION, and one that has a tag', function()
    refuses('0.0.9', 'VERSION is 0.1.0 already')
    tag('v0.1.1')
    refuses('0.1.1', 'the tag v0.1.1 exists')
  end)

  it('refuses where the change log says nothing, or has that version already', function()
    refuses('0.0.1', 'a section "## 0.0.1" already')
    release('0.1.0')
    commit()
    refuses('0.1.1', 'says nothing under "## Unreleased"')
    change('CHANGELOG.md', '## ', '## Unreleased\n\n## ')
    commit()
    refuses('0.1.1', 'says nothing under "## Unreleased"')
  end)

  it('refuses where the change log misses a script, or its version', function()
    write('CHANGELOG.md', unreleased('lock/renew'))
    commit()
    refuses('0.1.0', 'does not say what changed in lock/renew 1.0.0')
    write('CHANGELOG.md', unreleased():gsub('(lock/renew | 1%.0)%.0', '%1.9'))
    commit()
    refuses('0.1.0', 'does not say what changed in lock/renew 1.0.0')
  end)

  it('refuses a released script that was changed and kept its version', function()
    release('0.1.0')
    commit()
    change('scripts/lock/renew.lua', '%-%- bind', '-- the names')
    change('CHANGELOG.md', '## ', '## Unreleased\n\n- words\n\n## ')
    commit()

    refuses('0.1.1', 'lock/renew 1.0.0 was released with other bytes')
  end)

  it('refuses wrong use', function()
    assert.equal(64, (release('')))
    assert.equal(64, (release('1.0')))
    assert.equal(64, (release('1.0.0 --quick')))
  end)
end)

describe('the change log of this tree', function()
  local text = assert(utils.readfile(helper.root .. '/CHANGELOG.md', true))

  it('begins with what is not released, or with the version', function()
    local first = changelog.first(text)
    local version = utils.readfile(helper.root .. '/VERSION'):match('%S+')

    assert.truthy(first == changelog.UNRELEASED or first == version, first)
  end)

  it('has each script that is not released, with its version, and no others', function()
    local known = ledger.parse(assert(utils.readfile(helper.root .. '/scripts/released.tsv', true)))
    local wanted = {}
    for _, script in ipairs(assert(catalog.read(helper.root .. '/scripts'))) do
      if not ledger.find(known, script.name, script.header.version) then
        wanted[script.name] = script.header.version
      end
    end

    assert.same(wanted,
      changelog.scripts(changelog.section(text, changelog.UNRELEASED) or ''))
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local program = require('cli.program')

local COUNT = [=[
#!lua flags=no-writes
--[[ latchkey-script
name:     my/count
version:  VERSION
summary:  How many fields a hash has.
keys:
  - counted  hash  r  {name}  what is counted
returns:
  - {1, fields}  so many
repeat:   pure
cost:     at most 1 command
cluster:  one slot
]]
return {1, redis.call('HLEN', KEYS[1]) + ADDED}
]=]

local function run(...)
  return program.run({ ... })
end

local function json(command, ...)
  local result = run(command, '--json', ...)
  return program.decode(result.out), result.code
end

-- A folder with my/count, which adds something to what it counts.
local function scripts(version, added)
  local folder = program.folder()
  assert(dir.makepath(folder .. '/my'))
  local source = COUNT:gsub('VERSION', version):gsub('ADDED', tostring(added))
  assert(utils.writefile(folder .. '/my/count.lua', source, true))
  return folder
end

-- A bundle of it.
local function bundle(version, added, ...)
  local file = program.folder() .. '/mine.tar.gz'
  local result = run('bundle', scripts(version, added), '--name', 'mine', '--set-version', version,
    '-o', file, ...)
  assert.equal(0, result.code, result.err)
  return file
end

local function key(name)
  local file = program.folder() .. '/key'
  assert.equal(0, program.start_any('ssh-keygen', { '-q', '-t', 'ed25519', '-N', '', '-C', name,
    '-f', file }):wait().code)
  return file
end

-- A file that allows these people, each with a key, to sign.
local function signers(people)
  local lines, file = {}, program.folder() .. '/signers'
  for name, private in pairs(people) do
    lines[#lines + 1] = name .. ' ' .. utils.readfile(private .. '.pub')
  end
  table.sort(lines)
  assert(utils.writefile(file, table.concat(lines)))
  return file
end

describe('latchkey bundle', function()
  after_each(program.clean)

  it('writes the project\'s scripts, the same bytes twice, with their digest beside', function()
    local folder = program.folder()

    local first = json('bundle', '-o', folder .. '/a.tar.gz')
    local second = json('bundle', '-o', folder .. '/b.tar.gz')

    assert.equal('latchkey/bundle/1', first.schema)
    assert.equal('latchkey-scripts', first.name)
    assert.equal(utils.readfile(program.root .. '/VERSION'):match('%S+'), first.version)
    assert.equal(first.sha256, second.sha256)
    assert.equal(utils.readfile(folder .. '/a.tar.gz', true),
      utils.readfile(folder .. '/b.tar.gz', true))
    local checked = program.start_any('sh', { '-c', 'cd "$1" && sha256sum -c a.tar.gz.sha256', 'sh',
      folder }):wait()
    assert.equal('a.tar.gz: OK\n', checked.out, checked.err)
  end)

  it('names the file after bundle and version unless it is told', function()
    local folder = program.folder()
    local version = utils.readfile(program.root .. '/VERSION'):match('%S+')

    program.start_any('sh', { '-c', 'cd "$1" && exec "$2" bundle', 'sh', folder, program.path })
      :wait()

    assert.truthy(path.exists(folder .. '/latchkey-scripts-' .. version .. '.tar.gz'))
  end)

  it('does not depend on time, place, user mask or language', function()
    local folder = scripts('1.0.0', 0)
    local digests = {}
    for i, words in ipairs({ 'umask 022; export TZ=UTC LC_ALL=C.UTF-8; cd /',
      'umask 077; export TZ=JST-9 LC_ALL=C; cd "$1"' }) do
      local result = program.start_any('sh', { '-c', words .. '; touch -d 2001-0' .. i
        .. '-01 "$1"/my/count.lua; exec "$2" bundle "$1" --name mine --set-version 1.0.0 '
        .. '-o "$1/b"', 'sh', folder, program.path }):wait()
      assert.equal(0, result.code, result.err)
      digests[i] = assert(utils.readfile(folder .. '/b.sha256'))
      assert(os.remove(folder .. '/b.sha256'))
    end

    assert.equal(digests[1], digests[2])
  end)

  it('takes a folder of one\'s own, with a name and a version', function()
    local folder = scripts('1.0.0', 0)
    assert(utils.writefile(folder .. '/LICENSE', 'Mine.\n'))
    local file = folder .. '/mine.tar.gz'

    local without = run('bundle', folder, '-o', file)
    local odd = run('bundle', folder, '--name', 'My', '--set-version', '1.0.0', '-o', file)
    local with = json('bundle', folder, '--name', 'mine', '--set-version', '2.0.0', '-o', file)

    assert.equal(64, without.code)
    assert.truthy(without.err:find('--name and --set-version', 1, true))
    assert.equal(64, odd.code)
    assert.equal(1, with.scripts)
    local listed = program.start_any('tar', { '-xOzf', file, 'mine-2.0.0/LICENSE' }):wait()
    assert.equal('Mine.\n', listed.out)
  end)

  it('exits 1 for scripts that are none, and writes nothing', function()
    local folder = scripts('1', 0)
    local file = folder .. '/b.tar.gz'

    local result = run('bundle', folder, '--name', 'mine', '--set-version', '1.0.0', '-o', file)

    assert.equal(1, result.code)
    assert.truthy(result.err:find('count.lua:4: header', 1, true))
    assert.is_false(path.exists(file))
  end)

  it('says what is wrong with each script on a line of its own, and nothing else', function()
    local folder = scripts('1', 0)
    assert(utils.writefile(folder .. '/my/other.lua', '#!lua\n', true))
    local nowhere = folder .. '/nowhere'

    local two = run('bundle', folder, '--name', 'mine', '--set-version', '1.0.0', '-o', nowhere)
    local none = run('bundle', nowhere)

    assert.equal(1, two.code)
    assert.truthy(two.err:find('^latchkey bundle: [^\n]*count.lua:4: [^\n]+\n[^\n]*other.lua:2: '
      .. '[^\n]+\n$'), two.err)
    assert.equal(64, none.code)
    assert.truthy(none.err:find(nowhere .. ' is not a folder', 1, true))
  end)

  it('refuses contracts in which something is still to be decided, line by line', function()
    local folder = program.folder()
    assert(dir.makepath(folder .. '/acme'))
    assert(utils.writefile(folder .. '/acme/get.lua', "return redis.call('GET', KEYS[1])\n"))
    assert.equal(0, run('adopt', folder .. '/acme/get.lua').code)

    local result = run('bundle', folder, '--name', 'mine', '--set-version', '1.0.0', '-o',
      folder .. '/b')

    assert.equal(1, result.code)
    assert.matches('acme/get.contract:4: decide: a person must decide here: what it does; write '
      .. 'what is right in the place of "?"\n', result.err, 1, true)
    assert.is_false(path.exists(folder .. '/b'))
    local contract = assert(utils.readfile(folder .. '/acme/get.contract'))
    contract = contract:gsub('no %?[^\n]*', 'no'):gsub('%?[^\n]*', 'decided')
    assert(utils.writefile(folder .. '/acme/get.contract', contract))
    assert.equal(0, run('bundle', folder, '--name', 'mine', '--set-version', '1.0.0', '-o',
      folder .. '/b').code)
  end)

  it('exits 1 where it cannot write, and when it cannot sign', function()
    local folder = scripts('1.0.0', 0)
    local file = folder .. '/b.tar.gz'
    local function to(...)
      return run('bundle', folder, '--name', 'mine', '--set-version', '1.0.0', '-o', ...)
    end

    local nowhere = to('/nowhere/b.tar.gz')
    local unsigned = to(file, '--sign', '/nowhere/key')

    assert.equal(1, nowhere.code)
    assert.equal('latchkey bundle: /nowhere/b.tar.gz: No such file or directory\n', nowhere.err)
    assert.equal(1, unsigned.code)
    assert.truthy(unsigned.err:find('/nowhere/key: No such file or directory\n$'), unsigned.err)
    for _, ending in ipairs({ '', '.sha256', '.sig', '.new' }) do
      assert.is_false(path.exists(file .. ending), ending)
    end
  end)

  it('exits 64 where its output is none that a digest may stand beside', function()
    local words = { 'bundle', scripts('1.0.0', 0), '--name', 'mine', '--set-version', '1.0.0', '-o',
      '/dev/stdout' }

    local file = run(unpack(words))
    local pipe = program.start_any('sh', { '-c', '"$0" "$@" | cat', program.path, unpack(words) })
      :wait()
    words[#words] = '/dev/fd/1'
    local descriptor = run(unpack(words))

    assert.same({ 64, '' }, { file.code, file.out })
    assert.equal('', pipe.out)
    assert.truthy(pipe.err:find('/dev/stdout is no regular file', 1, true), pipe.err)
    assert.same({ 64, '' }, { descriptor.code, descriptor.out })
    assert.is_false(path.exists('/dev/stdout.sha256'))
  end)

  it('leaves an earlier bundle and its signature as they were when it cannot sign', function()
    local private, file = key('ops'), program.folder() .. '/b.tar.gz'
    run('bundle', '-o', file, '--sign', private)
    local before = { utils.readfile(file), utils.readfile(file .. '.sig') }

    local again = run('bundle', '-o', file, '--set-version', '9.9.9', '--sign', '/nowhere/key')

    assert.equal(1, again.code)
    assert.same(before, { utils.readfile(file), utils.readfile(file .. '.sig') })
  end)

  it('leaves an earlier bundle, its digest, its signature where a new one has no room', function()
    local private, file = key('ops'), program.folder() .. '/b.tar.gz'
    run('bundle', '-o', file, '--sign', private)
    local function all()
      return { utils.readfile(file, true), utils.readfile(file .. '.sha256'),
        utils.readfile(file .. '.sig'), #dir.getfiles(path.dirname(file)) }
    end
    local before = all()

    -- Room for all of it but its end, which is written when the file is closed.
    local _, code, _, err = utils.executeex(('trap "" XFSZ; ulimit -f %d; %s bundle -o %s '
      .. '--set-version 9.9.9'):format(math.floor((#before[1] - 1) / 512), program.path, file))

    assert.equal(1, code)
    assert.equal(('latchkey bundle: %s: File too large\n'):format(file), err)
    assert.same(before, all())
  end)

  it('removes a signature of other bytes when it writes without one', function()
    local private, file = key('ops'), program.folder() .. '/b.tar.gz'
    run('bundle', '-o', file, '--sign', private)
    local signed = path.exists(file .. '.sig') ~= false

    run('bundle', '-o', file)

    assert.is_true(signed)
    assert.is_false(path.exists(file .. '.sig'))
  end)
end)

describe('latchkey verify', function()
  after_each(program.clean)

  it('accepts the signature of one who may sign, and says who it is', function()
    local private, other = key('ops'), key('dev')
    local file = bundle('1.0.0', 0, '--sign', private)
    local allowed = signers({ ['ops@example.com'] = private, ['dev@example.com'] = other })

    local document, code = json('verify', file, '--allowed-signers', allowed)

    assert.equal(0, code)
    assert.equal('ops@example.com', document.signer)
    assert.equal('signed by ops@example.com', document.trust)
  end)

  it('finds the signer whose key stands twice, for another purpose first', function()
    local private = key('ops')
    local file = bundle('1.0.0', 0, '--sign', private)
    local allowed = program.folder() .. '/signers'
    local public = utils.readfile(private .. '.pub')

    for first, signer in pairs({ ['namespaces="git,file"'] = 'ops@example.com',
      ['namespaces="latchkey-*,!latchkey-bundle"'] = 'ops@example.com',
      ['Namespaces="git,latchkey-bundl?"'] = 'git@example.com' }) do
      utils.writefile(allowed, ('git@example.com %s %s\n%s %s %s'):format(first, public,
        'ops@example.com', 'namespaces="latchkey-bundle"', public))
      local document, code = json('verify', file, '--allowed-signers', allowed)

      assert.equal(0, code, first)
      assert.equal(signer, document.signer)
    end
  end)

  it('refuses the signature of another, a missing one, and one made for something else', function()
    local private = key('ops')
    local file = bundle('1.0.0', 0, '--sign', private)
    local stranger = run('verify', file, '--allowed-signers',
      signers({ ['dev@example.com'] = key('dev') }))
    program.start_any('ssh-keygen', { '-q', '-Y', 'sign', '-f', private, '-n', 'git',
      file .. '.other' }):wait()
    program.start_any('sh', { '-c', 'ssh-keygen -q -Y sign -f "$1" -n git <"$2" >"$2.sig"', 'sh',
      private, file }):wait()
    local allowed = signers({ ['ops@example.com'] = private })
    local elsewhere = run('verify', file, '--allowed-signers', allowed)
    os.remove(file .. '.sig')
    local missing = run('verify', file, '--allowed-signers', allowed)

    for _, result in ipairs({ stranger, elsewhere, missing }) do
      assert.equal(1, result.code)
      assert.equal('', result.out)
    end
    assert.truthy(stranger.err:find('not of a signer', 1, true))
    assert.truthy(missing.err:find('there is no file', 1, true))
  end)

  it('says of a folder that it is one, and of nothing that it is not there', function()
    local folder = program.folder()

    local is_folder = run('verify', '--allow-unsigned', folder)
    local is_absent = run('verify', '--allow-unsigned', folder .. '/none')

    assert.same({ 1, 1 }, { is_folder.code, is_absent.code })
    assert.truthy(is_folder.err:find(folder .. ' is a folder', 1, true), is_folder.err)
    assert.truthy(is_absent.err:find('there is no file ' .. folder .. '/none', 1, true))
  end)

  it('refuses a signature of other bytes, however good these are', function()
    local private = key('ops')
    local file, other = bundle('1.0.0', 0, '--sign', private), bundle('1.0.0', 1)
    assert(utils.writefile(other .. '.sig', utils.readfile(file .. '.sig')))

    local result = run('verify', other, '--allowed-signers', signers({ ['a@b'] = private }))

    assert.equal(1, result.code)
    assert.truthy(result.err:find('not of a signer', 1, true))
  end)

  it('says "unsigned: integrity only", and takes that only when told', function()
    local file = bundle('1.0.0', 0)

    local refused = run('verify', file)
    local taken = run('verify', file, '--allow-unsigned')
    local document, code = json('verify', file)

    assert.equal(1, refused.code)
    assert.truthy(refused.err:find('unsigned: integrity only', 1, true))
    assert.equal(0, taken.code)
    assert.truthy(taken.out:find('unsigned: integrity only', 1, true))
    assert.equal(1, code)
    assert.equal('REFUSED', document.error.status)
  end)

  it('refuses a file that is not what the digest beside it says', function()
    local file = bundle('1.0.0', 0)
    assert(utils.writefile(file, utils.readfile(bundle('1.0.0', 1), true), true))

    local result = run('verify', file, '--allow-unsigned')

    assert.equal(1, result.code)
    assert.truthy(result.err:find('.sha256 describes', 1, true))
  end)

  it('takes a bundle from a pipe, as diff and eval do', function()
    local file = bundle('1.0.0', 0)
    local function piped(...)
      return program.start_any('sh', { '-c', 'file=$1; shift; cat "$file" | "$0" "$@"',
        program.path, file, ... }):wait()
    end

    local verified = piped('verify', '--allow-unsigned', '/dev/stdin')
    local compared = piped('diff', '/dev/stdin', file)
    local evaluated = piped('eval', '--mock', '--allow-unsigned', '--bundle', '/dev/stdin',
      'my/count', 'k')
    local broken = program.start_any('sh', { '-c',
      'echo x | "$0" verify --allow-unsigned /dev/stdin', program.path }):wait()

    assert.equal(0, verified.code, verified.err)
    assert.truthy(verified.out:find('mine 1.0.0', 1, true), verified.out)
    assert.equal(0, compared.code, compared.err)
    assert.equal(0, evaluated.code, evaluated.err)
    assert.equal(1, broken.code)
    assert.truthy(broken.err:find('/dev/stdin is refused: ', 1, true), broken.err)
  end)

  it('refuses what is no bundle', function()
    local folder = program.folder()
    for name, text in pairs({ empty = '', text = 'hello', zeros = ('\0'):rep(4096) }) do
      assert(utils.writefile(folder .. '/' .. name, text))
      assert.equal(1, run('verify', folder .. '/' .. name, '--allow-unsigned').code)
    end
    assert.equal(1, run('verify', folder, '--allow-unsigned').code)
    assert.equal(1, run('verify', '/dev/zero', '--allow-unsigned').code)
  end)

  it('compares servers with --url: scripts, and function libraries', function()
    local server, file = program.server(), bundle('1.0.0', 0)
    local function verify(...)
      return run('verify', file, '--allow-unsigned', '--url', server.url, ...)
    end

    local before = verify()
    run('load', '--url', server.url, '--bundle', file, '--allow-unsigned')
    local after, functions = verify(), verify('--functions')
    run('load', '--functions', '--url', server.url, '--bundle', file, '--allow-unsigned')
    local after_functions = verify('--functions')
    local absent = run('verify', file, '--allow-unsigned', '--url', 'unix:///nowhere/s')

    assert.same({ 1, 0, 1, 0, 69 },
      { before.code, after.code, functions.code, after_functions.code, absent.code })
    assert.truthy(before.out:find(': lacks or has otherwise %d of %d scripts: my/count\n'))
    assert.truthy(after.out:find('has all 1 scripts', 1, true))
  end)

  it('finds a function library on a server that only looks like the bundle\'s', function()
    local server, file = program.server(), bundle('1.0.0', 0)
    run('load', '--functions', '--url', server.url, '--bundle', bundle('1.0.0', 7),
      '--allow-unsigned')

    local result = run('verify', file, '--allow-unsigned', '--functions', '--url', server.url)

    assert.equal(1, result.code)
    assert.truthy(result.out:find(': lacks or has otherwise %d of %d functions: my/count\n'))
  end)
end)

describe('latchkey diff', function()
  after_each(program.clean)

  it('exits 0 where nothing differs, be it a bundle or a folder', function()
    local result = run('diff', bundle('1.0.0', 0), scripts('1.0.0', 0))

    assert.equal(0, result.code)
    assert.equal('', result.out)
  end)

  it('shows the text of a changed script, and exits 1', function()
    local result = run('diff', bundle('1.0.0', 0), bundle('1.0.1', 1))

    assert.equal(1, result.code)
    assert.truthy(result.out:find('changed  my/count 1.0.0 -> 1.0.1\n', 1, true))
    assert.truthy(result.out:find('\n-return {1, redis.call(', 1, true))
    assert.falsy(result.out:find('  version:', 1, true))
  end)

  it('shows nothing that a terminal obeys', function()
    local result = run('diff', scripts('1.0.0', 0), scripts('1.0.1', '1 --\27[2K\r'))

    assert.equal(1, result.code)
    assert.truthy(result.out:find('1 --\\x1b[2K\\x0d}', 1, true), result.out)
    assert.falsy(result.out:find('[\27\r]'))
  end)

  it('says when the version does not tell', function()
    local result = run('diff', '--names', scripts('1.0.0', 0), scripts('1.0.0', 1))

    assert.equal('changed  my/count 1.0.0 -> 1.0.0\n  version: the bytes differ, but both are '
      .. '1.0.0; needs a patch step: the bytes differ\n', result.out)
  end)

  it('names what was added and removed', function()
    local document, code = json('diff', scripts('1.0.0', 0), program.root .. '/scripts')

    local kinds = {}
    for _, change in ipairs(document.changes) do
      kinds[change.name] = change.change
    end
    assert.equal(1, code)
    assert.equal('removed', kinds['my/count'])
    assert.equal('added', kinds['lock/acquire'])
  end)

  it('exits 64 for what is not there, and 1 for a bundle that is damaged', function()
    local file = bundle('1.0.0', 0)
    assert(utils.writefile(file, utils.readfile(file, true) .. 'x', true))

    assert.equal(64, run('diff', file, '/nowhere').code)
    assert.equal(1, run('diff', file, file).code)
  end)
end)

describe('latchkey docs', function()
  after_each(program.clean)

  it('shows the page of a script, which its header makes', function()
    local result = run('docs', 'lock/release')

    assert.equal(0, result.code)
    assert.truthy(result.out:find('^# lock/release\n'))
    assert.truthy(result.out:find('\n| `{1, hold}` | ', 1, true))
    assert.truthy(result.out:find('\n| `channel` | channel | `redisson_lock__channel:{N}` | ', 1,
      true))
  end)

  it('writes the pages of a folder, with a list of them', function()
    local folder, out = scripts('1.0.0', 0), program.folder()

    local result = run('docs', '--dir', folder, '-o', out)

    assert.equal(0, result.code)
    assert.truthy(utils.readfile(out .. '/README.md'):find('[my/count](my/count.md) | 1.0.0', 1,
      true))
    assert.truthy(utils.readfile(out .. '/my/count.md'):find('^# my/count\n'))
  end)

  it('exits 64 for a script or a folder that does not exist', function()
    assert.equal(64, run('docs', 'lock/nothing').code)
    assert.equal(64, run('docs', '--dir', '/nowhere').code)
  end)
end)

describe('bundles of two versions', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function load(file, ...)
    return run('load', '--url', server.url, '--bundle', file, '--allow-unsigned', ...)
  end

  local function call(name)
    return server:command('FCALL', name, '1', 'job')
  end

  it('are on a server side by side; going back is loading the older one', function()
    local old, new = bundle('1.0.0', 10), bundle('1.1.0', 20)
    load(old)
    load(new)
    local function verify(file)
      return run('verify', file, '--allow-unsigned', '--url', server.url).code
    end

    assert.same({ 0, 0 }, { verify(old), verify(new) })
    server:command('SCRIPT', 'FLUSH')
    load(old)
    assert.same({ 0, 1 }, { verify(old), verify(new) })
  end)

  it('as functions: a higher minor version takes the place of a lower one', function()
    load(bundle('1.0.0', 10), '--functions')
    local before = call('my_count_1')
    local new = bundle('1.1.0', 20)

    local plan = load(new, '--functions', '--dry-run')
    local result = load(new, '--functions')

    assert.truthy(plan.out:find('goes      1  my/count 1.0.0 -> 1.1.0', 1, true))
    assert.equal(0, result.code)
    assert.same({ '1\n10', '1\n20' }, { before, call('my_count_1') })
  end)

  it('as functions: going back is refused as a whole, and done with --replace', function()
    local old = bundle('1.0.0', 10)
    load(bundle('1.1.0', 20), '--functions')

    local refused = load(old, '--functions')
    local kept = call('my_count_1')
    local planned = load(old, '--functions', '--dry-run')
    local forced = load(old, '--functions', '--replace')

    assert.same({ 1, 1 }, { refused.code, planned.code })
    assert.truthy(refused.err:find('my_count_1: the newer 1.1.0 is there', 1, true))
    assert.equal('1\n20', kept)
    assert.truthy(planned.out:find('refused: my_count_1: the newer 1.1.0 is there', 1, true))
    assert.equal(0, forced.code)
    assert.equal('1\n10', call('my_count_1'))
  end)

  it('as functions: where the majors differ, both are there', function()
    load(bundle('1.0.0', 10), '--functions')
    load(bundle('2.0.0', 20), '--functions')

    assert.same({ '1\n10', '1\n20' }, { call('my_count_1'), call('my_count_2') })
  end)

  it('as functions: what is refused on one server is loaded on none', function()
    local other, new = program.server(), bundle('1.1.0', 20)
    load(new, '--functions')

    local result = run('load', '--functions', '--url', other.url .. ' ' .. server.url, '--bundle',
      bundle('1.0.0', 10), '--allow-unsigned')

    assert.equal(1, result.code)
    assert.equal('', other:command('FUNCTION', 'LIST'))
  end)
end)

describe('a function that fails', function()
  after_each(program.clean)

  it('is told by the server with the line that it has in its file', function()
    local server, folder = program.server(), scripts('1.0.0', 0)
    run('load', '--functions', '--dir', folder, '--url', server.url)
    server:command('SET', 'job', 'x')

    local answer = server:command('FCALL', 'my_count_1', '1', 'job')

    local number = 0
    for line in io.lines(folder .. '/my/count.lua') do
      number = number + 1
      if line:find('HLEN', 1, true) then
        break
      end
    end
    assert.truthy(answer:find('@user_function:' .. number .. '.', 1, true), answer)
  end)
end)

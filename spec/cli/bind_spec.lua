-- SPDX-License-Identifier: Apache-2.0
-- Typed calls in C: that they compile without a warning, and do on a server what they say.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local own_lock = require('support.own_lock')
local program = require('cli.program')

local COMPILE = 'cc -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes '
  .. '-Werror -I"$1/c/include" -o "$2/app" "$2/app.c" -L"$3" -llatchkey'

local MAIN = [[
#include "calls.h"

int main(void) {
  lk_error error = {0};
  lk_client *client = NULL;
  if (lk_client_open(getenv("LATCHKEY_URL"), NULL, &client, &error) != LK_OK) return 1;
  const lk_bytes me = {"me:1", 4}, you = {"you:1", 5}, nobody = {"", 0};
  acme_acquire_reply took;
  acme_renew_reply renewed;
  acme_release_reply gave;
  printf("%d ", acme_acquire(client, "job", me, 30000, &took, &error));
  printf("%d ", took.is == ACME_ACQUIRE_OK);
  lk_reply_free(took.raw);
  printf("%d\n", acme_acquire(client, "job", you, 30000, &took, &error));
  printf("%d ", took.is == ACME_ACQUIRE_NIL);
  printf("%d ", acme_renew(client, "job", me, 60000, &renewed, &error));
  printf("%d\n", (int)renewed.number);
  lk_reply_free(took.raw);
  lk_reply_free(renewed.raw);
  const lk_bytes flush[] = {{"SCRIPT", 6}, {"FLUSH", 5}};
  lk_reply *raw = NULL;
  printf("%d ", lk_command(client, flush, 2, &raw, &error));
  lk_reply_free(raw);
  printf("%d ", acme_release(client, "job", you, &gave, &error));
  printf("%d ", gave.is == ACME_RELEASE_0);
  lk_reply_free(gave.raw);
  printf("%d\n", acme_release(client, "job", me, NULL, &error));
  printf("%d: ", acme_acquire(client, "job", me, 49, NULL, &error) == LK_INVALID);
  printf("%s: %s\n", error.script, error.message);
  printf("%d\n", acme_acquire(client, "job", nobody, 50, NULL, &error) == LK_INVALID);
  printf("%d\n", acme_acquire(client, "", me, 50, NULL, &error) == LK_INVALID);
  const lk_bytes set[] = {{"SET", 3}, {"acme:odd:lock", 13}, {"me:1", 4}};
  lk_command(client, set, 3, &raw, &error);
  lk_reply_free(raw);
  printf("%d: ", acme_renew(client, "odd", me, 60000, NULL, &error) == LK_SCRIPT);
  printf("%s\n", error.message);
  lk_client_close(client);
  return 0;
}
]]

-- No recheck: only the message ends this wait.
local WAITER = [[
#include "calls.h"

int main(void) {
  lk_error error = {0};
  lk_client *client = NULL;
  lk_wait *wait = NULL;
  char bell[14], small[13], name[514];
  memset(name, 'n', 513);
  name[513] = '\0';
  if (lk_client_open(getenv("LATCHKEY_URL"), NULL, &client, &error) != LK_OK) return 1;
  const char *channel = acme_release_bell(bell, sizeof bell, "job");
  printf("%s\n", channel);
  printf("%s ", acme_release_bell(small, sizeof small, "job") ? "formed" : "NULL");
  printf("%s\n", acme_release_bell(bell, sizeof bell, name) ? "formed" : "NULL");
  const lk_bytes me = {"me:1", 4};
  if (lk_wait_open(client, channel, &wait, &error) != LK_OK) return 2;
  if (acme_acquire(client, "job", me, 30000, NULL, &error) != LK_OK) return 3;
  if (acme_release(client, "job", me, NULL, &error) != LK_OK) return 4;
  printf("%s\n", lk_wait_for(wait, 20000, &error) == LK_OK ? "heard" : error.message);
  lk_wait_close(wait);
  lk_client_close(client);
  return 0;
}
]]

-- Each call fails in another way, with a reply that still has what was in it before.
local FAILING = [[
#include "calls.h"

static void show(lk_status status, acme_renew_reply *reply) {
  const char *said = reply->raw ? "something" : "NULL";
  printf("%s %d %d %s\n", lk_status_name(status), (int)reply->is, (int)reply->number, said);
  memset(reply, 0x5a, sizeof *reply);
}

int main(void) {
  lk_client *client = NULL, *lost = NULL;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.lazy = true;
  if (lk_client_open(getenv("LATCHKEY_URL"), NULL, &client, NULL) != LK_OK) return 1;
  if (lk_client_open("unix:///nowhere.sock", &options, &lost, NULL) != LK_OK) return 2;
  const lk_bytes me = {"me:1", 4};
  acme_renew_reply reply;
  memset(&reply, 0x5a, sizeof reply);
  show(acme_renew(client, "job", me, 49, &reply, NULL), &reply);
  show(acme_renew(client, NULL, me, 50, &reply, NULL), &reply);
  show(acme_renew(lost, "job", me, 50, &reply, NULL), &reply);
  show(acme_renew(client, "job", me, 50, &reply, NULL), &reply);
  lk_client_close(lost);
  lk_client_close(client);
  return 0;
}
]]

-- Nothing is sent: there is no server.
local NAMES = [[
#include "calls.h"

int main(void) {
  lk_client *client = NULL;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.lazy = true;
  if (lk_client_open("unix:///nowhere.sock", &options, &client, NULL) != LK_OK) return 1;
  const lk_bytes me = {"me:1", 4};
  const char *const names[] = {"a}b", "{}x", "a{b", "}{a}", "{a}b", "a}{b}"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char bell[32];
    lk_error error = {0};
    lk_status status = acme_acquire(client, names[i], me, 50, NULL, &error);
    const char *channel = acme_release_bell(bell, sizeof bell, names[i]);
    printf("%s %s %s\n", names[i], lk_status_name(status), channel ? channel : "NULL");
    if (i == 0) printf("%s\n", error.message);
  }
  lk_client_close(client);
  return 0;
}
]]

-- The token says with what the reply begins.
local BEGINNING = [=[
local begin = { one = 1, none = 0, text = 'strange', no = false, digit = '1' }
if ARGV[1] == 'gone' then return 'gone' end
if ARGV[1] == 'longer' then return 'gone\0or not' end
return { begin[ARGV[1]], 5 }
]=]

local READER = [[
#include "calls.h"

int main(void) {
  lk_client *client = NULL;
  if (lk_client_open(getenv("LATCHKEY_URL"), NULL, &client, NULL) != LK_OK) return 1;
  const char *const tokens[] = {"one", "none", "gone", "text", "no", "digit", "longer"};
  for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
    const lk_bytes token = {tokens[i], strlen(tokens[i])};
    acme_renew_reply reply;
    printf("%s %s", tokens[i],
           lk_status_name(acme_renew(client, "job", token, 50, &reply, NULL)));
    if (reply.is == ACME_RENEW_1) printf(" 1");
    if (reply.is == ACME_RENEW_0) printf(" 0");
    if (reply.is == ACME_RENEW_TEXT_GONE) printf(" gone");
    printf("\n");
    lk_reply_free(reply.raw);
  }
  lk_client_close(client);
  return 0;
}
]]

describe('latchkey bind c', function()
  local folder

  before_each(function()
    folder = own_lock.folder()
  end)

  after_each(function()
    dir.rmtree(folder)
    program.clean()
  end)

  local function bind(scripts)
    local result = program.run({ 'bind', 'c', '--dir', scripts, '-o', folder .. '/calls.h' })
    assert.equal(0, result.code, result.err)
    return result
  end

  local function compile(text)
    utils.writefile(folder .. '/app.c', text)
    local result = program.start_any('sh', { '-c', COMPILE, 'sh', program.root, folder,
      path.dirname(program.path) }):wait()
    assert.equal(0, result.code, result.err)
  end

  it('writes calls that do what the contract says', function()
    local server = program.server()
    own_lock.write(folder, 'renew', "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
      .. "  return redis.call('pttl', KEYS[1]) < 0 and 7\n"
      .. "    or redis.call('pexpire', KEYS[1], ARGV[2])\n"
      .. 'end\nreturn 0\n')
    bind(folder .. '/scripts')
    compile(MAIN)

    local result = program.start_any(folder .. '/app', {}, { env = { LATCHKEY_URL = server.url,
      LD_LIBRARY_PATH = path.dirname(program.path) } }):wait()

    assert.equal('0 1 0\n1 0 1\n0 0 1 0\n1: acme/acquire: ttl is 50 to 86400000\n1\n1\n'
      .. '1: the reply is none that the contract lists\n', result.out, result.err)
    assert.equal('', server:command('GET', 'acme:job:lock'))
  end)

  local function run(server)
    local result = program.start_any(folder .. '/app', {}, { env = { LATCHKEY_URL = server.url,
      LD_LIBRARY_PATH = path.dirname(program.path) } }):wait()
    assert.equal(0, result.code, result.err)
    return result.out
  end

  it('leaves no reply where a call fails, which is none of those in the contract', function()
    local server = program.server()
    own_lock.write(folder, 'renew', 'return 7\n')
    bind(folder .. '/scripts')
    compile(FAILING)

    assert.equal('LK_INVALID 0 0 NULL\nLK_INVALID 0 0 NULL\nLK_UNREACHABLE 0 0 NULL\n'
      .. 'LK_SCRIPT 0 0 NULL\n', run(server))
    assert.is_nil(utils.readfile(folder .. '/calls.h'):find('  ACME_RENEW_%w+ = 0,'))
  end)

  it('tells a reply from one that only looks like it', function()
    local server = program.server()
    own_lock.write(folder, 'renew', BEGINNING, {
      ['  - 1  renewed\n'] = "  - {1, left}  renewed\n  - 'gone'  nobody has it\n",
      ['  - 0  the'] = '  - {0, left}  the',
    })
    bind(folder .. '/scripts')
    compile(READER)

    assert.equal('one LK_OK 1\nnone LK_OK 0\ngone LK_OK gone\ntext LK_SCRIPT\nno LK_SCRIPT\n'
      .. 'digit LK_SCRIPT\nlonger LK_SCRIPT\n', run(server))
  end)

  it('forms the channels that one waits on', function()
    local server = program.server()
    bind(folder .. '/scripts')
    compile(WAITER)

    assert.equal('acme:job:free\nNULL NULL\nheard\n', run(server))
  end)

  it('refuses names whose keys would share no slot', function()
    bind(folder .. '/scripts')
    compile(NAMES)

    assert.equal('a}b LK_INVALID NULL\nthe name has 1 to 512 bytes, and braces as one {tag} that '
      .. 'is closed and not empty\n{}x LK_INVALID NULL\na{b LK_INVALID NULL\n}{a} LK_UNREACHABLE '
      .. 'acme:}{a}:free\n{a}b LK_UNREACHABLE acme:{a}b:free\na}{b} LK_UNREACHABLE '
      .. 'acme:a}{b}:free\n', run({ url = '' }))
  end)

  it('takes scripts with headers, and says which have no typed call', function()
    local result = bind(program.root .. '/scripts')
    compile('#include "calls.h"\nint main(void) { (void)lock_renew; return 0; }\n')

    assert.matches('guard/call has no typed call: the key "record" is not formed from a name alone',
      result.err)
    assert.matches('permit/renew has no typed call: the argument "ids" may be left out', result.err)
  end)

  -- What is in a contract may come from somebody else; none of it becomes code.
  it('writes what compiles whatever names and texts a contract has', function()
    own_lock.write(folder, 'acquire', 'if ARGV[4] then return { 1, ARGV[3] } end\n'
      .. "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])\n", {
        ['  - ttl  '] = '  - class  text  0..9  /* which\n'
          .. '  - text5  choice  */ int main(void) { return 7; } /*|b  one\n  - ttl  ',
        ['  - OK   taken\n'] = '  - OK   taken\n  - {1, who}  his\n  - 1  its\n'
          .. "  - 'a-b'  one\n  - 'a.b'  other\n" })
    bind(folder .. '/scripts')
    compile('#include "calls.h"\nint main(void) {\n  (void)acme_acquire;\n'
      .. '  (void)acme_renew;\n  (void)acme_release;\n  (void)acme_release_bell;\n'
      .. '  return (int)ACME_ACQUIRE_1 + (int)ACME_ACQUIRE_1_2 + (int)ACME_ACQUIRE_TEXT_A_B_2 > 0 '
      .. '? 3 : 4;\n}\n')

    assert.equal(3, program.start_any(folder .. '/app', {}, { env = {
      LD_LIBRARY_PATH = path.dirname(program.path) } }):wait().code)
  end)

  it('gives two scripts no function of one name, in C or Lua', function()
    for from, to in pairs({ ['a_b/c'] = 'acme/renew', ['a/b_c'] = 'acme/acquire' }) do
      local file, old = ('%s/scripts/%s'):format(folder, from), folder .. '/scripts/' .. to
      dir.makepath(path.dirname(file))
      utils.writefile(file .. '.lua', utils.readfile(old .. '.lua'))
      utils.writefile(file .. '.contract', (utils.readfile(old .. '.contract'):gsub(to, from)))
    end
    local in_c = bind(folder .. '/scripts')
    compile('#include "calls.h"\nint main(void) { (void)a_b_c; return 0; }\n')
    local in_lua = program.run({ 'bind', 'lua', '--dir', folder .. '/scripts', '-o',
      folder .. '/calls.lua' })

    for _, result in ipairs({ in_c, in_lua }) do
      assert.matches('a_b/c has no typed call: a_b_c is the name of a call of a/b_c', result.err)
    end
  end)

  it('writes headers that do not hide each other, whatever their files are called', function()
    bind(folder .. '/scripts')
    for file, name in pairs({ ['other/calls.h'] = 'other/renew', ['helpers'] = 'third/renew' }) do
      local to = ('%s/%s/scripts/%s'):format(folder, name:match('^%l+'), name)
      local from = folder .. '/scripts/acme/renew'
      dir.makepath(path.dirname(to))
      dir.makepath(folder .. '/other')
      utils.writefile(to .. '.lua', utils.readfile(from .. '.lua'))
      utils.writefile(to .. '.contract', (utils.readfile(from .. '.contract')
        :gsub('acme/renew', name)))
      local result = program.run({ 'bind', 'c', '--dir', path.dirname(path.dirname(to)), '-o',
        ('%s/%s'):format(folder, file) })
      assert.equal(0, result.code, result.err)
    end

    compile('#include "calls.h"\n#include "other/calls.h"\n#include "helpers"\n'
      .. 'int main(void) {\n  (void)acme_acquire, (void)acme_renew, (void)acme_release;\n'
      .. '  (void)acme_release_bell, (void)other_renew, (void)third_renew;\n  return 0;\n}\n')
  end)

  it('has the text in its document, where no file takes it', function()
    local plain = program.run({ 'bind', 'c', '--dir', folder .. '/scripts' })
    local json = program.run({ 'bind', 'c', '--dir', folder .. '/scripts', '--json' })

    assert.equal(plain.out, program.decode(json.out).text)
  end)

  it('is wrong use without scripts', function()
    assert.equal(64, program.run({ 'bind', 'c', '--dir', '/nowhere' }).code)
    assert.equal(64, program.run({ 'bind', 'cobol', '--dir', folder .. '/scripts' }).code)
    utils.writefile(folder .. '/scripts/acme/renew.lua', 'return 0\n')
    local result = program.run({ 'bind', 'c', '--dir', folder .. '/scripts' })
    assert.equal(64, result.code)
    assert.matches('renew%.contract:3: the contract is of another text', result.err)
  end)
end)

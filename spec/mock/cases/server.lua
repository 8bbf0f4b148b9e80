-- SPDX-License-Identifier: Apache-2.0
-- The server, publishing, and how scripts are sent, as Redis 7.0.15 answers.
local LONG = ('x'):rep(200)
local ONE = 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db' -- the SHA1 of "return 1"

return {
  { 'PING', gives = { ok = 'PONG' } },
  { 'PING there', gives = 'there' },
  { 'PING a b', fails = "ERR wrong number of arguments for 'ping' command" },
  { 'ECHO a', gives = 'a' },
  { 'ECHO', fails = "ERR wrong number of arguments for 'echo' command" },
  { 'TIME now', fails = "ERR wrong number of arguments for 'time' command" },
  { 'PUBLISH channel message', gives = 0 },
  { 'spublish channel message', gives = 0 },
  { 'PUBLISH channel', fails = "ERR wrong number of arguments for 'publish' command" },
  { 'nosuch', fails = "ERR unknown command 'nosuch', with args beginning with: " },
  { 'nosuch a b', fails = "ERR unknown command 'nosuch', with args beginning with: 'a' 'b' " },
  { 'nosuch a ' .. LONG,
    fails = ("ERR unknown command 'nosuch', with args beginning with: 'a' '%s' ")
      :format(LONG:sub(1, 124)) },

  { 'SET k v', full = true, fails = "OOM command not allowed when used memory > 'maxmemory'." },
  { 'DEL k', full = true, after = 'SET k v', gives = 1 },
  { 'PEXPIRE k 50000', full = true, after = 'SET k v', gives = 1 },
  { 'SET k v', replica = true, fails = "READONLY You can't write against a read only replica." },
  { 'GET k', replica = true, after = 'SET k v', gives = 'v' },
  { 'PUBLISH c m', replica = true, gives = 0 },

  { { 'EVAL', 'return 1', '0' }, gives = 1 },
  { { 'EVAL', 'return 1', 'x' }, fails = 'ERR value is not an integer or out of range' },
  { { 'EVAL', 'return 1', '-1' }, fails = "ERR Number of keys can't be negative" },
  { { 'EVAL', 'return 1', '1' },
    fails = "ERR Number of keys can't be greater than number of args" },
  { { 'EVAL', 'return { KEYS[1], #KEYS, ARGV[1], #ARGV }', '1', 'k', 'a', 'b' },
    gives = { 'k', 1, 'a', 2 } },
  { { 'EVAL', 'return' }, fails = "ERR wrong number of arguments for 'eval' command" },
  { 'EVALSHA abc 0', fails = 'NOSCRIPT No matching script. Please use EVAL.' },
  { { 'SCRIPT', 'LOAD', 'return 1' }, gives = ONE },
  { 'EVALSHA ' .. ONE .. ' 0', after = { { 'SCRIPT', 'LOAD', 'return 1' } }, gives = 1 },
  { 'EVALSHA ' .. ONE:upper() .. ' 0', after = { { 'EVAL', 'return 1', '0' } }, gives = 1 },
  { 'EVALSHA ' .. ONE .. ' 0', after = { { 'EVAL', 'return 1', '0' }, { 'SCRIPT', 'FLUSH' } },
    fails = 'NOSCRIPT No matching script. Please use EVAL.' },
  { ('SCRIPT EXISTS %s a %s'):format(ONE, ONE:upper()),
    after = { { 'SCRIPT', 'LOAD', 'return 1' } }, gives = { 1, 0, 1 } },
  { 'SCRIPT EXISTS', fails = "ERR wrong number of arguments for 'script|exists' command" },
  { 'SCRIPT LOAD', fails = "ERR wrong number of arguments for 'script|load' command" },
  { 'SCRIPT', fails = "ERR wrong number of arguments for 'script' command" },
  { 'SCRIPT nosuch', fails = "ERR unknown subcommand 'nosuch'. Try SCRIPT HELP." },
  { 'SCRIPT FLUSH SYNC', gives = { ok = 'OK' } },
  { 'SCRIPT FLUSH later', fails = 'ERR SCRIPT FLUSH only support SYNC|ASYNC option' },
  { 'SCRIPT KILL', fails = 'NOTBUSY No scripts in execution right now.' },
  { { 'SCRIPT', 'LOAD', 'return (' }, fails = 'ERR Error compiling script (new function): '
    .. "user_script:1: unexpected symbol near '<eof>'" },
  { { 'EVAL_RO', 'return redis.call("GET", KEYS[1])', '1', 'k' }, after = 'SET k v', gives = 'v' },
  { { 'EVAL_RO', '#!lua\nreturn 1', '0' },
    fails = 'ERR Can not execute a script with write flag using *_ro command.' },
  { { 'EVAL_RO', 'return 1', '0' }, replica = true, gives = 1 },
  { 'EVALSHA_RO ' .. ONE .. ' 0', after = { { 'SCRIPT', 'LOAD', 'return 1' } }, gives = 1 },
}

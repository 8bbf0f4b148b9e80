-- SPDX-License-Identifier: Apache-2.0
-- Every command by its name, as the groups declare them:
--   arity   arguments with the name itself; negative: at least as many
--   flags   as the server's COMMAND INFO has them: write readonly denyoom noscript may_replicate
--   keys    { first, last, step } of the key arguments, last -1: to the end
--   counted where the count of the keys stands that follow it
--   slots   the same, for arguments that are no keys and yet belong to a slot
--   run     function(world, argv) -> reply | nil, err
--   subcommands  the same for each second word, instead of run
local prepare = require('latchkey.mock.prepare')

local GROUPS = { 'keys', 'strings', 'bytes', 'hashes', 'lists', 'sets', 'zsets', 'zranges',
  'streams', 'scans', 'pubsub', 'server', 'scripting', 'functions', 'unmodelled' }

local commands = {}

for _, group in ipairs(GROUPS) do
  for name, command in pairs(require('latchkey.mock.commands.' .. group)) do
    if commands[name] then
      error(('%s is in two groups'):format(name))
    end
    prepare(name, command)
    commands[name] = command
  end
end

return commands

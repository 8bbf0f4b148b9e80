-- SPDX-License-Identifier: Apache-2.0
-- What a server has to allow an application: the commands that its scripts call, the keys and
-- channels that their headers form, and what the library itself sends.
local path = require('pl.path')
local tablex = require('pl.tablex')

local catalog = require('latchkey.script.catalog')
local kinds = require('latchkey.locks.kinds')
local lint_script = require('latchkey.lint.script')
local names = require('latchkey.script.names')
local sorted = require('latchkey.sorted')

local acl = {}

-- What liblatchkey sends beside the scripts' own commands. AUTH needs no permission.
local LIBRARY = { 'client|setname', 'ping', 'select', 'subscribe', 'unsubscribe' }

-- And where scripts are scripts, or functions.
local SCRIPTS, FUNCTIONS = { 'evalsha', 'script|load' }, { 'fcall' }

-- And by typed calls of somebody's own scripts, which bring their texts along.
local TYPED = { 'eval' }

-- And where channels are sharded.
local SHARDED = { 'spublish', 'ssubscribe', 'sunsubscribe' }

-- And to find the masters: of a cluster, and to see that what Sentinel names is one.
local TOPOLOGY = { cluster = { 'asking', 'cluster|slots' },
  sentinel = { 'role' } }

-- And where holds wait until replicas have them.
local REPLICAS = { 'wait' }

-- All that a sentinel is asked; PING, by doctor alone.
local SENTINEL = { commands = { 'client|setname', 'ping', 'sentinel|get-master-addr-by-name',
  'sentinel|master', 'subscribe', 'unsubscribe' }, keys = {}, channels = { '+switch-master' } }

-- What loading needs, by `latchkey load` and `status`.
local LOAD_SCRIPTS = { 'info', 'script|exists' }
local LOAD_FUNCTIONS = { 'info', 'function|list', 'function|load' }

-- What tells a server from Redis 7.2 on, and Valkey, which library a connection is; older servers
-- know no such subcommand, and refuse a rule that has it.
local SETINFO = { 'client|setinfo' }

-- Where clients are asked what they wait for, and where they answer (c/src/harness/ask.h).
local QUESTIONS = { 'latchkey:ask:{{}', 'latchkey:answer:{{}:*' }

-- What those need who look after locks, with ls, top, inspect, break, doctor and status.
local OPERATOR = { 'acl|dryrun', 'acl|whoami', 'client|list', 'cluster|info', 'command|info',
  'config|get', 'dbsize', 'function|list', 'get', 'hrandfield', 'hscan', 'info', 'publish',
  'pubsub|channels', 'pubsub|numsub', 'pubsub|shardchannels', 'pubsub|shardnumsub', 'scan',
  'script|exists', 'strlen', 'time', 'type', 'zrange' }

-- What families need of others: a whole one, or one script by which holds are renewed.
local NEEDS = { fenced = { 'lock' }, fair = { 'lock/renew' } }

-- Families whose clients ask who else listens, and listen beside a channel of theirs while they
-- take a lock again and again (c/src/locks/rivals.h).
local MARKED = { lock = ':latchkey', rw = ':latchkey' }
local COUNTS, SHARDED_COUNTS = { 'pubsub|numsub' }, { 'pubsub|numsub', 'pubsub|shardnumsub' }

-- A message with a ticket goes to a channel of one waiter, named behind that of the lock.
local function is_for_one(header)
  return header.message == 'ticket'
end

-- The scripts of a folder, else the project's own.
local function scripts_of(home, folder)
  return assert(catalog.read(folder or path.join(home, 'scripts')))
end

---@param home string
---@param folder? string of somebody's own scripts
---@return string[] names of the families, sorted
function acl.families(home, folder)
  local families, seen = {}, {}
  for _, script in ipairs(scripts_of(home, folder)) do
    local family = script.name:match('^[^/]+')
    if not seen[family] then
      seen[family] = true
      families[#families + 1] = family
    end
  end
  return families
end

---May this be a pattern of lock names?
---@param pattern string
---@return true|nil ok
---@return string|nil why
function acl.check_pattern(pattern)
  if pattern == '' or pattern:find('[%c%s]') then
    return nil, 'a pattern has no blanks, and is not empty'
  elseif pattern:find('{', 1, true) and not pattern:find('^[^{]*{[^}]+}') then
    return nil, 'the first brace of the pattern opens no hash tag; close it'
  elseif pattern:find('}', 1, true) and not pattern:find('{', 1, true) then
    return nil, 'the pattern has a "}" without a "{"'
  end
  return true
end

-- The keys or channels that a form gives for all names of a pattern; arguments become stars.
---@param is_tagged? boolean the names have a tag
local function form_pattern(form, pattern, is_tagged)
  local tagged = is_tagged or pattern:find('{', 1, true) or pattern == '*'
  local inner = tagged and pattern or '{' .. pattern .. '}'
  local formed = pattern
  if form.kind == 'prefix' then
    formed = form.text .. ':' .. inner
  elseif form.kind == 'suffix' then
    formed = inner .. ':' .. form.text
  elseif form.kind == 'braces' then
    formed = form.text .. '{' .. pattern .. '}'
  elseif form.kind == 'pattern' then
    formed = form.text:gsub('{name}', (pattern:gsub('%%', '%%%%')))
  end
  local _, tail = names.argument(form)
  return formed .. (tail and ':*' .. tail or '')
end

-- The patterns of keys that a script forms of its first one, in the place of the lock's name.
local function derived_patterns(form, first, pattern)
  if not first or first.form.kind == 'slot' then
    return {}
  end
  local base = form_pattern(first.form, pattern)
  local is_tagged = first.form.kind == 'prefix' or first.form.kind == 'suffix'
  local patterns = { form_pattern(form, base, is_tagged) }
  if pattern == '*' and not is_tagged then -- names with a tag of their own
    patterns[2] = form_pattern(form, base, true)
  end
  return patterns
end

-- Patterns without those that mean a part of what another one means: "a:*" also means "a:*:*".
local function widest(set)
  local list = {}
  for pattern in tablex.sort(set) do
    local covered = false
    for other in pairs(set) do
      local start = other:match('^([^*?%[\\]*)%*$')
      covered = covered or other ~= pattern and start ~= nil and pattern:sub(1, #start) == start
    end
    if not covered then
      list[#list + 1] = pattern
    end
  end
  return list
end

-- Does a caller say how the script publishes? Then it calls both commands, and SPUBLISH is sent
-- only where channels are sharded.
local function is_told_how(header)
  for _, argument in ipairs(header.argv) do
    if argument.type == 'verb' and argument.values[1] == 'PUBLISH' then
      return true
    end
  end
end

local function add_commands(set, script)
  local called = tablex.makeset(tablex.imap(string.lower, script.header.dynamic))
  for _, call in ipairs((lint_script.read(script.path, script.source)).calls) do
    if call.name then
      called[call.name:lower()] = true
    end
  end
  if is_told_how(script.header) then
    called.spublish = nil
  end
  tablex.update(set, called)
end

local function add_patterns(keys, channels, script, options)
  local mark = MARKED[script.name:match('^[^/]+')]
  for _, pattern in ipairs(options.names) do
    for _, key in ipairs(script.header.keys) do
      -- Which keys of the slot the application means, only its author knows.
      if key.form.kind ~= 'slot' then
        keys[form_pattern(key.form, pattern)] = true
      end
    end
    for _, key in ipairs(script.header.derived) do
      for _, derived in ipairs(derived_patterns(key.form, script.header.keys[1], pattern)) do
        keys[derived] = true
      end
    end
    for _, list in ipairs({ script.header.channels, script.header.argv }) do
      for _, field in ipairs(list) do
        if field.form then
          local channel = form_pattern(field.form, pattern)
          channels[channel .. (is_for_one(script.header) and ':*' or '')] = true
          if mark then
            channels[channel .. mark] = true
          end
        end
      end
    end
  end
end

-- Whoever looks after locks reads a key as each kind that it may be of: those of all kinds.
local function wanted_families(home, options)
  local families = options.families
  if not families or #families == 0 then
    families = acl.families(home, options.folder)
  elseif options.operator then
    families = tablex.union(families, kinds.NAMES)
  end
  local wanted = {}
  for _, family in ipairs(families) do
    wanted[family] = true
    for _, other in ipairs(NEEDS[family] or {}) do
      wanted[other] = true
    end
  end
  return wanted
end

-- What the library sends itself.
local function add_library(set, families, options)
  local sharded = options.sharded or options.topology == 'cluster'
  local counts = (families.lock or families.rw) and (sharded and SHARDED_COUNTS or COUNTS)
  local load = options.functions and LOAD_FUNCTIONS or LOAD_SCRIPTS
  local lists = { LIBRARY, options.functions and FUNCTIONS or SCRIPTS }
  local function add(wanted, list)
    lists[#lists + 1] = wanted and list or nil
  end
  add(options.folder and not options.functions, TYPED)
  add(counts, counts)
  add(sharded, SHARDED)
  add(options.topology, TOPOLOGY[options.topology])
  add(options.replicas, REPLICAS)
  add(options.setinfo, SETINFO)
  add(options.operator, OPERATOR)
  add(options.load, load)
  for _, list in ipairs(lists) do
    for _, name in ipairs(list) do
      set[name] = true
    end
  end
end

---The smallest rule with which an application can use locks of these names.
---@param home string
---@param options table names: patterns; families: all unless some are given; targets: patterns of
---  keys that guard/... may touch; topology: "cluster", whose channels are sharded, or "sentinel";
---  sharded: channels may be; replicas: holds wait for some; functions: scripts are called as such;
---  load: the user may load them, too; answers: clients answer questions; setinfo: servers know
---  CLIENT SETINFO; operator: for those who look after the locks; folder: of scripts that are not
---  latchkey's
---@return table rule { commands, keys, channels }, each sorted
function acl.rule(home, options)
  local commands, keys, channels = {}, {}, {}
  local families = wanted_families(home, options)
  for _, script in ipairs(scripts_of(home, options.folder)) do
    if families[script.name:match('^[^/]+')] or families[script.name] then
      add_commands(commands, script)
      add_patterns(keys, channels, script, options)
    end
  end
  for _, pattern in ipairs(families.guard and options.targets or {}) do
    keys[pattern] = true
  end
  for _, channel in ipairs((options.answers or options.operator) and QUESTIONS or {}) do
    channels[channel], commands.publish = true, true
  end
  add_library(commands, families, options)
  return { commands = sorted(commands), keys = widest(keys), channels = widest(channels) }
end

---The rule for the user with which an application asks the sentinels.
---@param options table setinfo: as of acl.rule
---@return table rule as of acl.rule
function acl.sentinel_rule(options)
  local commands = tablex.insertvalues({ unpack(options.setinfo and SETINFO or {}) },
    SENTINEL.commands)
  return { commands = commands, keys = SENTINEL.keys, channels = SENTINEL.channels }
end

---The words of ACL SETUSER that give a user this and nothing else, but no password.
---@param rule table
---@return string[]
function acl.words(rule)
  local words = { 'on', 'clearselectors', 'resetkeys', 'resetchannels', '-@all' }
  for _, part in ipairs({ { '+', rule.commands }, { '~', rule.keys }, { '&', rule.channels } }) do
    for _, value in ipairs(part[2]) do
      words[#words + 1] = part[1] .. value
    end
  end
  return words
end

-- As redis-cli reads it: quotation marks begin a word that may have blanks.
local function quoted(word)
  return word:find('["\']') and '"' .. word:gsub('[\\"]', '\\%0') .. '"' or word
end

---@param user string
---@param rule table
---@return string line for redis-cli
function acl.line(user, rule)
  return ('ACL SETUSER %s %s'):format(user, table.concat(tablex.imap(quoted, acl.words(rule)), ' '))
end

return acl

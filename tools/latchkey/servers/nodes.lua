-- SPDX-License-Identifier: Apache-2.0
-- The servers that a call names, those of a cluster or behind a Sentinel, and their replicas. What
-- fails on one is kept with it, so that the others go on.
local catalog = require('latchkey.script.catalog')
local manifest = require('latchkey.bundle.manifest')
local open = require('latchkey.servers.open')
local text = require('latchkey.text')

local nodes = {}

nodes.MAX = 100

---@class bundle.node
---@field target string where it is, without user and password
---@field role 'master'|'replica'|nil nil where the server does not say
---@field of bundle.node|nil the master whose replica it was found to be
---@field version string|nil "7.0.15"
---@field client latchkey.client|latchkey.node|nil
---@field err latchkey.error|nil why nothing more can be done here

---The options of commands that go over nodes.
function nodes.options(parser)
  parser:flag('--no-replicas', 'Only the servers named, not the replicas that they have.')
end

---A URL without what may be secret: a password stands in any part before its last "@", or among
---its parameters.
---@param url string
---@return string
function nodes.shown(url)
  return (url:gsub('%?.*$', ''):gsub('^([%w-]+://).*@', '%1'))
end

-- Of Sentinel's URL, what is also one of a server: without what is for the sentinels.
local function rest_of(rest)
  local parameters = {}
  for parameter in (rest:match('%?(.*)$') or ''):gmatch('[^&]+') do
    if not parameter:find('^sentinel_') then
      parameters[#parameters + 1] = parameter
    end
  end
  return (rest:match('^/[^/?]*(/%d+)') or '')
    .. (#parameters > 0 and '?' .. table.concat(parameters, '&') or '')
end

---The URL of a replica that its master says is at host and port.
---@param url string the master's
---@param host string
---@param port string
---@return string
function nodes.replica_url(url, host, port)
  local address = (host:find(':', 1, true) and '[' .. host .. ']' or host) .. ':' .. port
  local scheme, by, authority, rest = url:match('^(rediss?)(%-?%l*)://([^/?#]*)(.*)$')
  if not scheme then
    return 'redis://' .. (url:match('^unix://([^/]*@)') or '') .. address
  end
  return ('%s://%s%s%s'):format(scheme, authority:match('^.*@') or '', address,
    by == '-sentinel' and rest_of(rest) or rest)
end

local function info(client, section)
  local reply, err = client:command('INFO', section)
  local fields = {}
  for name, value in tostring(reply or ''):gmatch('([%w_]+):([^\r\n]*)') do
    fields[name] = value
  end
  return fields, err
end

-- Why scripts do not run there.
local function too_old(fields)
  local floor = manifest.wanted_version(fields)
  local product = fields.valkey_version and 'valkey' or 'redis'
  return floor and { status = 'LK_SERVER', hint = 'update the server',
    message = ('%s %s is too old: scripts need %s'):format(product, fields[product .. '_version'],
      floor) }
end

-- What the server says of itself; one that does not tell is taken for a server without replicas.
local function look(node)
  local about, err = info(node.client, 'server')
  if err and err.status ~= 'LK_DENIED' then
    node.err = err
    return {}
  end
  node.version = text.safe(about.valkey_version or about.redis_version or '')
  node.version = node.version ~= '' and node.version or nil
  node.id = about.run_id
  node.err = too_old(about)
  local replication = info(node.client, 'replication')
  if replication.role then
    node.role = replication.role == 'master' and 'master' or 'replica'
  end
  node.history = replication.master_replid
  local replicas = {}
  for i = 0, (tonumber(replication.connected_slaves) or 0) - 1 do
    local host, port = (replication['slave' .. i] or ''):match('^ip=([^,%z]+),port=(%d+)')
    if host then
      replicas[#replicas + 1] = nodes.replica_url(node.url, host, port)
    end
  end
  return replicas
end

-- The nodes of a cluster, masters first. A replica shares the history of its master.
local function of_cluster(client, with_replicas)
  local servers, err = client:nodes()
  if not servers then
    return nil, err
  end
  local found, masters = {}, {}
  for _, wants_masters in ipairs(with_replicas and { true, false } or { true }) do
    for _, server in ipairs(servers) do
      if server:is_master() == wants_masters then
        local node = { client = server, target = text.safe(server:target()),
          url = server:target(), role = wants_masters and 'master' or 'replica' }
        look(node)
        found[#found + 1] = node
        if node.history and node.role == 'master' then
          masters[node.history] = node
        end
      end
    end
  end
  for _, node in ipairs(found) do
    node.of = node.role == 'replica' and masters[node.history] or nil
  end
  return found
end

-- The address that a master has of its replica leads to a master, as it can behind NAT: the replica
-- was not reached.
local function leads_back(node, twin)
  return node.of and (twin == node.of or twin.role == 'master') and { status = 'LK_UNREACHABLE',
    message = 'the address that its master has of it leads to ' .. twin.target,
    hint = 'set replica-announce-ip and replica-announce-port of the replica, or write '
      .. '--no-replicas' }
end

-- Adds servers that are not yet there under another name; false where there was none.
local function add(list, known, found)
  local is_new = false
  for _, node in ipairs(found) do
    local twin = known[node.id]
    local wrong = twin and leads_back(node, twin)
    if not twin then
      known[node.id or node], is_new = node, true
    end
    if wrong then
      node.err, node.role, node.version = wrong, 'replica', nil
    end
    list[#list + 1] = (wrong or not twin) and node or nil
  end
  return is_new
end

-- Opens what a URL names; what it turned out to be, and further URLs to be opened.
local function expand(node, ctx, options)
  local with_replicas = not ctx.args.no_replicas
  node.client, node.err = open(ctx, node.url, options)
  if not node.client then
    return { node }, {}
  elseif node.url:find('^rediss?%-cluster:') then
    local found, err = of_cluster(node.client, with_replicas)
    node.err = err
    return found or { node }, {}
  end
  local servers = node.client:nodes() or {}
  node.target = text.safe((servers[1] or node.client):target())
  local replicas, further = look(node), {}
  for i, url in ipairs(with_replicas and replicas or {}) do
    further[i] = { url = url, target = text.safe(nodes.shown(url)), of = node, role = 'replica' }
  end
  return { node }, further
end

---Opens the servers of --url (or LATCHKEY_URL), several separated by spaces, and their replicas.
---@param ctx cli.context
---@param options? table of latchkey.open
---@return bundle.node[]|nil list
---@return integer|nil exit code; the call is wrong, which has been told
function nodes.open(ctx, options)
  local list, queue, known = {}, {}, {}
  local folder = options and options.script_dir
  if folder and #(catalog.files(folder) or { folder }) == 0 then
    return nil, ctx:misuse('there are no scripts in ' .. folder)
  end
  for url in (ctx.args.url or os.getenv('LATCHKEY_URL') or ''):gmatch('%S+') do
    queue[#queue + 1] = { url = url, target = text.safe(nodes.shown(url)) }
  end
  if #queue == 0 then
    return nil, select(2, ctx:client())
  end
  local first = 1
  while queue[first] do
    if #list >= nodes.MAX then
      return nil, ctx:misuse(('more than %d servers and replicas; name fewer, or --no-replicas')
        :format(nodes.MAX))
    end
    local found, further = expand(queue[first], ctx, options)
    local err = found[1].err
    -- What a master says of its replicas is no wrong use.
    if err and not queue[first].of and ctx.exit_of(err.status) == ctx.exit_of('LK_INVALID') then
      return nil, ctx:fail(err)
    end
    if add(list, known, found) then
      for _, node in ipairs(further) do
        queue[#queue + 1] = node
      end
    elseif queue[first].client then
      queue[first].client:close()
    end
    first = first + 1
  end
  return list
end

---Where a node is and what it is, for people.
---@param node bundle.node
---@return string
function nodes.title(node)
  local role = node.of and 'replica of ' .. node.of.target or node.role
  return node.target .. (role and ' (' .. role .. ')' or '')
end

---What is the same for every document about nodes.
---@param node bundle.node
---@param fields table
---@return table
function nodes.plain(node, fields)
  fields.target, fields.role, fields.version = node.target, node.role, node.version
  fields.replica_of = node.of and node.of.target
  if node.err then
    fields.error = { status = node.err.status, message = text.safe(node.err.message),
      hint = node.err.hint or '' }
  end
  return fields
end

---What documents say of servers that could not be asked; nil where there are none.
---@param list { target: string, err: latchkey.error }[]
---@return table[]|nil
function nodes.failed(list)
  local failed = {}
  for i, node in ipairs(list) do
    failed[i] = nodes.plain(node, {})
  end
  return failed[1] and failed
end

---Tells of each node that failed.
---@param ctx cli.context
---@param list bundle.node[]
---@return integer count of failures
---@return latchkey.error|nil first
function nodes.tell(ctx, list)
  local count, first = 0, nil
  for _, node in ipairs(list) do
    if node.err then
      count, first = count + 1, first or node.err
      if not ctx.json then
        ctx.stderr:write(('latchkey %s: %s: %s\n'):format(ctx.command, nodes.title(node),
          text.safe(node.err.message)))
        if node.err.hint and not node.err.hint:find('^correct the ') then
          ctx.stderr:write('  ', node.err.hint, '\n')
        end
      end
    end
  end
  return count, first
end

return nodes

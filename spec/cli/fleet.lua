-- SPDX-License-Identifier: Apache-2.0
-- Several servers as one: a cluster of three masters, or a master with its replica and a sentinel.
local fcntl = require('posix.fcntl')
local socket = require('posix.sys.socket')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local program = require('cli.program')

local fleet = {}

fleet.MASTER = 'main'
local SLOTS = 16384

-- Below those that systems give to connections, which come and go; each run begins elsewhere.
local FIRST_PORT, LAST_PORT = 12000, 31999
local port = FIRST_PORT + unistd.getpid() * 37 % (LAST_PORT - FIRST_PORT)

---A port of 127.0.0.1 that nobody listens on. It stays bound as long as this process runs, so that
---nobody else finds it free; a server binds it all the same, as it allows that others do.
function fleet.free_port()
  while true do
    port = port < LAST_PORT and port + 1 or FIRST_PORT
    local one = assert(socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0))
    if socket.bind(one, { family = socket.AF_INET, addr = '127.0.0.1', port = port }) then
      assert(socket.setsockopt(one, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1))
      assert(fcntl.fcntl(one, fcntl.F_SETFD, fcntl.FD_CLOEXEC))
      return tostring(port)
    end
    unistd.close(one)
  end
end

---A server at a port; further arguments are its options.
function fleet.server(...)
  local own = fleet.free_port()
  local server = program.server('--port', own, '--bind', '127.0.0.1',
    '--repl-diskless-sync-delay', '0', ...)
  server.port, server.at = own, '127.0.0.1:' .. own
  server.tcp = 'redis://' .. server.at .. '/0'
  return server
end

local function follows(server, replica)
  program.eventually('the replica follows', function()
    return replica:command('INFO', 'replication'):find('master_link_status:up', 1, true)
      and server:command('INFO', 'replication'):find('state=online', 1, true)
  end)
end

---A replica of a server at a port.
function fleet.replica_of(server, ...)
  local replica = fleet.server('--replicaof', '127.0.0.1', server.port, ...)
  follows(server, replica)
  return replica
end

local Cluster = {}
Cluster.__index = Cluster

---Servers of a cluster: `masters`, and with `options.replica` one replica of the first of them,
---which stays one.
---@param options? { masters: integer|nil, replica: boolean|nil }
function fleet.cluster(options)
  options = options or {}
  local self = setmetatable({ masters = {}, servers = {} }, Cluster)
  local count = options.masters or 3
  for i = 1, count + (options.replica and 1 or 0) do
    local bus = fleet.free_port()
    local server = fleet.server('--cluster-enabled', 'yes', '--cluster-port', bus,
      '--cluster-node-timeout', '1000', '--cluster-require-full-coverage', 'no',
      '--cluster-replica-no-failover', 'yes')
    server.bus = bus
    self.servers[i] = server
    server:command('CLUSTER', 'SET-CONFIG-EPOCH', tostring(i))
    if i <= count then
      self.masters[i] = server
      server:command('CLUSTER', 'ADDSLOTSRANGE', tostring(math.floor((i - 1) * SLOTS / count)),
        tostring(math.floor(i * SLOTS / count) - 1))
    end
  end
  for i = 2, #self.servers do
    self.servers[1]:command('CLUSTER', 'MEET', '127.0.0.1', self.servers[i].port,
      self.servers[i].bus)
  end
  self:wait()
  if options.replica then
    self:add_replica()
  end
  self.url = 'redis-cluster://' .. self.masters[1].at .. ',' .. self.masters[count].at
  return self
end

-- Until all know all.
function Cluster:wait()
  for _, server in ipairs(self.servers) do
    program.eventually('the cluster is whole', function()
      local nodes = server:command('CLUSTER', 'NODES')
      return select(2, nodes:gsub('connected', '')) == #self.servers
        and not nodes:find('handshake', 1, true) and not nodes:find('disconnected', 1, true)
        and select(2, nodes:gsub('%d+%-%d+', '')) == #self.masters
        and server:command('CLUSTER', 'INFO'):find('cluster_state:ok', 1, true)
    end)
  end
end

function Cluster:add_replica()
  self.replica = self.servers[#self.servers]
  self.replica:command('CLUSTER', 'REPLICATE', (self.masters[1]:command('CLUSTER', 'MYID')))
  follows(self.masters[1], self.replica)
  for _, server in ipairs(self.servers) do
    program.eventually('all know the replica', function()
      return server:command('CLUSTER', 'SHARDS'):find('replica', 1, true)
    end)
  end
end

---A name of the form `PREFIX:NUMBER` that this master has the slot of.
function Cluster.name_on(_, server, prefix)
  for number = 1, 1000 do
    local name = ('%s:%d'):format(prefix, number)
    if server:command('EXISTS', name) == '0' then
      return name
    end
  end
  error('no such name', 2)
end

---The same command to every server; their answer, which is the same of all.
function Cluster:all(...)
  local answer
  for _, server in ipairs(self.servers) do
    local one = server:command(...)
    if answer and one ~= answer then
      error(('%s: one server answers %s, another %s'):format((...), answer, one), 2)
    end
    answer = one
  end
  return answer
end

---A master, its replica, and a sentinel who watches them. Lines of its configuration may follow.
function fleet.sentinel(...)
  local self = { master = fleet.server() }
  self.replica = fleet.replica_of(self.master)
  self.port = fleet.free_port()
  local folder = program.folder()
  self.socket = folder .. '/s'
  assert(utils.writefile(folder .. '/conf', table.concat({ 'port ' .. self.port, 'bind 127.0.0.1',
    'dir ' .. folder, 'unixsocket ' .. self.socket, ('sentinel monitor %s 127.0.0.1 %s 1'):format(
      fleet.MASTER, self.master.port), ... }, '\n') .. '\n'))
  program.start_any('redis-server', { folder .. '/conf', '--sentinel' })
  self.command = self.master.command
  program.eventually('the sentinel knows both', function()
    return self:command('SENTINEL', 'MASTERS'):find('num%-slaves\n1')
  end)
  self.url = ('redis-sentinel://127.0.0.1:%s/%s'):format(self.port, fleet.MASTER)
  return self
end

return fleet

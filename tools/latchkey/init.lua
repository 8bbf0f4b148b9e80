-- SPDX-License-Identifier: Apache-2.0
-- liblatchkey for LuaJIT. What a call promises stands in <latchkey/latchkey.h>. Failures are
-- `nil, err`, and the collector closes a handle that nobody refers to any more.
-- There are no C callbacks: lock:lost() and watch:lost() tell what on_lost would.
local ffi = require('ffi')

local library = require('latchkey.library')
local values = require('latchkey.values')

local latchkey = {}

latchkey.FOREVER = -1
latchkey.null = values.null

local lib, raised = library.lib, values.raised

local KINDS = { mutex = lib.LK_MUTEX, lock = lib.LK_LOCK, fenced = lib.LK_FENCED,
  fair = lib.LK_FAIR, read = lib.LK_READ, write = lib.LK_WRITE }

local REASONS = {
  [lib.LK_LOST_TAKEN] = 'taken',
  [lib.LK_LOST_EXPIRED] = 'expired',
  [lib.LK_LOST_UNREACHABLE] = 'unreachable',
  [lib.LK_LOST_BROKEN] = 'broken',
}

-- Handles. What a client opened refers to it, so that the client is not collected before.
local function class(free)
  local methods = { free = free }
  methods.__index = methods

  function methods:close()
    if self.pointer then
      free(ffi.gc(self.pointer, nil))
      self.pointer = nil
    end
  end

  return methods
end

local function open(methods, status, out, client)
  if tonumber(status) ~= lib.LK_OK then
    return values.outcome(status)
  end
  return setmetatable({ pointer = ffi.gc(out[0], methods.free), client = client }, methods)
end

local function pointer_of(object)
  return object.pointer or error('the handle is closed', 3)
end

-- A server behind a client: it lives as long as that.
---@class latchkey.node
local Node = {}
Node.__index = Node

---@class latchkey.client
local Client = class(lib.lk_client_close)
---@class latchkey.lock
local Lock = class(lib.lk_lock_close)
---@class latchkey.watch
local Watch = class(lib.lk_watch_close)
---@class latchkey.wait
local Wait = class(lib.lk_wait_close)
---@class latchkey.caller
local Caller = class(lib.lk_caller_free)

---@param url string
---@param options? table fields of lk_client_options but size and callbacks
---@return latchkey.client|nil client
---@return latchkey.error|nil err
function latchkey.open(url, options)
  local out = ffi.new('lk_client *[1]')
  return open(Client, lib.lk_client_open(values.text(url, 'url'),
    values.options('lk_client_options', options or {}), out, raised), out)
end

---The C declarations in use.
---@return string
function latchkey.declarations()
  return library.declarations()
end

---@return string version of the library
function latchkey.version()
  return ffi.string(lib.lk_version())
end

---@return integer ms on the library's clock
function latchkey.now_ms()
  return tonumber(lib.lk_now_ms())
end

---@return table[] statuses { name, number, text, hint }, by number
function latchkey.statuses()
  local statuses = {}
  for number = 0, 255 do
    local name = lib.lk_status_name(number)
    if name ~= nil then
      statuses[#statuses + 1] = {
        name = ffi.string(name),
        number = number,
        text = ffi.string(lib.lk_status_text(number)),
        hint = ffi.string(lib.lk_status_hint(number)),
      }
    end
  end
  return statuses
end

---The folder of the server that `local:` means; it is made when it is missing.
---@return string|nil folder
---@return latchkey.error|nil err
function latchkey.local_dir()
  local buffer = ffi.new('char[4096]')
  local status = lib.lk_local_dir(buffer, 4096, raised)
  return values.outcome(status, ffi.string(buffer))
end

---Where the client is connected to, without user and password.
---@return string
function Client:target()
  return ffi.string(lib.lk_client_target(pointer_of(self)))
end

---@return integer descriptor readable while callbacks are due
function Client:fd()
  return lib.lk_client_fd(pointer_of(self))
end

---@return integer count of callbacks that ran
function Client:dispatch()
  return tonumber(lib.lk_client_dispatch(pointer_of(self)))
end

---@param script string "family/verb"
---@param keys (string|integer)[]
---@param args (string|integer)[]
---@return any reply integer, string, { ok = text }, nil, or array with .n and latchkey.null inside
---@return latchkey.error|nil err
function Client:eval(script, keys, args)
  local key_array, nkeys = values.bytes(keys)
  local arg_array, nargs = values.bytes(args)
  local out = ffi.new('lk_reply *[1]')
  return values.reply(lib.lk_eval(pointer_of(self), values.text(script, 'script'), key_array, nkeys,
    arg_array, nargs, out, raised), out)
end

---@param ... string|integer|(string|integer)[] one command of the server's and its arguments, or
---  these as one list
---@return any reply as of eval
---@return latchkey.error|nil err
function Client:command(...)
  local array, count = values.bytes(values.words(...))
  local out = ffi.new('lk_reply *[1]')
  return values.reply(lib.lk_command(pointer_of(self), array, count, out, raised), out)
end

-- What its client knows of a node; in a forked child that says nothing any more.
local function learn(node)
  local target, is_master = ffi.new('const char *[1]'), ffi.new('bool[1]')
  if lib.lk_node_at(pointer_of(node.client), node.index, target, is_master) then
    node.learnt = { target = ffi.string(target[0]), is_master = is_master[0] }
  end
  return node
end

---Looks which servers there are: one, or the master that Sentinel names, or all that a cluster
---knows of, replicas as well. A node that has left a cluster stays in the list.
---@return latchkey.node[]|nil nodes
---@return latchkey.error|nil err none of them says what there is
function Client:nodes()
  local count, nodes = ffi.new('size_t[1]'), {}
  local status = lib.lk_nodes(pointer_of(self), count, raised)
  if tonumber(status) ~= lib.LK_OK then
    return values.outcome(status)
  end
  for i = 1, tonumber(count[0]) do
    nodes[i] = learn(setmetatable({ client = self, index = i - 1 }, Node))
  end
  return nodes
end

---@return string target as of a client
function Node:target()
  return learn(self).learnt.target
end

---@return boolean is_master by what was learnt last: it serves slots of a cluster, or all keys
function Node:is_master()
  return learn(self).learnt.is_master
end

---One command to this server and no other: where it answers that a key is elsewhere, that is an
---error.
---@param ... string|integer as of client:command
---@return any reply as of eval
---@return latchkey.error|nil err
function Node:command(...)
  local array, count = values.bytes(values.words(...))
  local out = ffi.new('lk_reply *[1]')
  return values.reply(lib.lk_node_command(pointer_of(self.client), self.index, array, count, out,
    raised), out)
end

---The scripts of its client.
---@return table[]
function Node:scripts()
  return self.client:scripts()
end

---What scripts tell this channel with, for their argument of that kind.
---@param channel string of any bytes
---@return "PUBLISH"|"SPUBLISH"
function Client:publish_verb(channel)
  -- Its braces alone matter: another byte may be where C would see its end.
  return ffi.string(lib.lk_publish_verb(pointer_of(self),
    channel and (channel:gsub('%z', '.'))))
end

---@return table[] scripts sorted by name: { name, version, sha1, source, overridden }
function Client:scripts()
  local pointer, scripts = pointer_of(self), {}
  local script = ffi.new('lk_script', { ffi.sizeof('lk_script') })
  for i = 1, tonumber(lib.lk_script_count(pointer)) do
    lib.lk_script_at(pointer, i - 1, script)
    scripts[i] = {
      name = ffi.string(script.name),
      version = ffi.string(script.version),
      sha1 = ffi.string(script.sha1),
      source = values.from_bytes(script.source),
      overridden = script.overridden,
    }
  end
  return scripts
end

---SCRIPT LOAD every script.
---@return table|nil report { scripts, loaded }: counts
---@return latchkey.error|nil err
function Client:load()
  local report = ffi.new('lk_load_report', { ffi.sizeof('lk_load_report') })
  local status = lib.lk_load(pointer_of(self), report, raised)
  return values.outcome(status,
    { scripts = tonumber(report.scripts), loaded = tonumber(report.loaded) })
end

---Somebody who holds locks, beside this thread.
---@return latchkey.caller|nil caller
---@return latchkey.error|nil err
function Client:caller()
  local out = ffi.new('lk_caller *[1]')
  return open(Caller, lib.lk_caller_new(pointer_of(self), out, raised), out, self)
end

---@param kind "lock"|"mutex"|"fenced"|"fair"|"read"|"write"
---@param name string
---@param options? table fields of lk_lock_options
---@return latchkey.lock|nil lock
---@return latchkey.error|nil err
function Client:lock(kind, name, options)
  local c_kind = KINDS[kind] or error(('no kind is named "%s"'):format(tostring(kind)), 2)
  local out = ffi.new('lk_lock *[1]')
  return open(Lock, lib.lk_lock_open(pointer_of(self), c_kind, values.text(name, 'name'),
    values.options('lk_lock_options', options or {}), out, raised), out, self)
end

---Keep a lease alive with a renew script.
---@param script string|nil nil: the lease is not renewed, only its end is reported
---@param keys (string|integer)[]
---@param args (string|integer)[]
---@param options table lease_ms, since_ms, drift_ms
---@return latchkey.watch|nil watch
---@return latchkey.error|nil err
function Client:watch(script, keys, args, options)
  local spec = values.options('lk_watch_spec', options)
  spec.script = script and values.text(script, 'script')
  local key_array, nkeys = values.bytes(keys)
  local arg_array, nargs = values.bytes(args)
  spec.keys, spec.nkeys = key_array, nkeys
  spec.args, spec.nargs = arg_array, nargs
  local out = ffi.new('lk_watch *[1]')
  return open(Watch, lib.lk_watch_open(pointer_of(self), spec, out, raised), out, self)
end

---Listen on a channel; returns when the server has confirmed it.
---@param channel string
---@return latchkey.wait|nil wait
---@return latchkey.error|nil err
function Client:wait(channel)
  local out = ffi.new('lk_wait *[1]')
  return open(Wait, lib.lk_wait_open(pointer_of(self), values.text(channel, 'channel'), out,
    raised), out, self)
end

local function caller_pointer(caller)
  return caller and pointer_of(caller)
end

---@param wait_ms? integer 0 (default) tries once; latchkey.FOREVER
---@param caller? latchkey.caller this thread when left out
---@return true|nil held
---@return latchkey.error|nil err
function Lock:acquire(wait_ms, caller)
  return values.outcome(lib.lk_lock_acquire(pointer_of(self), caller_pointer(caller),
    values.integer(wait_ms or 0, 'wait_ms'), raised), true)
end

---@param caller? latchkey.caller
---@return true|nil released
---@return latchkey.error|nil err
function Lock:release(caller)
  return values.outcome(lib.lk_lock_release(pointer_of(self), caller_pointer(caller), raised), true)
end

---@param caller? latchkey.caller
---@return integer ms that the hold is certain to last; at 0 or less, do not act
function Lock:remaining_ms(caller)
  return tonumber(lib.lk_lock_remaining_ms(pointer_of(self), caller_pointer(caller)))
end

---@param caller? latchkey.caller
---@return integer ms of the lease that was granted last; 0 if nothing is held
function Lock:lease_ms(caller)
  return tonumber(lib.lk_lock_lease_ms(pointer_of(self), caller_pointer(caller)))
end

---@param caller? latchkey.caller
---@return integer
function Lock:hold_count(caller)
  return tonumber(lib.lk_lock_hold_count(pointer_of(self), caller_pointer(caller)))
end

---The fencing token of the hold, 0 if the kind has none or nothing is held.
---@param caller? latchkey.caller
---@return integer
function Lock:token(caller)
  return tonumber(lib.lk_lock_token(pointer_of(self), caller_pointer(caller)))
end

---@param caller? latchkey.caller
---@return string|nil reason "taken", "expired", "unreachable" or "broken"; nil while it is not lost
function Lock:lost(caller)
  return REASONS[tonumber(lib.lk_lock_lost(pointer_of(self), caller_pointer(caller)))]
end

---@param caller? latchkey.caller
---@return string owner the name on the wire; "" if the caller holds nothing
function Lock:owner(caller)
  local size = lib.LK_OWNER_SIZE
  local buffer = ffi.new('char[?]', size)
  return ffi.string(buffer, lib.lk_lock_owner(pointer_of(self), caller_pointer(caller), buffer,
    size))
end

---@return integer ms that the lease is certain to run
function Watch:remaining_ms()
  return tonumber(lib.lk_watch_remaining_ms(pointer_of(self)))
end

---@return string|nil reason as of Lock:lost
function Watch:lost()
  return REASONS[tonumber(lib.lk_watch_lost(pointer_of(self)))]
end

---@param timeout_ms? integer 0 (default) only looks; latchkey.FOREVER
---@return true|nil spoken the channel spoke, or may have while the connection was away
---@return latchkey.error|nil err a refusal (DENIED, AUTH ...) comes again at once: listen anew
function Wait:sleep(timeout_ms)
  return values.outcome(lib.lk_wait_for(pointer_of(self), values.integer(timeout_ms or 0,
    'timeout_ms'), raised), true)
end

return latchkey

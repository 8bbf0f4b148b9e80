-- SPDX-License-Identifier: Apache-2.0
-- A helper of busted: in a live world the scripts run as a user who may do only what `latchkey acl`
-- says; what specs do to the server beside that is done as before. LK_SERVER_CLUSTER: the URL by
-- which the scripts run, where the server is a cluster.
local acl = require('latchkey.locks.acl')
local helper = require('helper')
local latchkey = require('latchkey')
local live = require('latchkey.spec.live')

local USER, PASSWORD = 'application', 'secret'

local world_of, application = live.world, nil

local function must(value, err)
  return value or error(err.message, 2)
end

local Both = {}
Both.__index = Both

function Both.eval(_, ...)
  return application:eval(...)
end

function Both:command(...)
  return self.administrator:command(...)
end

---As live.world, with two clients in the place of one.
function live.world(url, scripts)
  local world = world_of(url, scripts)
  if not application then
    local at = os.getenv('LK_SERVER_CLUSTER') or url
    local words = acl.words(acl.rule(helper.root, { names = { '*' }, sharded = true,
      topology = at:match('^redis%-(%l+):') }))
    must(world.client:command('ACL', 'SETUSER', USER, 'reset', '>' .. PASSWORD, unpack(words)))
    application = must(latchkey.open(at, { user = USER, password = PASSWORD,
      script_dir = scripts }))
    world.client, world.user = setmetatable({ administrator = world.client }, Both), USER
  end
  return world
end

-- SPDX-License-Identifier: Apache-2.0
-- Replies of the form that their command has. What answers at an address may be a proxy or another
-- program, and say anything.

local function is_list(reply)
  return type(reply) == 'table' and reply.n ~= nil
end

local FORMS = {
  integer = function(reply)
    return type(reply) == 'number'
  end,
  text = function(reply)
    return type(reply) == 'string'
  end,
  ['text or nil'] = function(reply)
    return reply == nil or type(reply) == 'string'
  end,
  status = function(reply)
    return type(reply) == 'table' and reply.ok ~= nil
  end,
  ['status or text'] = function(reply)
    return type(reply) == 'string' or type(reply) == 'table' and reply.ok ~= nil
  end,
  list = is_list,
  ['cursor and list'] = function(reply)
    return is_list(reply) and type(reply[1]) == 'string' and is_list(reply[2])
  end,
  ['list with a number'] = function(reply)
    return is_list(reply) and type(reply[2]) == 'number'
  end,
  time = function(reply)
    return is_list(reply) and tonumber(reply[1]) ~= nil and tonumber(reply[2]) ~= nil
  end,
  -- For who has seen that it is none.
  ['list that it gives'] = function()
    return false
  end,
}

---Hands on a reply of this form, and an error; any other reply, also none, becomes an error.
---@param form string one of FORMS
---@param command string what was asked, for the message
---@param reply any as of client:command
---@param err latchkey.error|nil
---@return any reply
---@return latchkey.error|nil err
return function(form, command, reply, err)
  if err or FORMS[form](reply) then
    return reply, err
  end
  return nil, { status = 'LK_PROTOCOL', message = ('the answer to %s is no %s'):format(command,
    form), hint = 'latchkey doctor says what the server is' }
end

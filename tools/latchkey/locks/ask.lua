-- SPDX-License-Identifier: Apache-2.0
-- Asking clients what they hold and what they wait for: lk_ask() of <latchkey/who.h>.
local ffi = require('ffi')

local answer = require('latchkey.locks.answer')
local fleet = require('latchkey.servers.fleet')

-- Declares and loads the library.
require('latchkey')

local lib = debug.getregistry()['latchkey.library']
local raised = ffi.new('lk_error')

local ask = {}

-- An older client does not say which database it is about: then it is taken for this one.
local function mark_elsewhere(answers, database)
  for _, one in ipairs(answers) do
    one.elsewhere = one.db ~= database and one.db or nil
  end
end

---@param client latchkey.client
---@param wait_ms integer
---@return table[]|nil answers as of answer.read; `elsewhere`: the database, if it is not the
---  client's own; all of a server hear the question
---@return latchkey.error|integer err, or how many heard the question; -1: not known
function ask.all(client, wait_ms)
  local out = ffi.new('lk_answers *[1]')
  local status = lib.lk_ask(client.pointer, wait_ms, out, raised)
  if tonumber(status) ~= lib.LK_OK then
    return nil, { status = ffi.string(lib.lk_status_name(status)),
      message = ffi.string(raised.message), hint = ffi.string(lib.lk_status_hint(status)),
      retriable = lib.lk_status_is_retriable(status) }
  end
  local answers = {}
  for i = 0, tonumber(lib.lk_answers_count(out[0])) - 1 do
    local bytes = lib.lk_answers_at(out[0], i)
    answers[#answers + 1] = answer.read(ffi.string(bytes.data, bytes.len))
  end
  local expected = tonumber(lib.lk_answers_expected(out[0]))
  lib.lk_answers_free(out[0])
  mark_elsewhere(answers, fleet.database(client))
  table.sort(answers, function(a, b)
    return a.uuid < b.uuid
  end)
  return answers, expected
end

return ask

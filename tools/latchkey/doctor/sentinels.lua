-- SPDX-License-Identifier: Apache-2.0
-- Can the sentinels that a URL names be asked, by the user that it names for them, and do they say
-- the same?
local sentinels = {}

-- Fewer cannot lose one and still agree on a fail-over.
local ENOUGH = 3

local function finding(level, message, advice)
  return { check = 'sentinels', level = level, message = message, advice = advice }
end

---The URLs of the sentinels, with user and password for them, and the name of the master.
---@param url string
---@return string[] urls
---@return string name
function sentinels.urls(url)
  local scheme, hosts, name, query =
    url:match('^(rediss?)%-sentinel://([^/?]+)/([^/?]+)[^?]*%??(.*)$')
  local urls, given, kept = {}, {}, {}
  for parameter in query:gmatch('[^&]+') do
    local what, value = parameter:match('^sentinel_(%l+)=(.*)$')
    if what then
      given[what] = value
    elseif not parameter:find('^functions=') then
      kept[#kept + 1] = parameter
    end
  end
  local login = given.password and ('%s:%s@'):format(given.user or '', given.password) or ''
  for host in hosts:gsub('^.*@', ''):gmatch('[^,]+') do
    local port = host:find(':%d+$') and '' or ':26379'
    urls[#urls + 1] = ('%s://%s%s%s%s'):format(scheme, login, host, port,
      #kept > 0 and '?' .. table.concat(kept, '&') or '')
  end
  return urls, (name:gsub('%%(%x%x)', function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

local function number_in(fields, name)
  for i = 1, fields.n, 2 do
    if fields[i] == name then
      return tonumber(fields[i + 1])
    end
  end
end

-- What one sentinel says: the master's address, and how many others there are.
local function ask(url, name)
  local client, err = require('latchkey').open(url, { no_load = true })
  if not client then
    return nil, err.message
  end
  local said = { at = client:target() }
  local address
  address, err = client:command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)
  said.master = address and ('%s:%s'):format(address[1], address[2])
  local why = not address and (err and err.message or 'it knows no master called ' .. name)
  if not why then
    local wait
    wait, err = client:wait('+switch-master')
    why = not wait and err.message or nil
  end
  if not why then
    local fields
    fields, err = client:command('SENTINEL', 'MASTER', name)
    why = err and err.message
    said.others = fields and number_in(fields, 'num-other-sentinels')
  end
  client:close()
  return not why and said or nil, why and ('%s: %s'):format(said.at, why)
end

-- Of all of them.
local function judge(said, findings)
  local first = said[1]
  for _, one in ipairs(said) do
    if one.master ~= first.master then
      findings[#findings + 1] = finding('problem', ('%s says that the master is %s, %s that it is '
        .. '%s'):format(first.at, first.master, one.at, one.master), 'while a fail-over goes on '
        .. 'that is normal; else let them forget the master (SENTINEL RESET) and monitor it again')
    end
  end
  if first.others and first.others + 1 < ENOUGH then
    findings[#findings + 1] = finding('note', ('there %s: without one there is no '
      .. 'fail-over'):format(first.others == 0 and 'is 1 sentinel' or 'are 2 sentinels'),
      'run three, on three machines')
  end
  if #findings == 0 then
    findings[1] = finding('good', ('%d sentinels name the master %s'):format(#said, first.master))
  end
end

---@param url string of Sentinel
---@return table[] findings
function sentinels.check(url)
  local urls, name = sentinels.urls(url)
  local said, findings = {}, {}
  for _, one in ipairs(urls) do
    local answer, why = ask(one, name)
    if answer then
      said[#said + 1] = answer
    else
      findings[#findings + 1] = finding('problem', 'a sentinel is of no use: ' .. why,
        'start it, or take it out of the URL; latchkey acl --sentinel prints what its user needs')
    end
  end
  if said[1] then
    judge(said, findings)
  end
  return findings
end

return sentinels

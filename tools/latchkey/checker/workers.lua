-- SPDX-License-Identifier: Apache-2.0
-- Several checks at once, each in a process of its own.
local cjson = require('cjson')
local unistd = require('posix.unistd')
local wait = require('posix.sys.wait')

local workers = {}

local function child(jobs, first, count, write_end, run)
  local out = {}
  for i = first, #jobs, count do
    local good, result = pcall(run, jobs[i])
    out[#out + 1] = cjson.encode({ i = i, result = good and result or nil,
      failed = not good and tostring(result) or nil })
    out[#out + 1] = '\n'
    local text, at = table.concat(out), 1
    while at <= #text do
      at = at + (unistd.write(write_end, text:sub(at)) or #text)
    end
    out = {}
  end
end

local function read_all(fd)
  local list = {}
  while true do
    local chunk = unistd.read(fd, 65536)
    if not chunk or chunk == '' then
      return table.concat(list)
    end
    list[#list + 1] = chunk
  end
end

---Runs jobs in `count` processes: the i-th goes to process i modulo count, heavy ones first.
---@param jobs table[]
---@param run fun(job): table a result that JSON can carry
---@return table[] results in the order of the jobs
function workers.map(jobs, count, run)
  local results, children = {}, {}
  if count <= 1 or #jobs <= 1 then
    for i, job in ipairs(jobs) do
      results[i] = run(job)
    end
    return results
  end
  io.stdout:flush()
  for k = 1, math.min(count, #jobs) do
    local read_end, write_end = unistd.pipe()
    local pid = assert(unistd.fork())
    if pid == 0 then
      unistd.close(read_end)
      child(jobs, k, count, write_end, run)
      unistd._exit(0)
    end
    unistd.close(write_end)
    children[k] = { pid = pid, fd = read_end }
  end
  for _, process in ipairs(children) do
    for line in read_all(process.fd):gmatch('[^\n]+') do
      local message = cjson.decode(line)
      if message.failed then
        error(message.failed, 0)
      end
      results[message.i] = message.result
    end
    unistd.close(process.fd)
    wait.wait(process.pid)
  end
  for i = 1, #jobs do
    if not results[i] then
      error(('the process of run %d of %d ended without a result'):format(i, #jobs), 0)
    end
  end
  return results
end

return workers

-- SPDX-License-Identifier: Apache-2.0
-- What runs in several processes: its results, and what fails or does not end there.
local poll = require('posix.poll')
local signal = require('posix.signal')
local unistd = require('posix.unistd')
local wait = require('posix.sys.wait')

local processes = require('latchkey.processes')

describe('processes', function()
  it('give results in the order of the items, however many there are at a time', function()
    for workers = 1, 4 do
      local results = processes.map({ 3, 1, 2 }, workers, function(item)
        return { item = item, long = ('x'):rep(item * 100000) }
      end)

      for place, item in ipairs({ 3, 1, 2 }) do
        assert.equal(item, results[place].item)
        assert.equal(item * 100000, #results[place].long)
      end
    end
  end)

  it('run beside the one that waits for them', function()
    local own = unistd.getpid()

    local results = processes.map({ 1, 2, 3 }, 2, function()
      return { pid = unistd.getpid() }
    end)

    local seen = { [own] = true }
    for _, result in ipairs(results) do
      assert.is_nil(seen[result.pid])
      seen[result.pid] = true
    end
  end)

  it('hand on what fails', function()
    local ok, why = pcall(processes.map, { 1, 2 }, 2, function(item)
      return item == 1 and {} or error('no good', 0)
    end)

    assert.same({ false, 'no good' }, { ok, why })
  end)

  it('say of each whether it gave something, died or did not end', function()
    local said = {}
    local function each(items, limit_s)
      processes.each(items, { workers = 2, limit_s = limit_s }, function(item)
        if item == 'dies' then
          unistd._exit(3)
        elseif item == 'late' then
          unistd.sleep(600)
        end
        return item .. ' result'
      end, function(item, result, defect)
        said[item] = result or defect
      end)
    end

    each({ 'good', 'dies' }, 60)
    each({ 'late' }, 0.1)

    assert.same({ good = 'good result', dies = 'the process died', late = 'it did not end' }, said)
  end)

  -- Two workers that would go on for ten minutes, and who waits for them; each says that it runs.
  local function start_front()
    local said, say = unistd.pipe()
    local pid = assert(unistd.fork())
    if pid == 0 then
      unistd.close(said)
      pcall(processes.each, { 1, 2, 3 }, { workers = 2, limit_s = math.huge }, function()
        unistd.write(say, 'x')
        for _ = 1, 600 do
          unistd.sleep(1)
        end
      end, function() end)
      unistd._exit(0)
    end
    unistd.close(say)
    return pid, said
  end

  -- All that is written there until nobody is left who may write; nil where somebody stays.
  local function read_to_end(fd)
    local parts = {}
    while poll.rpoll(fd, 10000) == 1 do
      local bytes = unistd.read(fd, 16)
      if bytes == '' then
        return table.concat(parts)
      end
      parts[#parts + 1] = bytes
    end
  end

  for _, name in ipairs({ 'SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL' }) do
    it('end with the one that waits for them, which ends by ' .. name, function()
      local front, said = start_front()
      local running = unistd.read(said, 1) .. unistd.read(said, 1)
      signal.kill(front, signal[name])
      wait.wait(front)

      local rest = read_to_end(said)
      unistd.close(said)

      assert.same({ 'xx', '' }, { running, rest })
    end)
  end
end)

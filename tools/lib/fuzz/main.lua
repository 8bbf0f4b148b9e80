-- SPDX-License-Identifier: Apache-2.0
-- Targets in Lua of tools/fuzz: luajit tools/lib/fuzz/main.lua TARGET SECONDS FIRST RUNS FOUND. The
-- last line says what came of it; 1 where something was found.
local root = arg[0]:match('^(.*)tools/lib/fuzz/main%.lua$')
package.path = ('%stools/?.lua;%stools/?/init.lua;%s'):format(root, root, package.path)

-- As in .busted: compiled loops over pairs() can crash in old LuaJITs.
if rawget(_G, 'jit') then
  jit.off()
end

local utils = require('pl.utils')

local run = require('lib.fuzz.run')
local targets = require('lib.fuzz.targets')

local name, seconds, first, runs, found = unpack(arg)
if name == '--list' then
  print(table.concat(targets.names, '\n'))
  os.exit(0)
end

-- What hangs where no hook sees it leaves its number behind.
local log = assert(io.open(found .. '/' .. name .. '-last', 'w'))
local seeds = targets.seeds(name)
local done, finding = run.all(targets[name], seeds, { first = tonumber(first),
  runs = tonumber(runs), seconds = tonumber(seconds), clock = os.time,
  progress = function(number)
    log:seek('set', 0)
    log:write(('%d\n'):format(number))
    log:flush()
  end })
log:close()
if finding then
  local file = ('%s/%s-%d'):format(found, name, finding.number)
  utils.writefile(file, finding.input, true)
  io.stderr:write(finding.why, '\n')
  print(('%s: %d runs, FOUND something: %s; again: tools/fuzz %s --seed %d --runs 1'):format(name,
    done, file, name, finding.number))
  os.exit(1)
end
os.remove(found .. '/' .. name .. '-last')
print(('%s: %d runs, seeds from %s on, nothing found'):format(name, done, first))

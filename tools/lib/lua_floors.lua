-- SPDX-License-Identifier: Apache-2.0
-- The floors of the Lua that is installed, lowest first, a folder of tools/latchkey each: a file
-- requires those of its own floor and of floors before it. tools/floors reads it in the files, in
-- the section `lint`. On the lowest floor is what stands in tools/latchkey itself.
return {
  floors = { 'latchkey', 'lua51', 'redis', 'script', 'mock', 'lint', 'spec', 'checker', 'mutate',
    'bundle', 'servers', 'locks', 'doctor', 'repl', 'debugger', 'cli' },

  -- Made by the build.
  outside = { 'latchkey%.generated%..*' },

  -- Templates, which nothing requires.
  left_out = 'tools/latchkey/new/',
}

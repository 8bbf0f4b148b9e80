-- SPDX-License-Identifier: Apache-2.0
-- A helper of busted, which loads every file of specs with modules of its own: those that all of
-- them use are loaded here, once for all files. They keep nothing of one file that another can see,
-- but for what is the same for both: texts of scripts that are compiled, their digests.
for _, name in ipairs({ 'helper', 'latchkey.bundle', 'latchkey.checker', 'latchkey.debugger',
  'latchkey.lint' }) do
  require(name)
end

-- What has run stays until the end, some kilobytes of each spec: the collector need not go through
-- all of it so often.
collectgarbage('setpause', 400)

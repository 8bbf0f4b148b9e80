-- SPDX-License-Identifier: Apache-2.0
-- Writes what a build knows of the scripts: the C table of c/src/harness/catalog.h and the same as
-- a Lua table. Equal scripts give equal files, byte for byte.
local here = arg[0]:match('^(.*)/[^/]*$') or '.'
package.path = ('%s/?.lua;%s/?/init.lua;%s'):format(here, here, package.path)

local argparse = require('argparse')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local report = require('latchkey.report')

local C_BYTES = { [10] = '\\n', [39] = "\\'", [92] = '\\\\' }

local C_FORMS = { name = 'LK_FORM_NAME', prefix = 'LK_FORM_PREFIX', suffix = 'LK_FORM_SUFFIX',
  braces = 'LK_FORM_BRACES' }

local function c_byte(character)
  local byte = character:byte()
  local plain = byte >= 32 and byte < 127 and character
  return "'" .. (C_BYTES[byte] or plain or ('\\%03o'):format(byte)) .. "',"
end

-- Character constants and no string: a compiler need not take literals above 4095 bytes.
local function c_characters(text)
  local lines = {}
  for line in text:gmatch('[^\n]*\n?') do
    if line ~= '' then
      lines[#lines + 1] = '  ' .. line:gsub('.', c_byte)
    end
  end
  return table.concat(lines, '\n') .. "\n  '\\0'"
end

local function c_string(text)
  return '"' .. text:gsub('[%c"\\]', function(character)
    return ('\\%03o'):format(character:byte())
  end) .. '"'
end

local function c_fields(fields, array)
  if #fields == 0 then
    return 'NULL', ''
  end
  local rows = {}
  for _, field in ipairs(fields) do
    local form = field.form or { text = '', plus = '' }
    rows[#rows + 1] = ('  {%s, %s, %s, %s, %s, %s, %s},\n'):format(c_string(field.name),
      c_string(field.type), C_FORMS[form.kind] or 'LK_FORM_NONE', c_string(form.text),
      c_string(form.plus), tostring(field.optional == true), tostring(field.many ~= nil))
  end
  return array, ('static const lk_field %s[] = {\n%s};\n'):format(array, table.concat(rows))
end

local function shapes(h)
  local lines = {}
  for _, reply in ipairs(h.returns) do
    lines[#lines + 1] = reply.shape
  end
  return table.concat(lines, '\n')
end

local function c_file(scripts)
  local arrays, rows = {}, {}
  for _, script in ipairs(scripts) do
    local h, id = script.header, script.name:gsub('/', '__')
    local keys, keys_text = c_fields(h.keys, 'keys_' .. id)
    local args, args_text = c_fields(h.argv, 'args_' .. id)
    arrays[#arrays + 1] = ('static const char source_%s[] = {\n%s\n};\n%s%s'):format(
      id, c_characters(script.source), keys_text, args_text)
    rows[#rows + 1] = table.concat({
      '  {' .. c_string(script.name), c_string(h.version), c_string(script.sha1),
      'LK_REPEAT_' .. h.repeat_:upper(), 'source_' .. id, tostring(#script.source),
      keys, tostring(#h.keys), args, tostring(#h.argv), c_string(shapes(h)), 'NULL, 0},',
    }, ', ')
  end
  return table.concat({
    '/* Generated from the scripts by tools/generate.lua. */',
    '#include "harness/catalog.h"\n',
    table.concat(arrays, '\n'),
    'const lk_script_def lk_embedded_scripts[] = {',
    table.concat(rows, '\n'),
    '};\n',
    ('const size_t lk_embedded_count = %d;\n'):format(#scripts),
  }, '\n')
end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then
      return type(a) == 'number'
    end
    return a < b
  end)
  return keys
end

local function lua_value(value, indent)
  if type(value) == 'number' then
    return ('%.0f'):format(value)
  elseif type(value) ~= 'table' then
    return type(value) == 'string' and ('%q'):format(value) or tostring(value)
  end
  local inner, rows = indent .. '  ', {}
  for _, key in ipairs(sorted_keys(value)) do
    local label = type(key) == 'number' and '' or ('[%q] = '):format(key)
    rows[#rows + 1] = inner .. label .. lua_value(value[key], inner) .. ',\n'
  end
  return #rows == 0 and '{}' or '{\n' .. table.concat(rows) .. indent .. '}'
end

local function lua_file(scripts)
  local rows = {}
  for i, script in ipairs(scripts) do
    rows[i] = { name = script.name, sha1 = script.sha1, header = script.header,
      shapes = shapes(script.header) }
  end
  return '-- Generated from the scripts by tools/generate.lua.\nreturn ' .. lua_value(rows, '')
    .. '\n'
end

local function main(argv)
  local parser = argparse('generate.lua', 'Write the tables of the scripts for a build.')
  parser:option('--scripts', 'Folder of the scripts.'):args(1):count(1)
  parser:option('--c', 'C file to write.'):args(1):count(1)
  parser:option('--lua', 'Lua file to write.'):args(1):count(1)
  local ok, options = parser:pparse(argv)
  if not ok then
    io.stderr:write(options, '\n')
    return 64
  end

  local scripts, findings = catalog.read(options.scripts)
  if scripts and #scripts == 0 then
    findings = { { file = options.scripts, line = 0, rule = 'file', message = 'no script there' } }
  end
  if findings then
    io.stderr:write(report.text(findings))
    return 1
  end
  local outputs = { { options.c, c_file(scripts) }, { options.lua, lua_file(scripts) } }
  for _, output in ipairs(outputs) do
    local written, why = utils.writefile(output[1], output[2], true)
    if not written then
      io.stderr:write(why, '\n')
      return 1
    end
  end
  return 0
end

os.exit(main(arg))

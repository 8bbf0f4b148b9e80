-- SPDX-License-Identifier: Apache-2.0
-- What the scripts of one family say of the same thing: a key or channel of one name is formed in
-- one way. Where two differ, one of them looks at a key that the other never writes.
local families = {}

local function text_of(form)
  local text = form.kind == 'pattern' and form.text or (form.kind == 'name' or form.kind == 'slot')
    and ('{%s}'):format(form.kind) or form.kind .. ':' .. form.text
  return form.plus ~= '' and text .. '+' .. form.plus or text
end

---@param scripts table[] of lint.script, of one folder
---@param add fun(file: string, line: integer, message: string)
function families.check(scripts, add)
  local known = {}
  for _, script in ipairs(scripts) do
    local h = script.header
    for _, list in ipairs({ 'keys', 'channels', 'argv' }) do
      for _, field in ipairs(h[list]) do
        local id = field.form and ('%s %s %s'):format(h.name:match('^[^/]+'), list, field.name)
        local form = id and text_of(field.form)
        local first = known[id or false]
        if first and first.form ~= form then
          local line = h.lines[list] -- a contract's says which file it is of
          local is_of = type(line) == 'table'
          add(is_of and line.contract or script.path, is_of and line.line or line,
            ('"%s" is formed %s here, and %s in %s'):format(field.name, form, first.form,
              first.script))
        elseif id and not first then
          known[id] = { form = form, script = h.name }
        end
      end
    end
  end
end

return families

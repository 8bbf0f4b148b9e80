-- SPDX-License-Identifier: Apache-2.0
-- State diagrams of the families, from docs/reference/states.tsv, drawn by Graphviz.
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local states = {}

---@param file string
---@return table[] rows { family, from, by, reply, to }
function states.read(file)
  local rows = {}
  for i, line in ipairs(stringx.splitlines(assert(utils.readfile(file)))) do
    local cells = stringx.split(line, '\t')
    if i > 1 then
      rows[#rows + 1] = { family = cells[1], from = cells[2], by = cells[3], reply = cells[4],
        to = cells[5] }
    end
  end
  return rows
end

-- "lock/acquire" in a diagram of locks is "acquire".
local function label_of(row)
  local verb = row.by:match('^' .. row.family .. '/(.+)$') or row.by
  return row.reply == '-' and '(' .. verb .. ')' or verb
end

-- One arrow for all that lead from one state to another.
local function arrows(rows)
  local list, known = {}, {}
  for _, row in ipairs(rows) do
    local name = row.from .. '\t' .. row.to
    if not known[name] then
      known[name] = { from = row.from, to = row.to, labels = {} }
      list[#list + 1] = known[name]
    end
    table.insert(known[name].labels, label_of(row))
  end
  return list
end

---@param rows table[] of one family
---@return string text in the language of dot(1)
function states.dot(rows)
  local out = { 'digraph {', 'rankdir=LR; bgcolor=transparent; pad=0.1; nodesep=0.5;',
    'node [shape=box, style=rounded, fontname="sans-serif", fontsize=13, margin="0.2,0.08"];',
    'edge [fontname="monospace", fontsize=11, arrowsize=0.7];' }
  for _, arrow in ipairs(arrows(rows)) do
    out[#out + 1] = ('"%s" -> "%s" [label=" %s "];'):format(arrow.from, arrow.to,
      table.concat(arrow.labels, ' \\n '))
  end
  out[#out + 1] = '}'
  return table.concat(out, '\n')
end

---@param rows table[] of one family
---@param title string
---@return string svg to stand in a page; it takes the colour of the text around it
function states.svg(rows, title)
  local file = os.tmpname()
  assert(utils.writefile(file, states.dot(rows)))
  local good, _, svg, why = utils.executeex(("dot -Tsvg '%s'"):format(file))
  os.remove(file)
  assert(good, why)
  svg = svg:gsub('^.-<svg', '<svg'):gsub('<!%-%-.-%-%->', ''):gsub('<title>.-</title>', '')
    :gsub('="black"', '="currentColor"'):gsub('<text ', '<text fill="currentColor" ')
    :gsub('\n%s*', ' ')
  return ('<div class="lk-states" role="img" aria-label="%s">%s</div>\n'):format(title, svg)
end

return states

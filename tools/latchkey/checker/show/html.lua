-- SPDX-License-Identifier: Apache-2.0
-- A run as one page that needs nothing else: the verdict, a sequence diagram, the keys that change
-- at each step, the script with the line to blame, and the replay.
local utils = require('pl.utils')

local page = {}

-- Lanes are as wide as the longest label: one that ran across the line of another client would seem
-- to be its step.
local LEAST_LANE, ROW, TOP, LEFT = 190, 34, 46, 70
local LETTER, MONO_LETTER = 6.6, 7.6

local STYLE = [[
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; padding: 0 1em; max-width: 1150px;
color: #1d2329; }
h1 { font-size: 1.3em; } h2 { font-size: 1.05em; margin-top: 1.8em; }
.bad { color: #a11616; } .good { color: #14652f; }
pre, code, text.mono { font-family: ui-monospace, monospace; font-size: 12.5px; }
pre { background: #f5f6f8; padding: .8em; overflow-x: auto; }
pre mark { background: #ffd9d4; display: block; }
.wide { overflow-x: auto; }
svg { background: #fff; border: 1px solid #d9dde2; max-width: max(100%, 650px); height: auto; }
table { border-collapse: collapse; } td, th { padding: .15em .8em .15em 0; text-align: left;
vertical-align: top; font-size: 13px; }]]

local ESCAPE = { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;' }

local function escape(text)
  return (tostring(text):gsub('[&<>"]', ESCAPE))
end

local function short(row)
  local owner = row.does:match('lk%-%u:%d+[%w:]*')
  return row.script and (row.late and 'late ' or '') .. row.script .. (owner and ' ' .. owner or '')
    or row.does
end

local function label_of(row)
  return short(row) .. (not row.answer and row.state and ': ' .. row.state or '')
end

local function lanes_of(told)
  local lanes, count = { width = LEAST_LANE, answer = LEAST_LANE }, 0
  for _, row in ipairs(told.rows) do
    if not row.passes then
      lanes.width = math.max(lanes.width, 8 + LETTER * #label_of(row) + 12)
      lanes.answer = math.max(lanes.answer, 8 + MONO_LETTER * #(row.answer or ''))
    end
  end
  for _, letter in ipairs(told.letters) do
    for _, row in ipairs(told.rows) do
      if row.who == letter and not lanes[letter] then
        count = count + 1
        lanes[letter] = LEFT + LEAST_LANE / 2 + (count - 1) * lanes.width
        lanes[count] = letter
      end
    end
  end
  lanes.count, lanes.server = count, LEFT + LEAST_LANE / 2 + count * lanes.width
  return lanes
end

local function text_at(x, y, text, more)
  return ('<text x="%.0f" y="%.0f" %s>%s</text>'):format(x, y, more or '', escape(text))
end

local function arrow(from, to, y, class)
  return ('<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f" stroke="%s" marker-end="url(#tip)"/>')
    :format(from, y, to - (to > from and 4 or -4), y, class)
end

local function draw_row(row, lanes, y, last)
  local out, x = {}, lanes[row.who] or lanes.server
  if row.passes then
    out[1] = text_at(8, y + 4, ('+%d ms'):format(row.passes), 'fill="#667" font-size="12"')
    out[2] = ('<line x1="%d" y1="%d" x2="%.0f" y2="%d" stroke="#e3e6ea"/>'):format(LEFT, y,
      lanes.server + LEAST_LANE / 2, y)
  elseif row.answer then
    local colour = (last or row.fault) and '#a11616' or '#24507f'
    out[1] = arrow(x, lanes.server, y, colour)
    out[2] = text_at(x + 8, y - 5, label_of(row), ('font-size="12" fill="%s"'):format(colour))
    out[3] = text_at(lanes.server + 8, y + 4, row.answer, 'font-size="12" class="mono"')
  else
    local colour = (row.fault or last) and '#a11616' or '#1d2329'
    out[1] = ('<circle cx="%.0f" cy="%.0f" r="3.5" fill="%s"/>'):format(x, y, colour)
    out[2] = text_at(x + 8, y + 4, label_of(row), ('font-size="12" fill="%s"'):format(colour))
  end
  return table.concat(out)
end

local function draw(told)
  local lanes = lanes_of(told)
  local width, height = lanes.server + lanes.answer + 60, TOP + ROW * (#told.rows + 1)
  local out = { ('<svg viewBox="0 0 %.0f %.0f" width="%.0f" role="img" aria-label="sequence">')
    :format(width, height, width),
    '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="6"'
    .. ' refY="3" orient="auto"><path d="M0,0 L6,3 L0,6 z" fill="#24507f"/></marker></defs>' }
  for i = 1, lanes.count do
    local x = lanes[lanes[i]]
    out[#out + 1] = text_at(x, 22, 'client ' .. lanes[i],
      'text-anchor="middle" font-weight="600"')
    out[#out + 1] = ('<line x1="%.0f" y1="30" x2="%.0f" y2="%.0f" stroke="#aab"/>'):format(x, x,
      height - 8)
  end
  out[#out + 1] = text_at(lanes.server, 22, 'server', 'text-anchor="middle" font-weight="600"')
  out[#out + 1] = ('<line x1="%.0f" y1="30" x2="%.0f" y2="%.0f" stroke="#667"/>'):format(
    lanes.server, lanes.server, height - 8)
  for i, row in ipairs(told.rows) do
    out[#out + 1] = draw_row(row, lanes, TOP + (i - 0.5) * ROW,
      told.finding and i == #told.rows)
  end
  out[#out + 1] = '</svg>'
  return table.concat(out, '\n')
end

local function table_of_keys(told)
  local out = { '<table><tr><th>ms<th>step<th>key<th>then' }
  for _, row in ipairs(told.rows) do
    for _, change in ipairs(row.changes) do
      out[#out + 1] = ('<tr><td>%d<td><code>%s</code><td><code>%s</code><td><code>%s</code>')
        :format(row.at_ms + (row.passes or 0), escape(row.label), escape(change.key),
          escape(change.now))
    end
  end
  return table.concat(out, '\n') .. '</table>'
end

local function source_of(told)
  if not told.blame then
    return ''
  end
  local file = ('%s/%s.lua'):format(told.blame.scripts, told.blame.script)
  local out, number = {}, 0
  for line in (utils.readfile(file, true) .. '\n'):gmatch('(.-)\n') do
    number = number + 1
    local shown = ('%4d  %s'):format(number, escape(line))
    out[#out + 1] = number == told.blame.line and ('<mark id="blame">%s</mark>'):format(shown)
      or shown .. '\n'
  end
  return ('<h2>%s.lua, line %d</h2><pre>%s</pre>'):format(escape(told.blame.script),
    told.blame.line or 0, table.concat(out))
end

---@param told table of story.of
---@param about { model, replay, scripts, hints, verdict, title, words, back }; `back` is the page
---  that leads here, { address, title }
---@return string html
function page.of(told, about)
  local finding = told.finding
  local verdict = finding and ('%s violated: %s'):format(finding.property, finding.message)
    or 'No promise is broken in this run.'
  return table.concat({
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    ('<title>%s</title><style>%s</style></head><body>'):format(escape(about.title
      or 'latchkey check ' .. about.model), STYLE),
    about.back and ('<nav><a href="%s">%s</a></nav>'):format(escape(about.back[1]),
      escape(about.back[2])) or '',
    ('<h1>%s</h1>'):format(escape(about.title or 'latchkey check ' .. about.model)),
    about.words and ('<p>%s</p>'):format(escape(about.words)) or '',
    ('<p class="%s" id="verdict"><b>%s</b></p>'):format(finding and 'bad' or 'good',
      escape(verdict)),
    about.verdict and ('<p id="bounds">%s</p>'):format(escape(about.verdict)) or '',
    '<h2>What happened</h2><div class="wide">', draw(told), '</div>',
    '<h2>Keys that change</h2><div class="wide">', table_of_keys(told), '</div>',
    source_of(told),
    '<h2>Again</h2>',
    ('<pre id="replay">latchkey check %s %s--replay \'%s\'</pre>'):format(escape(about.model),
      about.hints and escape(about.hints) .. ' ' or '', escape(about.replay)),
    '</body></html>', '',
  }, '\n')
end

return page

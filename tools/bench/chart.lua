-- SPDX-License-Identifier: Apache-2.0
-- The rows that compare, as bars: longer is better for pairs, shorter for hand-offs (on a
-- logarithmic scale, since they differ a thousandfold).
local stats = require('bench.stats')

local chart = {}

local WIDTH, LABEL, BAR, GAP, TITLE = 860, 210, 18, 6, 34

local function escape(text)
  return (text:gsub('[&<>]', { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;' }))
end

local function text(x, y, class, words)
  return ('<text x="%g" y="%g" class="%s">%s</text>\n'):format(x, y, class, escape(words))
end

-- The length of a bar, as a part of the longest.
local function part(value, longest, logarithmic)
  if logarithmic then
    return math.max(math.log(math.max(value, 10) / 10) / math.log(longest / 10), 0.005)
  end
  return value / longest
end

local function bars(row, top)
  local out, longest, y = {}, 0, top + TITLE
  local handoffs = row.chart:find('^handoff') ~= nil
  for _, contender in ipairs(row.contenders) do
    local spread = stats.spread(stats.column(contender, row.chart))
    contender.bar = spread and spread.median or 0
    longest = math.max(longest, contender.bar)
  end
  out[1] = text(0, top + 20, 'title', ('%s: %s'):format(row.title,
    handoffs and 'one hand-off, us (logarithmic)' or 'pairs a second'))
  for _, contender in ipairs(row.contenders) do
    local room = WIDTH - LABEL - 80
    local length = longest > 0 and room * part(contender.bar, longest, handoffs) or 0
    out[#out + 1] = text(LABEL - 8, y + BAR - 5, 'label', contender.name)
    out[#out + 1] = ('<rect x="%d" y="%d" width="%.1f" height="%d" class="%s"/>\n'):format(
      LABEL, y, length, BAR, contender.ours and 'ours' or 'theirs')
    out[#out + 1] = text(LABEL + length + 6, y + BAR - 5, 'value', ('%.0f'):format(contender.bar))
    contender.bar = nil
    y = y + BAR + GAP
  end
  return table.concat(out), y + 8
end

local STYLE = [[<style>
text { font: 12px sans-serif; fill: #222 } .title { font-weight: bold; font-size: 13px }
.label { text-anchor: end } .ours { fill: #1565c0 } .theirs { fill: #b0bec5 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .theirs { fill: #607d8b } .ours { fill: #64b5f6 }
}
</style>
]]

---@param all table what was measured
---@return string SVG
function chart.draw(all)
  local parts, y = {}, 4
  for _, row in ipairs(all.rows) do
    if row.chart then
      parts[#parts + 1], y = bars(row, y)
    end
  end
  return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"'):format(WIDTH, y)
    .. ' aria-label="latchkey beside other clients">\n' .. STYLE .. table.concat(parts)
    .. '</svg>\n'
end

return chart

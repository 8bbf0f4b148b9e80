-- SPDX-License-Identifier: Apache-2.0
-- Scores of sorted sets: doubles, read as C's strtod reads them.
local scores = {}

local INFINITE = { inf = true, infinity = true }

scores.NOT_A_FLOAT = 'ERR value is not a valid float'
scores.NO_RANGE = 'ERR min or max is not a float'

local HEXADECIMAL = 'MOCK hexadecimal scores are not modelled'

---@return number|nil value nil: no number, or more than one
---@return string|nil digits those before an exponent; nil: infinity is meant
local function read(text)
  local sign, body = text:lower():match('^%s*([+-]?)(.*)$')
  local factor = sign == '-' and -1 or 1
  if INFINITE[body] then
    return factor * math.huge
  end
  local digits, exponent = body:match('^(%d*%.?%d*)(.*)$')
  if digits:find('%d') and (exponent == '' or exponent:find('^e[+-]?%d+$')) then
    return factor * tonumber(body), digits
  end
  return nil
end

local function refusal(text, otherwise)
  return text:lower():find('^%s*[+-]?0x%.?%x') and HEXADECIMAL or otherwise
end

---@param text string
---@return number|nil
---@return string|nil err
function scores.parse(text)
  local score, digits = read(text)
  local too_big = digits and math.abs(score or 0) == math.huge
  local too_small = score == 0 and digits:find('[1-9]')
  if not score or text:find('^%s') or too_big or too_small then
    return nil, refusal(text, scores.NOT_A_FLOAT)
  end
  return score
end

local function parse_bound(text)
  local open = text:sub(1, 1) == '('
  local number = text:sub(open and 2 or 1):gsub('%z.*', '')
  local score = number == '' and 0 or read(number)
  if not score then
    return nil, refusal(number, scores.NO_RANGE)
  end
  return { score = score, open = open }
end

---The ends of a range of scores: "(" before a number leaves that number out.
---@return table|nil range
---@return string|nil err
function scores.parse_range(min, max)
  local from, bad_min = parse_bound(min)
  if bad_min then
    return nil, bad_min
  end
  local to, bad_max = parse_bound(max)
  return to and { from, to }, bad_max
end

---@param range table as `parse_range` gives it
function scores.within(range, score)
  local from, to = range[1], range[2]
  return (from.score < score or (from.score == score and not from.open))
    and (score < to.score or (score == to.score and not to.open))
end

---@return string
function scores.text(score)
  return ('%.17g'):format(score)
end

return scores

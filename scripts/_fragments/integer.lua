-- Is `text` a plain decimal integer from min to max? No sign, no leading zero, no exponent: the
-- text itself is handed on to Redis, which accepts nothing else.
local function is_integer(text, min, max)
  if not text or #text > 16 or not (text == '0' or string.find(text, '^[1-9]%d*$')) then
    return false
  end
  return tonumber(text) >= min and tonumber(text) <= max
end

-- Is `text` there, and between 1 and max bytes long?
local function is_text(text, max)
  return text and #text >= 1 and #text <= max
end

-- Is `text` the name of a read hold? Fields of the hash are also `mode` and, by their end, writers.
local function is_reader(text, max)
  return #text >= 1 and #text <= max and text ~= 'mode' and not string.find(text, ':write$')
end

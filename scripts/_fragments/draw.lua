-- The fencing token after `last`, and the last one after itself. The server's clock in microseconds
-- is its floor, so that tokens go on rising when the counter was lost with the data of a server. A
-- clock past the year 2255 is wrong, and counts as that: above it is room for later tokens.
local function draw(last)
  local time = redis.call('TIME')
  local floor = math.min(time[1] * 1000000 + time[2], 9000000000000000)
  return math.min(math.max(last + 1, floor), 9007199254740991)
end

-- The fencing token after `last`, and the last one after itself. The server's clock in microseconds
-- is its floor, so that tokens go on rising when the counter was lost with the data of a server.
local function draw(last)
  local time = redis.call('TIME')
  return math.min(math.max(last + 1, time[1] * 1000000 + time[2]), 9007199254740991)
end

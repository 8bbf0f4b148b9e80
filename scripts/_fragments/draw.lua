-- The fencing token after `last`. The server's clock in microseconds is its floor, so that tokens
-- go on rising when the counter was lost with the data of a server.
local function draw(last)
  local time = redis.call('TIME')
  return math.max(last + 1, time[1] * 1000000 + time[2])
end

-- The score of a waiter that sends heartbeats: Redisson drops it, once it is first, 30 s after its
-- heartbeat ends, since clocks differ. Each of its waiters before takes off a wait as it goes.
local function own_score(heartbeat_end_ms, wait, theirs_before)
  return heartbeat_end_ms + 30000 + wait * math.max(0, theirs_before)
end

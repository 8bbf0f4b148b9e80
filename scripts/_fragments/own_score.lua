-- The score of a waiter that sends heartbeats: Redisson drops it, once it is first, 30 s after its
-- heartbeat ends, since clocks differ. Each of its own that goes before takes off its wait.
local function own_score(heartbeat_end_ms, wait, place, others)
  return heartbeat_end_ms + 30000 + wait * math.min(place, math.max(0, others))
end

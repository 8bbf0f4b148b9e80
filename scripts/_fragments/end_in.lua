-- Let the hash end then. What Redisson's readers have of it is kept beside it, so that one that
-- died is not there for as long as ours come and go. Until that is over, no renewal of theirs, by
-- 30 s at most, sets the end that is set here: another end says that they were there. PEXPIRE of
-- 0, for a reader of ours with less than 1 ms, would delete the lock.
local function end_in(rwlock, theirs, left_ms, theirs_ms)
  local is_longer = theirs_ms and left_ms > theirs_ms
  left_ms = is_longer and math.max(left_ms, theirs_ms + 30001) or left_ms
  redis.call('PEXPIRE', rwlock, string.format('%.0f', math.max(left_ms, 1)))
  if is_longer then
    local ends = redis.call('PEXPIRETIME', rwlock)
    local their_end = ends - redis.call('PTTL', rwlock) + theirs_ms
    local text = string.format('%.0f', ends)
    redis.call('SET', theirs, text .. string.format(' %.0f', their_end), 'PXAT', text)
  end
end

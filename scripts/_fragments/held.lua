-- Does the owner hold the lock? A reader's field may outlast its hold, but not its level.
local function is_held(lock, owner, level)
  local found = redis.call('HMGET', lock, owner, 'mode')
  if found[2] and not string.find(owner, ':write$') then
    return found[1] and redis.call('EXISTS', level) == 1
  end
  return found[1]
end

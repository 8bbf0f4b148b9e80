-- Is the hold with this token out of date where `last_owner` has been with the token `last`? An
-- equal token of another owner comes from a server that lost its counter, or its time: of two such
-- holds nobody can tell which is the later, and the one that came first stays.
local function is_outdated(token, owner, last, last_owner)
  return token < last or token == last and owner ~= last_owner
end

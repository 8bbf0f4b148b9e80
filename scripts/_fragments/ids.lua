-- Are the arguments from this place on ids of permits, 16 bytes each?
local function are_ids(arguments, first)
  for i = first, #arguments do
    if #arguments[i] ~= 16 then
      return false
    end
  end
  return true
end

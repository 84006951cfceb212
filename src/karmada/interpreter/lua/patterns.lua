-- Patterns of string.find and string.match, in Lua: slower than those of the library, but the clock that ends scripts
-- keeps ticking. Only taken for a pattern that may try a text again and again.

local byte, sub, find, type, error, unpack = string.byte, string.sub, string.find, type, error, table.unpack
local POSITION = -2
local OPEN = -1

local function class_end(p, i)
  local c = byte(p, i)
  if c == nil then error("malformed pattern", 0) end
  if c == 37 then -- %
    if i + 1 > #p then error("malformed pattern (ends with '%')", 0) end
    return i + 2
  end
  if c ~= 91 then return i + 1 end -- not [
  i = i + 1
  if byte(p, i) == 94 then i = i + 1 end
  repeat
    c = byte(p, i)
    if c == nil then error("malformed pattern (missing ']')", 0) end
    i = i + 1
    if c == 37 then i = i + 1 end
  until byte(p, i) == 93
  return i + 1
end

-- Whether one character is what the item p[i .. after - 1] stands for; the library judges a single character.
local known = {}
local function fits(c, p, i, after)
  if after == i + 1 then
    local item = byte(p, i)
    return item == 46 or item == c
  end
  local item = sub(p, i, after - 1)
  local answers = known[item]
  if answers == nil then
    answers = {}
    known[item] = answers
  end
  local answer = answers[c]
  if answer == nil then
    answer = find(string.char(c), item) ~= nil
    answers[c] = answer
  end
  return answer
end

return function(s, p, init, with_place, whole)
  known = {}
  local length = #s
  local starts, sizes, level = {}, {}, 0
  local do_match

  local function balanced(si, pi)
    local open, close = byte(p, pi), byte(p, pi + 1)
    if close == nil then error("malformed pattern (missing arguments to '%b')", 0) end
    if byte(s, si) ~= open then return nil end
    local depth = 1
    for at = si + 1, length do
      local c = byte(s, at)
      if c == close then
        depth = depth - 1
        if depth == 0 then return at + 1 end
      elseif c == open then
        depth = depth + 1
      end
    end
    return nil
  end

  local function open_capture(si, pi, size)
    level = level + 1
    if level > 32 then error("too many captures", 0) end
    starts[level], sizes[level] = si, size
    local found = do_match(si, pi)
    if found == nil then level = level - 1 end
    return found
  end

  local function close_capture(si, pi)
    local which
    for l = level, 1, -1 do
      if sizes[l] == OPEN then which = l break end
    end
    if which == nil then error("invalid pattern capture", 0) end
    sizes[which] = si - starts[which]
    local found = do_match(si, pi)
    if found == nil then sizes[which] = OPEN end
    return found
  end

  local function back_reference(si, digit)
    local l = digit - 48
    if l < 1 or l > level or sizes[l] == OPEN then error("invalid capture index", 0) end
    local size = sizes[l]
    if size == POSITION then return nil end
    if sub(s, starts[l], starts[l] + size - 1) == sub(s, si, si + size - 1) and si + size - 1 <= length then return si + size end
    return nil
  end

  local function frontier(si, pi)
    if byte(p, pi) ~= 91 then error("missing '[' after '%f' in pattern", 0) end
    local after = class_end(p, pi)
    local before, here = byte(s, si - 1) or 0, byte(s, si) or 0
    if si == 1 then before = 0 end
    if not fits(before, p, pi, after) and fits(here, p, pi, after) then return after end
    return nil
  end

  function do_match(si, pi)
    while true do
      local c = byte(p, pi)
      if c == nil then return si end
      if c == 40 then -- (
        if byte(p, pi + 1) == 41 then return open_capture(si, pi + 2, POSITION) end
        return open_capture(si, pi + 1, OPEN)
      elseif c == 41 then -- )
        return close_capture(si, pi + 1)
      elseif c == 36 and pi == #p then -- $ at the end
        return si == length + 1 and si or nil
      end
      local special = c == 37 and byte(p, pi + 1)
      if special == 98 then -- %b
        si = balanced(si, pi + 2)
        if si == nil then return nil end
        pi = pi + 4
      elseif special == 102 then -- %f
        local after = frontier(si, pi + 2)
        if after == nil then return nil end
        pi = after
      elseif special and special >= 48 and special <= 57 then
        si = back_reference(si, special)
        if si == nil then return nil end
        pi = pi + 2
      else
        local after = class_end(p, pi)
        local q = byte(p, after)
        if q == 63 then -- ?
          if si <= length and fits(byte(s, si), p, pi, after) then
            local found = do_match(si + 1, after + 1)
            if found ~= nil then return found end
          end
          pi = after + 1
        elseif q == 42 or q == 43 then -- * +
          local most = si
          while most <= length and fits(byte(s, most), p, pi, after) do most = most + 1 end
          for at = most, si + (q == 43 and 1 or 0), -1 do
            local found = do_match(at, after + 1)
            if found ~= nil then return found end
          end
          return nil
        elseif q == 45 then -- -
          while true do
            local found = do_match(si, after + 1)
            if found ~= nil then return found end
            if si > length or not fits(byte(s, si), p, pi, after) then return nil end
            si = si + 1
          end
        else
          if si > length or not fits(byte(s, si), p, pi, after) then return nil end
          si = si + 1
          pi = after
        end
      end
    end
  end

  local function captured()
    local values = {}
    for l = 1, level do
      if sizes[l] == OPEN then error("unfinished capture", 0) end
      values[l] = sizes[l] == POSITION and starts[l] or sub(s, starts[l], starts[l] + sizes[l] - 1)
    end
    return unpack(values, 1, level)
  end

  if init < 0 then init = length + init + 1 end
  if init < 1 then init = 1 end
  if init > length + 1 then return nil end
  local anchored = byte(p, 1) == 94 and not whole
  for start = init, anchored and init or length + 1 do
    level = 0
    local after = do_match(start, anchored and 2 or 1)
    if after ~= nil then
      if with_place then return start, after - 1, captured() end
      if level == 0 then return sub(s, start, after - 1) end
      return captured()
    end
  end
  return nil
end

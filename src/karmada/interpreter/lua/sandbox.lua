-- The world of a script: which libraries there are, and what is kept from it.
--
-- Runs once in a fresh VM, with the whole standard library, and returns functions for the host. A script sees only
-- the tables made by `environment`, new ones for each run, so that no run can leave anything behind for the next.
-- The host's functions are never given to a script as they are: it gets Lua functions that hold them as upvalues.

local host, wall_left, match_slowly = ...

local type, next, rawget, rawset, select, tostring, tonumber = type, next, rawget, rawset, select, tostring, tonumber
local error, pcall, setmetatable, getmetatable, load = error, pcall, setmetatable, getmetatable, load
local clock, sethook, setupvalue, getinfo = os.clock, debug.sethook, debug.setupvalue, debug.getinfo
local concat, sort, unpack, insert, remove = table.concat, table.sort, table.unpack, table.insert, table.remove
local format, find, match, gmatch, byte, sub = string.format, string.find, string.match, string.gmatch, string.byte, string.sub
local gsub = string.gsub
local floor, huge = math.floor, math.huge
local real_collect = collectgarbage

local LONGEST = 1000000
local HOOK_EVERY = 1000

---------------------------------------------------------------------------------------------------------------------
-- Time. The hook looks at a cheap clock of used processor time, and at the real one only when that says it is late.

local alarm, expired, exhausted, depth = 0, false, false, 0
local DEEPEST = 100
local NO_MEMORY = "not enough memory"

local described, run

local function check_time()
  if not expired then
    if clock() < alarm then return end
    local left = wall_left()
    if left > 0 then
      alarm = clock() + left
      return
    end
    expired = true
  end
  local interrupted = getinfo(2, "f").func
  if interrupted == described or interrupted == run then return end -- the script has ended: nothing would catch it
  error("context deadline exceeded", 0)
end

-- Who catches errors does not catch the end of the time or of the memory.
local function caught(before, ok, first, ...)
  depth = before
  if expired then error("context deadline exceeded", 0) end
  if exhausted or (not ok and first == NO_MEMORY) then
    exhausted = true
    error(NO_MEMORY, 0)
  end
  return ok, first, ...
end

-- Deeper in C, where Lua allows some 200 calls, the hook could not run any more.
local function deeper()
  if depth >= DEEPEST then error("stack overflow", 3) end
  depth = depth + 1
end

local function protected(f, ...)
  deeper()
  return caught(depth - 1, pcall(f, ...))
end

---------------------------------------------------------------------------------------------------------------------
-- Order of fields.

local function record(t, key, value)
  if value ~= nil and type(key) ~= "number" then
    local order = getmetatable(t)
    order[#order + 1] = key
  end
  rawset(t, key, value)
end

-- Scripts can call this by its name, so nothing they pass may become a part of a metatable but names of fields.
local function ordered(t, names)
  if type(t) ~= "table" or getmetatable(t) ~= nil then return t end
  local order = {__newindex = record}
  if type(names) == "table" then
    for i = 1, #names do order[i] = names[i] end
  else
    for key in next, t do
      if type(key) ~= "number" then order[#order + 1] = key end
    end
  end
  return setmetatable(t, order)
end

local function by_type_and_text(a, b)
  local ta, tb = type(a), type(b)
  if ta ~= tb then return ta < tb end
  if ta == "string" or ta == "number" then return a < b end
  return tostring(a) < tostring(b)
end

-- All keys: those of the list, then those that were recorded in their order, then the others sorted.
local function keys_of(t)
  local keys, seen, n, length = {}, {}, 0, #t
  for i = 1, length do keys[i] = i end
  n = length
  local order = getmetatable(t)
  if order then
    for i = 1, #order do
      local key = order[i]
      if not seen[key] and rawget(t, key) ~= nil then
        seen[key] = true
        n = n + 1
        keys[n] = key
      end
    end
  end
  local rest = {}
  for key in next, t do
    if not seen[key] and not (type(key) == "number" and key >= 1 and key <= length and floor(key) == key) then
      rest[#rest + 1] = key
    end
  end
  sort(rest, by_type_and_text)
  for i = 1, #rest do keys[n + i] = rest[i] end
  return keys
end

local function wrong_argument(i, f, wanted, value)
  error(format("bad argument #%d to '%s' (%s expected, got %s)", i, f, wanted, value == nil and "no value" or type(value)), 3)
end

local function sandbox_pairs(t)
  if type(t) ~= "table" then wrong_argument(1, "pairs", "table", t) end
  local keys, i = keys_of(t), 0
  return function()
    while true do
      i = i + 1
      local key = keys[i]
      if key == nil then return nil end
      local value = t[key]
      if value ~= nil then return key, value end
    end
  end, t, nil
end

local last_table, last_keys, last_index

local function sandbox_next(t, key)
  if type(t) ~= "table" then wrong_argument(1, "next", "table", t) end
  if key == nil then
    if next(t) == nil then return nil end
    last_table, last_keys, last_index = t, keys_of(t), 0
  elseif last_table ~= t or last_keys[last_index] ~= key then
    last_table, last_keys, last_index = t, keys_of(t), 1
    while last_keys[last_index] ~= key do
      if last_keys[last_index] == nil then error("invalid key to 'next'", 2) end
      last_index = last_index + 1
    end
  end
  while true do
    last_index = last_index + 1
    local found = last_keys[last_index]
    if found == nil then return nil end
    local value = t[found]
    if value ~= nil then return found, value end
  end
end

---------------------------------------------------------------------------------------------------------------------
-- Values on their way out, as JSON text.

local ESCAPES = {['"'] = '\\"', ["\\"] = "\\\\"}
for i = 0, 31 do ESCAPES[string.char(i)] = format("\\u%04x", i) end

local function quote(text)
  return '"' .. gsub(text, '[%z\1-\31"\\]', ESCAPES) .. '"'
end

local encode

local function encode_table(t, out, seen)
  if seen[t] then error("cannot encode recursively nested tables to JSON", 0) end
  seen[t] = true
  local first = next(t)
  if first == nil then
    out[#out + 1] = "[]"
  elseif type(first) == "number" then
    local count, length = 0, #t
    for key in next, t do
      if type(key) ~= "number" then error("cannot encode mixed or invalid key types", 0) end
      count = count + 1
      if key < 1 or key > length or floor(key) ~= key then error("cannot encode sparse array", 0) end
    end
    if count ~= length then error("cannot encode sparse array", 0) end
    for i = 1, length do
      out[#out + 1] = i == 1 and "[" or ","
      encode(t[i], out, seen)
    end
    out[#out + 1] = "]"
  elseif type(first) == "string" then
    local separator = "{"
    for key, value in next, t do
      if type(key) ~= "string" then error("cannot encode mixed or invalid key types", 0) end
      out[#out + 1] = separator
      out[#out + 1] = quote(key)
      out[#out + 1] = ":"
      encode(value, out, seen)
      separator = ","
    end
    out[#out + 1] = "}"
  else
    error("cannot encode mixed or invalid key types", 0)
  end
end

function encode(value, out, seen)
  local kind = type(value)
  if kind == "table" then
    encode_table(value, out, seen)
  elseif kind == "string" then
    out[#out + 1] = quote(value)
  elseif kind == "number" then
    if value ~= value or value == huge or value == -huge then
      error("json: unsupported value: " .. (value ~= value and "NaN" or value > 0 and "+Inf" or "-Inf"), 0)
    end
    out[#out + 1] = format(value == floor(value) and value > -1e18 and value < 1e18 and "%.0f" or "%.17g", value)
  elseif kind == "boolean" or kind == "nil" then
    out[#out + 1] = value == nil and "null" or tostring(value)
  else
    error("cannot encode " .. kind .. " to JSON", 0)
  end
end

-- A list of n values, which may be nil. The same table may be in several of them.
local function encode_all(n, ...)
  local out = {"["}
  for i = 1, n do
    if i > 1 then out[#out + 1] = "," end
    encode((select(i, ...)), out, {})
  end
  out[#out + 1] = "]"
  return concat(out)
end

---------------------------------------------------------------------------------------------------------------------
-- Libraries.

-- A function of the host: its arguments travel as JSON, and it says whether it failed.
local function from_host(name)
  return function(...)
    check_time()
    local ok, value = host(name, encode_all(select("#", ...), ...))
    if ok then return value end
    if value ~= NO_MEMORY then error(value, 2) end
    exhausted = true
    error(NO_MEMORY, 0)
  end
end

local function refuse(text)
  return function() error(text, 2) end
end

local function limited(text)
  if type(text) == "string" and #text > 10000 then
    if #text > LONGEST then
      error(format(
        "string length %d exceeds the maximum allowed input string length %d in Karmada lua string lib, please check your lua script.",
        #text, LONGEST), 3)
    end
    check_time()
  end
end

local function string_function(f)
  return function(text, ...)
    limited(text)
    for i = 1, select("#", ...) do limited((select(i, ...))) end
    return f(text, ...)
  end
end

-- How often a pattern may have to try again: repetitions with something behind them, and optional items.
local function tries(pattern, anchored)
  local repeats, options, i, length = 0, 0, 1, #pattern
  local last = 0
  while i <= length do
    local c = byte(pattern, i)
    if c == 37 then -- %
      local after = byte(pattern, i + 1)
      if after == 98 then repeats = repeats + 1; i = i + 2 end -- %b
      i = i + 2
    elseif c == 91 then -- [
      i = i + 1
      if byte(pattern, i) == 94 then i = i + 1 end
      repeat
        if byte(pattern, i) == 37 then i = i + 1 end
        i = i + 1
      until i > length or byte(pattern, i) == 93
      i = i + 1
    else
      i = i + 1
    end
    local q = byte(pattern, i)
    if q == 42 or q == 43 or q == 45 then
      repeats = repeats + 1
      last = i
    elseif q == 63 then
      options = options + 1
    end
  end
  if last > 0 and not find(pattern, "[^)]", last + 1) then repeats = repeats - 1 end
  return repeats + (anchored and 0 or 1), options
end

local function is_cheap(text, pattern, anchored)
  local repeats, options = tries(pattern, anchored)
  local cost = (#text + 1) ^ repeats * 2 ^ options * (#pattern + 1)
  if cost > 1e4 then check_time() end
  return cost <= 2e7
end

-- The library compares in one go, which for long texts takes long; so it gets them in pieces.
local function find_plainly(text, pattern, init)
  local length = #pattern
  if init < 0 then init = #text + init + 1 end
  if init < 1 then init = 1 end
  if init > #text + 1 then return nil end
  if length == 0 then return init, init - 1 end
  local step = floor(1e7 / length) + 1
  for at = init, #text, step do
    local start, stop = find(sub(text, at, at + step + length - 2), pattern, 1, true)
    if start then return start + at - 1, stop + at - 1 end
    check_time()
  end
  return nil
end

local function searching(name, quick)
  return function(text, pattern, init, plain)
    limited(text)
    limited(pattern)
    if type(text) == "number" then text = tostring(text) end
    if type(pattern) == "number" then pattern = tostring(pattern) end
    if type(text) ~= "string" then wrong_argument(1, name, "string", text) end
    if type(pattern) ~= "string" then wrong_argument(2, name, "string", pattern) end
    if name == "find" and (plain or not find(pattern, "[%^%$%*%+%?%.%(%[%%%-]")) then
      return find_plainly(text, pattern, tonumber(init) or 1)
    end
    if is_cheap(text, pattern, byte(pattern, 1) == 94) then return quick(text, pattern, init) end
    return match_slowly(text, pattern, tonumber(init) or 1, name == "find")
  end
end

local function sandbox_gmatch(text, pattern)
  limited(text)
  limited(pattern)
  if type(text) == "number" then text = tostring(text) end
  if type(text) ~= "string" then wrong_argument(1, "gmatch", "string", text) end
  if type(pattern) ~= "string" then wrong_argument(2, "gmatch", "string", pattern) end
  if is_cheap(text, pattern, false) then return gmatch(text, pattern) end
  local place = 1
  local function advance(start, stop, ...)
    if start == nil then
      place = #text + 2
      return nil
    end
    place = stop >= start and stop + 1 or start + 1
    if select("#", ...) == 0 then return sub(text, start, stop) end
    return ...
  end
  return function()
    if place > #text + 1 then return nil end
    return advance(match_slowly(text, pattern, place, true, true))
  end
end

local STRING = {
  char = string.char, len = string.len, find = searching("find", find), match = searching("match", match),
  gmatch = sandbox_gmatch, gfind = sandbox_gmatch,
}
for _, name in ipairs{"byte", "format", "lower", "reverse", "sub", "upper"} do STRING[name] = string_function(string[name]) end
for _, name in ipairs{"dump", "gsub", "rep"} do
  STRING[name] = refuse("The Lua function string." .. name .. " is not supported by Karmada. Write it with the functions that are.")
end

local function moving(t)
  if type(t) == "table" and #t > 1000 then check_time() end
end

local TABLE = {getn = function(t) return #t end}

function TABLE.concat(t, ...)
  moving(t)
  return concat(t, ...)
end

function TABLE.sort(t, ...)
  moving(t)
  deeper()
  sort(t, ...)
  depth = depth - 1
end

function TABLE.maxn(t)
  local most = 0
  for key in next, t do
    if type(key) == "number" and key > most then most = key end
  end
  return most
end

function TABLE.insert(t, ...)
  moving(t)
  if select("#", ...) == 2 then
    local position, value = ...
    if type(t) == "table" and type(position) == "number" and position > #t + 1 then
      t[position] = value
      return
    end
  end
  return insert(t, ...)
end

function TABLE.remove(t, position)
  moving(t)
  if type(t) == "table" and type(position) == "number" and (position < 1 or position > #t) then return nil end
  if position == nil then return remove(t) end
  return remove(t, position)
end

local MATH = {mod = math.fmod}
for name, value in next, math do MATH[name] = value end
MATH.randomseed = function() end

local BASE = {
  assert = assert, error = error, ipairs = ipairs, next = sandbox_next, pairs = sandbox_pairs, select = select,
  tonumber = tonumber, tostring = tostring, type = type, unpack = unpack, _VERSION = "Lua 5.1",
  _printregs = function() end,
}
for _, name in ipairs{
  "collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring", "rawequal", "rawget",
  "rawset", "setfenv", "setmetatable", "module", "newproxy",
} do
  BASE[name] = refuse("call function " .. name .. " is not supported in karmada customized resourceinterpreter.")
end

function BASE.pcall(...)
  return protected(...)
end

local function handled(handler, ok, first, ...)
  if ok then return true, first, ... end
  return false, select(2, protected(handler, first))
end

-- The handler runs after the fall: a handler of Lua's own xpcall would run inside the hook, where no hook comes.
function BASE.xpcall(f, handler, ...)
  return handled(handler, protected(f, ...))
end

function BASE.print(...)
  local words = {}
  for i = 1, select("#", ...) do words[i] = tostring((select(i, ...))) end
  check_time()
  host("print", encode_all(1, concat(words, "\t")))
end

local OS = {time = from_host("time"), date = from_host("date")}
local KUBE = {}
for _, name in ipairs{"resourceAdd", "accuratePodRequirements", "getPodDependencies", "getResourceQuantity"} do
  KUBE[name] = from_host(name)
end

-- Methods of strings, which scripts cannot reach to change.
getmetatable("").__index = setmetatable({}, {__index = STRING, __newindex = refuse("strings cannot be changed")})

local function copy(t)
  local result = {}
  for key, value in next, t do result[key] = value end
  return result
end

local function environment()
  local G = copy(BASE)
  G._G, G.string, G.table, G.math, G.os = G, copy(STRING), copy(TABLE), copy(MATH), copy(OS)
  local loaded = {_G = G, string = G.string, table = G.table, math = G.math, os = G.os}
  local preload = {kube = function() return copy(KUBE) end}
  G.package = {
    loaded = loaded, preload = preload, path = "", cpath = "", loadlib = refuse("loadlib is not supported"), seeall = nil,
  }
  loaded.package = G.package
  function G.require(name)
    local module = loaded[name]
    if module ~= nil then return module end
    local make = preload[name]
    if type(make) ~= "function" then error(format("module %s not found", tostring(name)), 2) end
    module = make(name)
    if module == nil then module = true end
    loaded[name] = module
    return module
  end
  return G
end

---------------------------------------------------------------------------------------------------------------------
-- What the host calls.

local function compile(source)
  return load(source, "=<string>", "t")
end

local function call(chunk, name, results, ...)
  local G = environment()
  setupvalue(chunk, 1, G)
  chunk(ordered)
  local f = G[name]
  if f == nil then error("not found function " .. name, 0) end
  if type(f) ~= "function" then error(format("%s is not a function: %s", name, type(f)), 0) end
  local returned = {f(...)}
  local kinds = {}
  for i = 1, results do kinds[i] = type(returned[i]) end
  return concat(kinds, ","), encode_all(results, unpack(returned, 1, results))
end

function described(ok, first, ...)
  sethook()
  if ok then return true, first, ... end
  if type(first) == "string" then return false, (gsub(first, '^%[string "<python>"%]:%d+: ', "")), expired end
  if type(first) == "number" then return false, tostring(first), expired end
  return false, format("error object is a %s value", type(first)), expired
end

-- The kinds of the results and the results as JSON, or false, the error, and whether the time was over.
function run(...)
  expired, exhausted, alarm, depth = false, false, 0, 0
  last_table, last_keys, last_index = nil, nil, nil
  sethook(check_time, "", HOOK_EVERY)
  return described(pcall(call, ...))
end

return compile, run, function() real_collect("collect") end

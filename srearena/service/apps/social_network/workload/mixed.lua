-- Social Network: people mostly read, and one request in ten is a new post.
-- route: GET /wrk2-api/home-timeline/read weight=60 name=read-home-timeline
-- route: GET /wrk2-api/user-timeline/read weight=30 name=read-user-timeline
-- route: POST /wrk2-api/post/compose weight=10 name=compose-post

local random = math.random
local last_user = tonumber(os.getenv("max_user_index") or "962") - 1
local letters = "qwertyuiopasdfghjklzxcvbnmQWERTYUIOPASDFGHJKLZXCVBNM1234567890"

local function text(length)
  local drawn = {}
  for i = 1, length do
    local at = random(#letters)
    drawn[i] = letters:sub(at, at)
  end
  return table.concat(drawn)
end

local function digits(length)
  local drawn = {}
  for i = 1, length do
    drawn[i] = tostring(random(0, 9))
  end
  return table.concat(drawn)
end

local function read(timeline)
  local start = random(0, 100)
  return wrk.format("GET", "/wrk2-api/" .. timeline .. "/read?user_id=" .. random(0, last_user)
    .. "&start=" .. start .. "&stop=" .. start + 10)
end

local function compose()
  local user = random(0, last_user)
  local words = {text(256)}
  for _ = 1, random(1, 6) do
    words[#words + 1] = "@username_" .. random(0, last_user)
  end
  for _ = 1, random(1, 6) do
    words[#words + 1] = "http://" .. text(64)
  end
  local ids, types = {}, {}
  for i = 1, random(1, 5) do
    ids[i] = '"' .. digits(18) .. '"'
    types[i] = '"png"'
  end
  local body = "username=username_" .. user .. "&user_id=" .. user .. "&text=" .. table.concat(words, " ")
    .. "&media_ids=[" .. table.concat(ids, ",") .. "]&media_types=[" .. table.concat(types, ",") .. "]&post_type=0"
  return wrk.format("POST", "/wrk2-api/post/compose", {["Content-Type"] = "application/x-www-form-urlencoded"}, body)
end

function init(arguments)
  math.randomseed(os.time())
end

function request()
  local roll = random() * 100
  if roll < 60 then
    return read("home-timeline")
  elseif roll < 90 then
    return read("user-timeline")
  end
  return compose()
end

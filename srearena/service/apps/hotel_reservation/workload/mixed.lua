-- Hotel Reservation: mostly searches and recommendations, now and then a login or a booking.
-- route: GET /hotels weight=60 name=search
-- route: GET /recommendations weight=39 name=recommend
-- route: POST /user weight=0.5 name=login
-- route: POST /reservation weight=0.5 name=reserve

local random = math.random

local function date(day)
  return string.format("2015-04-%02d", day)
end

-- Some nights in April: when one comes and when one goes.
local function stay()
  local first = random(9, 23)
  return date(first), date(random(first + 1, 24))
end

local function place()
  local lat = 38.0235 + (random(0, 481) - 240.5) / 1000.0
  local lon = -122.095 + (random(0, 325) - 157.0) / 1000.0
  return string.format("lat=%.4f&lon=%.4f", lat, lon)
end

-- A user's password is the number in the name, ten times.
local function account()
  local id = tostring(random(0, 500))
  return "Cornell_" .. id, string.rep(id, 10)
end

local function search()
  local first, last = stay()
  return wrk.format("GET", "/hotels?inDate=" .. first .. "&outDate=" .. last .. "&" .. place())
end

local function recommend()
  local by = ({"dis", "rate", "price"})[random(3)]
  return wrk.format("GET", "/recommendations?require=" .. by .. "&" .. place())
end

local function login()
  local name, password = account()
  return wrk.format("POST", "/user?username=" .. name .. "&password=" .. password)
end

local function reserve()
  local first = random(9, 23)
  local last = math.min(24, first + random(1, 5))
  local name, password = account()
  return wrk.format("POST", "/reservation?inDate=" .. date(first) .. "&outDate=" .. date(last) .. "&" .. place()
    .. "&hotelId=" .. random(1, 80) .. "&customerName=" .. name .. "&username=" .. name
    .. "&password=" .. password .. "&number=1")
end

function init(arguments)
  math.randomseed(os.time())
end

function request()
  local roll = random() * 100
  if roll < 60 then
    return search()
  elseif roll < 99 then
    return recommend()
  elseif roll < 99.5 then
    return login()
  end
  return reserve()
end

-- For wrk: replays the requests of a file in turn, and prints what became of them as one line of JSON.
-- The file has, for each request, its length in bytes, a line end, and the request. Usage: wrk ... -s replay.lua URL -- FILE

local requests = {}
local last = 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  while true do
    local length = file:read("*l")
    if not length then break end
    requests[#requests + 1] = file:read(tonumber(length))
  end
  file:close()
end

function request()
  last = last % #requests + 1
  return requests[last]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '\n{"answered": %d, "microseconds": %d, "refused": %d, "broken": %d, "p50": %f, "p99": %f, "p99.9": %f}\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9)
  ))
end

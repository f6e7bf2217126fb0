/**
 * Lua: `mint(key, floor)` raises the number at a key and answers it as a string, or nil when there is none left. It is above
 * the number that was there, above `floor`, and above Redis' clock in microseconds: a Redis that lost its data goes on above
 * all earlier numbers, unless its clock was set back too. Lua's numbers are doubles, exact up to 2^53.
 */
export const MINT = `
local function mint(key, floor)
  local time = redis.call('TIME')
  local last = tonumber(redis.call('GET', key) or '0')
  local new = math.max(last, tonumber(floor), time[1] * 1000000 + time[2]) + 1
  if new > 9007199254740991 then return nil end
  local text = string.format('%.0f', new)
  redis.call('SET', key, text)
  return text
end
`;

/**
 * Lua: `less(a, b)` compares two numbers that are written in decimal, of any size.
 */
export const LESS = `
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
`;

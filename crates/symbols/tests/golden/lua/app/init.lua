local json = require("cjson")
local retry = require "app.retry"

local M = { VERSION = "1.0" }
local LIMIT <const> = 10

--- A module function.
function M.setup(path, ...)
  return retry.run(path, 3)
end

M.load = function(path, strict)
  return json.decode(path)
end

local Order = {}
Order.__index = Order

function Order.new(id)
  return setmetatable({ id = id }, Order)
end

function Order:ship(warehouse)
  local function inner() end
  inner()
  warehouse:reserve(self)
end

function M.deep.er.path(a) end

local function helper(a, b) return a + b end

local compute = function(x) return helper(x, 1) end

function global_function() end

M.handlers = {
  on_open = function(event) return event end,
  ["on close"] = function() end,
}

return M

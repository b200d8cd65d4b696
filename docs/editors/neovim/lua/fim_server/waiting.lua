--- A pause and the request after it, of which a new one replaces the one before.

---@class fim_server.Waiting
---@field request? { client: vim.lsp.Client, id: integer?, [string]: any } the running request
---@field private timer? uv.uv_timer_t
local Waiting = {}
Waiting.__index = Waiting

local M = {}

---@return fim_server.Waiting
function M.new()
  return setmetatable({}, Waiting)
end

--- Return true during a pause.
function Waiting:is_paused()
  return self.timer ~= nil
end

--- Act after a pause.
---@param milliseconds integer
---@param act fun()
function Waiting:pause(milliseconds, act)
  self:resume()
  self.timer = vim.defer_fn(function()
    self.timer = nil
    act()
  end, milliseconds)
end

--- End the pause without acting.
function Waiting:resume()
  if self.timer then
    self.timer:stop()
    self.timer:close()
    self.timer = nil
  end
end

--- End the pause, and cancel the request.
function Waiting:cancel()
  self:resume()
  local request = self.request
  self.request = nil
  if request and request.id then
    request.client:cancel_request(request.id)
  end
end

return M

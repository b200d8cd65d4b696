--- Turn suggestions on and off, for a language too, or snooze them. The server learns this by its settings, so that it
--- holds for the completion menu as well.

local lsp = vim.lsp
local waiting = require('fim_server.waiting')

local M = {}

local MINUTE_MS = 60000
local MOST_MINUTES = 1440 -- a day; use FimDisable for longer

local name, given = '', {}
local enabled = true
--- Changed modes by file type: 'automatic' or 'off'.
---@type table<string, string>
local languages = {}
local snooze = waiting.new()
local wakes_at = 0
--- Called after each change.
local changed = function() end

--- The server's settings: those of `setup`, overridden by changed modes.
function M.settings()
  local all = vim.deepcopy(given)
  all.enabled = enabled and not snooze:is_paused() and given.enabled ~= false
  all.languages = vim.tbl_extend('force', all.languages or {}, languages)
  return all
end

local function tell()
  local settings = M.settings()
  local section = { ['fim-server'] = settings }
  lsp.config(name, { init_options = settings, settings = section }) -- for a server started later
  for _, client in ipairs(lsp.get_clients({ name = name })) do
    client.settings = section
    client:notify('workspace/didChangeConfiguration', { settings = section })
  end
  changed()
end

---@param client_name string
---@param settings table the server's settings of `setup`
---@param on_change fun()
function M.setup(client_name, settings, on_change)
  name, given, changed = client_name, settings, on_change
end

--- Return true if suggestions are off in a file type.
function M.silent(filetype)
  return not enabled or snooze:is_paused() or languages[filetype] == 'off'
end

--- Return true if a file type gets suggestions on request only, because the status' model does not know it.
---@param model? { languages?: string[] } without `languages`: trained on all, or unknown
function M.held_back(filetype, model)
  local settings = M.settings()
  local is_learnt = not (model and model.languages) or vim.tbl_contains(model.languages, filetype)
  return not is_learnt and settings.trigger ~= 'manual' and not settings.languages[filetype]
end

--- Return the minutes until the snooze ends, rounded up; nil without one.
function M.minutes_left()
  return snooze:is_paused() and math.max(1, math.ceil((wakes_at - vim.uv.now()) / MINUTE_MS)) or nil
end

--- Turn all suggestions, or those of a file type, on or off. On also ends a snooze.
---@param on boolean
---@param filetype? string
function M.switch(on, filetype)
  if on then
    snooze:resume()
  end
  if filetype then
    languages[filetype] = on and 'automatic' or 'off'
  end
  if on or not filetype then
    enabled = on
  end
  tell()
  vim.notify(('fim-server: %s%s'):format(on and 'on' or 'off', filetype and ' in ' .. filetype or ''))
end

--- Turn all suggestions off or on.
function M.toggle()
  M.switch(not enabled or snooze:is_paused())
end

--- Snooze suggestions for some minutes.
---@param minutes? number ten by default
function M.snooze(minutes)
  minutes = minutes or 10
  if minutes <= 0 or minutes > MOST_MINUTES then
    return vim.notify('fim-server: enter a number of minutes, a day at most', vim.log.levels.WARN)
  end
  vim.uv.update_time()
  wakes_at = vim.uv.now() + minutes * MINUTE_MS
  snooze:pause(math.floor(minutes * MINUTE_MS), tell)
  tell()
  vim.notify(('fim-server: snoozed for %g minutes'):format(minutes))
end

return M

--- On and off: everything, a language, or everything for some minutes. The server is told by its settings, so that this
--- holds for the completion menu as well, and its model rests.

local lsp = vim.lsp

local M = {}

local MINUTE_MS = 60000
local MOST_MINUTES = 1440 -- a day: for longer there is FimDisable

local name, given = '', {}
local enabled = true
--- What was switched, by file type: 'automatic' or 'off'.
---@type table<string, string>
local languages = {}
---@type uv.uv_timer_t?
local timer
local wakes_at = 0
--- Called after each change.
local changed = function() end

--- The server's settings: those that `setup` was given, and above them what was switched.
function M.settings()
  local all = vim.deepcopy(given)
  all.enabled = enabled and not timer and given.enabled ~= false
  all.languages = vim.tbl_extend('force', all.languages or {}, languages)
  return all
end

local function tell()
  local settings = M.settings()
  local section = { ['fim-server'] = settings }
  lsp.config(name, { init_options = settings, settings = section }) -- for one that is started later
  for _, client in ipairs(lsp.get_clients({ name = name })) do
    client.settings = section
    client:notify('workspace/didChangeConfiguration', { settings = section })
  end
  changed()
end

---@param client_name string
---@param settings table what `setup` was given for the server
---@param on_change fun()
function M.setup(client_name, settings, on_change)
  name, given, changed = client_name, settings, on_change
end

--- Whether nothing is to be offered in buffers of a file type.
function M.silent(filetype)
  return not enabled or timer ~= nil or languages[filetype] == 'off'
end

--- Whether a file type is completed only when asked, because the model, of the status, has not learnt its language.
---@param model? { languages?: string[] } without `languages` it has learnt all, or does not say
function M.held_back(filetype, model)
  local settings = M.settings()
  local is_learnt = not (model and model.languages) or vim.tbl_contains(model.languages, filetype)
  return not is_learnt and settings.trigger ~= 'manual' and not settings.languages[filetype]
end

--- Minutes until the snooze is over, rounded up; nil: there is none.
function M.minutes_left()
  return timer and math.max(1, math.ceil((wakes_at - vim.uv.now()) / MINUTE_MS)) or nil
end

local function stop_timer()
  if timer then
    timer:stop()
    timer:close()
    timer = nil
  end
end

--- Switch everything, or with a file type that language, on or off. On also ends a snooze.
---@param on boolean
---@param filetype? string
function M.switch(on, filetype)
  if on then
    stop_timer()
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

--- Switch everything off, or on again.
function M.toggle()
  M.switch(not enabled or timer ~= nil)
end

--- Offer nothing for some minutes.
---@param minutes? number ten where it is left out
function M.snooze(minutes)
  minutes = minutes or 10
  if minutes <= 0 or minutes > MOST_MINUTES then
    return vim.notify('fim-server: a number of minutes is wanted, a day at most', vim.log.levels.WARN)
  end
  stop_timer()
  vim.uv.update_time()
  wakes_at = vim.uv.now() + minutes * MINUTE_MS
  timer = vim.defer_fn(function()
    timer = nil
    tell()
  end, math.floor(minutes * MINUTE_MS))
  tell()
  vim.notify(('fim-server: off for %g minutes'):format(minutes))
end

return M

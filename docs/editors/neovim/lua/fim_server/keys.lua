--- Mappings of keys that fall back to the earlier ones.

local api, fn = vim.api, vim.fn

local M = {}
local PREFIX = 'fim-server: '

--- Run a key's earlier mapping.
local function fall_back(map, key)
  local keys = map.rhs or key
  if map.callback then
    keys = map.callback()
  elseif map.expr == 1 then
    keys = api.nvim_eval(map.rhs)
  end
  if type(keys) == 'string' and (map.expr == 1 or not map.callback) then
    api.nvim_feedkeys(api.nvim_replace_termcodes(keys, true, true, true), 'in', false)
  end
end

--- Map a key of a buffer to an action; return its earlier mapping.
---@param act fun(): boolean false: there was nothing to do, so the earlier mapping runs
---@return table before as of `maparg()`
local function map(buf, mode, key, name, act)
  return api.nvim_buf_call(buf, function()
    local before = fn.maparg(key, mode, false, true)
    vim.keymap.set(mode, key, function()
      if not act() then
        fall_back(before, key)
      end
    end, { buffer = buf, desc = PREFIX .. name })
    return before
  end)
end

--- Map a key for as long as the buffer lives, unless it runs an action of this plug-in.
function M.map(buf, mode, key, name, act)
  local before = api.nvim_buf_call(buf, function()
    return fn.maparg(key, mode, false, true)
  end)
  if not (before.buffer == 1 and vim.startswith(before.desc or '', PREFIX)) then
    map(buf, mode, key, name, act)
  end
end

--- Map a key until the returned function is called, which brings the earlier mapping back.
---@return fun() restore
function M.borrow(buf, mode, key, name, act)
  local before = map(buf, mode, key, name, act)
  return function()
    if not api.nvim_buf_is_loaded(buf) then
      return
    end
    api.nvim_buf_call(buf, function()
      if fn.maparg(key, mode, false, true).desc ~= PREFIX .. name then
        return -- mapped anew meanwhile
      end
      vim.keymap.del(mode, key, { buffer = buf })
      if before.buffer == 1 then
        fn.mapset(before)
      end
    end)
  end
end

return M

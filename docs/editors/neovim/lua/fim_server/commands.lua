--- The commands, which begin with `Fim`.

local command = vim.api.nvim_create_user_command

local M = {}

---@param plugin table the functions of `require('fim_server')`
function M.define(plugin)
  command('FimExplain', function(call)
    plugin.explain(call.args ~= '' and call.args or nil)
  end, { nargs = '?', desc = 'What fits at the cursor, and why' })
  -- With a bang: the language of the buffer alone.
  command('FimEnable', function(call)
    plugin.switch(true, call.bang and vim.bo.filetype or nil)
  end, { bang = true, desc = 'Switch completions on' })
  command('FimDisable', function(call)
    plugin.switch(false, call.bang and vim.bo.filetype or nil)
  end, { bang = true, desc = 'Switch completions off' })
  command('FimSnooze', function(call)
    plugin.snooze(call.args ~= '' and (tonumber(call.args) or 0) or nil)
  end, { nargs = '?', desc = 'Switch completions off for some minutes' })
  command('FimToggle', plugin.toggle, { desc = 'Switch completions off or on' })
  command('FimStatistics', plugin.statistics, { desc = 'What the server has done since it started' })
  command('FimRestart', plugin.restart, { desc = 'Start fim-server anew' })
end

return M

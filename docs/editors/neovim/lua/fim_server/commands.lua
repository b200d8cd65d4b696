--- The `:Fim…` commands.

local command = vim.api.nvim_create_user_command

local M = {}

---@param plugin table the functions of `require('fim_server')`
function M.define(plugin)
  command('FimExplain', function(call)
    plugin.explain(call.args ~= '' and call.args or nil)
  end, { nargs = '?', desc = 'Explain the cursor' })
  -- With a bang, only the buffer's language.
  command('FimEnable', function(call)
    plugin.switch(true, call.bang and vim.bo.filetype or nil)
  end, { bang = true, desc = 'Turn suggestions on' })
  command('FimDisable', function(call)
    plugin.switch(false, call.bang and vim.bo.filetype or nil)
  end, { bang = true, desc = 'Turn suggestions off' })
  command('FimSnooze', function(call)
    plugin.snooze(call.args ~= '' and (tonumber(call.args) or 0) or nil)
  end, { nargs = '?', desc = 'Snooze suggestions for some minutes' })
  command('FimToggle', plugin.toggle, { desc = 'Turn suggestions off or on' })
  command('FimStatistics', plugin.statistics, { desc = 'Show statistics of the server' })
  command('FimRestart', plugin.restart, { desc = 'Restart fim-server' })
end

return M

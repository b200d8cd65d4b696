--- What `setup` may be given, and what holds where it is not.

local M = {}

---@class fim_server.Options
M.OPTIONS = {
  --- The server and its arguments.
  cmd = { 'fim-server', 'serve' },
  filetypes = { 'python', 'go', 'java', 'rust', 'json' },
  --- The server's own settings, see docs/protocol.md: `{ deadlineMs = 800, languages = { json = 'off' } }`.
  settings = {},
  --- 'ghost': the ghost text of this plug-in. 'builtin': Neovim 0.12's vim.lsp.inline_completion.
  --- 'menu': no ghost text, the items are in the built-in completion menu.
  display = 'ghost',
  --- Pause after a keystroke before the server is asked. The server has a pause of its own beside this one.
  debounce_ms = 30,
  --- true: KEYS below; a table: only the keys it names; false: none.
  keymaps = false,
}

M.KEYS = {
  accept = '<Tab>',
  accept_word = '<M-w>',
  accept_line = '<M-l>',
  next = '<M-n>',
  previous = '<M-p>',
  dismiss = '<M-e>',
}

return M

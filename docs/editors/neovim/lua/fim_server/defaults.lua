--- Options of `setup` and their defaults.

local M = {}

---@class fim_server.Options
M.OPTIONS = {
  --- The server and its arguments.
  cmd = { 'fim-server', 'serve' },
  filetypes = {
    'python',
    'go',
    'java',
    'rust',
    'javascript',
    'javascriptreact',
    'typescript',
    'typescriptreact',
    'json',
    'html',
    'vue',
    'svelte',
    'astro',
    'c',
    'cpp',
    'cs',
    'kotlin',
    'swift',
    'dart',
    'scala',
    'zig',
    'lua',
    'r',
    'css',
    'scss',
    'toml',
    'sql',
    'xml',
    'terraform',
    'hcl',
    'dockerfile',
    'php',
    'less',
    'sh',
    'bash',
    'markdown',
    'yaml',
    'ruby',
  },
  --- The server's settings (docs/protocol.md): `{ deadlineMs = 800, languages = { json = 'off' } }`.
  settings = {},
  --- 'ghost': the ghost text of this plug-in. 'builtin': Neovim 0.12's vim.lsp.inline_completion.
  --- 'menu': the built-in completion menu instead of ghost text.
  display = 'ghost',
  --- Pause between a keystroke and the request, besides the server's own.
  debounce_ms = 30,
  --- Show next edits.
  next_edits = true,
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
  --- While an edit is shown; <Esc> in normal mode only.
  next_edit = '<Tab>',
  dismiss_edit = '<Esc>',
}

return M

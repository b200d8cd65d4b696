--- Report the position of a resting cursor, so that the server prefills there before the first key.

local api = vim.api

local M = {}
local CURSOR = 'fim-server/cursor'
local REST_MS = 300 -- as in VS Code's extension

---@param client vim.lsp.Client
---@param buf integer
---@param name string
function M.watch(client, buf, name)
  local group = api.nvim_create_augroup(('%s_resting_%d'):format(name, buf), {})
  local moves = 0
  local function tell()
    if client:is_stopped() or api.nvim_get_current_buf() ~= buf then
      return
    end
    local row, col = unpack(api.nvim_win_get_cursor(0))
    local line = api.nvim_buf_get_lines(buf, row - 1, row, false)[1] or ''
    client:notify(CURSOR, {
      textDocument = vim.lsp.util.make_text_document_params(buf),
      position = { line = row - 1, character = vim.str_utfindex(line, client.offset_encoding, col, false) },
    })
  end
  local function moved()
    moves = moves + 1
    local before = moves
    vim.defer_fn(function()
      if moves == before and api.nvim_buf_is_valid(buf) then
        tell()
      end
    end, REST_MS)
  end
  api.nvim_create_autocmd({ 'CursorMoved', 'CursorMovedI', 'BufEnter' }, { group = group, buffer = buf, callback = moved })
  api.nvim_create_autocmd('LspDetach', {
    group = group,
    buffer = buf,
    callback = function(event)
      if event.data.client_id == client.id then
        api.nvim_del_augroup_by_id(group)
      end
    end,
  })
  moved()
end

return M

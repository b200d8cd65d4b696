--- Texts and values of buffers and the protocol.

local M = {}

--- Return a protocol value without nulls, which Neovim 0.12 keeps.
function M.without_nulls(value)
  if value == vim.NIL then
    return nil
  end
  return type(value) == 'table' and vim.tbl_map(M.without_nulls, value) or value
end

--- Return a text from a screen column on with its tabs expanded, for virtual text.
function M.expanded(text, from)
  local width = vim.bo.tabstop
  while true do
    local tab = text:find('\t', 1, true)
    if not tab then
      return text
    end
    local left = text:sub(1, tab - 1)
    local column = from + vim.fn.strdisplaywidth(left, from)
    text = left .. (' '):rep(width - column % width) .. text:sub(tab + 1)
  end
end

--- Return the part of a text to accept: all of it, the next word, or the rest of the line.
function M.piece_of(rest, part)
  local pattern = ({
    word = [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]],
    line = [[^\n*[^\n]*]],
  })[part]
  local piece = pattern and vim.fn.matchstr(rest, pattern) or rest
  return piece ~= '' and piece or rest
end

--- Insert lines at the cursor, and move the cursor behind them.
function M.put(buf, row, col, end_row, end_col, text)
  local lines = vim.split(text, '\n', { plain = true })
  vim.bo[buf].undolevels = vim.bo[buf].undolevels -- a separate undo step
  vim.api.nvim_buf_set_text(buf, row, col, end_row, end_col, lines)
  local last = #lines == 1 and col + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, last })
end

return M

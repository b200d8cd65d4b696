--- Texts and values, as the buffer and the protocol have them.

local M = {}

--- A value of the protocol without its nulls, which Neovim 0.12 keeps.
function M.without_nulls(value)
  if value == vim.NIL then
    return nil
  end
  return type(value) == 'table' and vim.tbl_map(M.without_nulls, value) or value
end

--- A text as it looks from a screen column on, without tabs, which virtual text does not have.
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

--- How much of a text is accepted at once: all of it, the next word, or up to the end of the line.
function M.piece_of(rest, part)
  local pattern = ({
    word = [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]],
    line = [[^\n*[^\n]*]],
  })[part]
  local piece = pattern and vim.fn.matchstr(rest, pattern) or rest
  return piece ~= '' and piece or rest
end

return M

--- Pages below the window: explanations and statistics.

local api = vim.api

local M = {}

--- Open a scratch window, which q closes.
function M.show(title, lines)
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].bufhidden, vim.bo[buf].syntax, vim.bo[buf].modifiable = 'wipe', 'markdown', false
  api.nvim_open_win(buf, true, { split = 'below', height = math.min(#lines + 1, math.floor(vim.o.lines / 2)) })
  vim.wo.winfixheight, vim.wo.statusline = true, title
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf })
end

--- Return a text as code on one line.
local function code(text)
  return '`' .. tostring(text):gsub('\n', '\\n') .. '`'
end

local function section(lines, title, entries)
  if #entries > 0 then
    vim.list_extend(lines, { '', '## ' .. title, '' })
    vim.list_extend(lines, entries)
  end
end

--- Return an explanation (docs/protocol.md) as a page.
function M.explanation(explanation)
  local lines = { ('%s, guarantee %s'):format(explanation.language or '?', explanation.guarantee or '?') }
  if explanation.inside then
    lines[#lines + 1] = 'inside a ' .. explanation.inside
  end
  if explanation.shortest then
    lines[#lines + 1] = 'shortest text that connects both sides: ' .. code(explanation.shortest)
  end
  local verdict = explanation.verdict
  if verdict then
    lines[#lines + 1] = verdict.complete and 'the text fits'
      or verdict.viable and 'the text fits, but the file needs more'
      or ('the text is refused at byte %s'):format(verdict.rejectedAt)
  end
  local entries = {}
  for _, diagnostic in ipairs(explanation.diagnostics or {}) do
    entries[#entries + 1] = '- ' .. (type(diagnostic) == 'table' and diagnostic.message or tostring(diagnostic))
  end
  section(lines, 'Broken lines', entries)
  entries = {}
  for _, gap in ipairs(explanation.ignored or {}) do
    entries[#entries + 1] = ('- %d from line %d on'):format(gap.count, gap.line + 1)
  end
  section(lines, 'Lines left out', entries)
  entries = {}
  for _, name in ipairs(explanation.expected or {}) do
    entries[#entries + 1] = code(name)
  end
  local may_come = { #entries > 0 and table.concat(entries, ' ') or nil }
  if explanation.likely and #entries > 0 then
    table.insert(may_come, 1, 'most likely ' .. code(explanation.likely) .. '; all of it:')
  end
  section(lines, 'Allowed next', may_come)
  entries = {}
  for _, open in ipairs(explanation.openLeft or {}) do
    entries[#entries + 1] = ('- %s, line %d: %s'):format(open.name, open.line + 1, code(open.text))
  end
  section(lines, 'Open on the left, innermost first', entries)
  entries = {}
  for _, open in ipairs(explanation.openRight or {}) do
    entries[#entries + 1] = ('- %s, line %d'):format(code(open.text), open.line + 1)
  end
  section(lines, 'Closed on the right', entries)
  entries = {}
  for _, candidate in ipairs(explanation.candidates or {}) do
    local reason = candidate.reason and candidate.reason:gsub('\n', ' ') or ''
    local refused = candidate.allowed and '' or ' refused: ' .. reason
    entries[#entries + 1] = ('- %3.0f %% %s%s'):format(candidate.probability * 100, code(candidate.text), refused)
  end
  section(lines, 'Next tokens of the model', entries)
  section(lines, 'Grammar of all texts that fit', vim.split(explanation.grammar or '', '\n', { trimempty = true }))
  return lines
end

local function flattened(table_, prefix, lines)
  for _, key in ipairs(vim.fn.sort(vim.tbl_keys(table_))) do
    local value = table_[key]
    if type(value) == 'table' then
      flattened(value, prefix .. key .. '.', lines)
    else
      lines[#lines + 1] = ('%-24s %s'):format(prefix .. key, tostring(value))
    end
  end
  return lines
end

--- Return statistics (docs/protocol.md) as a page.
function M.statistics(statistics)
  return flattened(statistics, '', {})
end

return M

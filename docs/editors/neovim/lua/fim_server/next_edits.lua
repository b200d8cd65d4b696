--- Next edits: request the edit that may follow the latest one, show it, jump to it, accept or dismiss it.

local api, fn, lsp = vim.api, vim.fn, vim.lsp
local keys = require('fim_server.keys')
local switches = require('fim_server.switches')
local texts = require('fim_server.texts')
local waiting = require('fim_server.waiting').new() -- its request also has `buf` and `tick`

local M = {}
local NEXT_EDIT = 'textDocument/copilotInlineEdit'
local DISMISSED = 'fim-server.editDismissed'
local METHOD_NOT_FOUND = -32601
local PAUSE_MS = 200

local namespace = api.nvim_create_namespace('fim_server_next_edit')
local hint_namespace = api.nvim_create_namespace('fim_server_next_edit_hint')

--- Columns are bytes from 0.
---@class fim_server.NextEdit
---@field buf integer the buffer that it changes
---@field home integer the buffer in which it is offered
---@field client vim.lsp.Client
---@field tick integer the changed buffer's state that the edit belongs to
---@field home_tick integer
---@field row integer
---@field col integer
---@field end_row integer
---@field end_col integer
---@field change lsp.TextEdit
---@field command? lsp.Command
---@field restore (fun())[] gives the keys back

---@class fim_server.NextEditRules
---@field busy fun(): boolean ghost text is visible
---@field appears fun() called before an edit is shown
---@field accept? string key that jumps to an edit or accepts it
---@field dismiss? string key that dismisses an edit in normal mode

---@type fim_server.NextEditRules
local rules
---@type fim_server.NextEdit?
local shown
--- True while a jump enters another buffer.
local is_entering = false
--- The buffer state that needs no further request: it has been answered, or its edit was dismissed.
---@type string?
local settled

local function group_of(buf)
  return ('fim_server_next_edit_%d'):format(buf)
end

local function state_of(buf)
  return ('%d:%d'):format(buf, api.nvim_buf_get_changedtick(buf))
end

--- Return true if the edit's buffers are as they were.
---@param edit fim_server.NextEdit
local function is_fresh(edit)
  local function tick_of(buf)
    return api.nvim_buf_is_loaded(buf) and api.nvim_buf_get_changedtick(buf)
  end
  return tick_of(edit.buf) == edit.tick and tick_of(edit.home) == edit.home_tick
end

--- Return the edit that is offered in the current buffer.
local function current()
  local fits = shown and shown.home == api.nvim_get_current_buf() and is_fresh(shown)
  return fits and shown or nil
end

-- --- display ----------------------------------------------------------------------------------------------

local function line_at(buf, row)
  return api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
end

---@param edit fim_server.NextEdit
local function draw(edit)
  local buf, text = edit.buf, edit.change.newText
  local mark = { end_row = edit.end_row, end_col = edit.end_col, hl_group = 'FimEditRemoved' }
  api.nvim_buf_set_extmark(buf, namespace, edit.row, edit.col, mark)
  local before = line_at(buf, edit.row):sub(1, edit.col)
  if not text:find('\n', 1, true) then
    if text ~= '' then
      local added = { { texts.expanded(text, fn.strdisplaywidth(before)), 'FimEditAdded' } }
      mark = { virt_text = added, virt_text_pos = 'inline' }
      api.nvim_buf_set_extmark(buf, namespace, edit.end_row, edit.end_col, mark)
    end
    return
  end
  -- Below, draw the lines as they would become.
  local whole = before .. text .. line_at(buf, edit.end_row):sub(edit.end_col + 1)
  local lines = vim.tbl_map(function(line)
    return { { texts.expanded(line, 0), 'FimEditAdded' } }
  end, vim.split(whole, '\n', { plain = true }))
  api.nvim_buf_set_extmark(buf, namespace, edit.end_row, 0, { virt_lines = lines })
end

--- Name the edit's line, with its file, at the cursor's line while the window does not show it.
local function draw_hint()
  local edit = current()
  if not edit then
    return
  end
  api.nvim_buf_clear_namespace(edit.home, hint_namespace, 0, -1)
  local line = edit.row + 1
  local is_elsewhere = edit.buf ~= edit.home
  if is_elsewhere or line < fn.line('w0') or line > fn.line('w$') then
    local file = is_elsewhere and vim.fs.basename(api.nvim_buf_get_name(edit.buf)) .. ', ' or ''
    local mark = { virt_text = { { ('→ %sline %d'):format(file, line), 'FimHint' } }, virt_text_pos = 'eol' }
    api.nvim_buf_set_extmark(edit.home, hint_namespace, fn.line('.') - 1, 0, mark)
  end
end

--- Give back the keys of the buffer in which the edit is offered, and take its hint away.
---@param edit fim_server.NextEdit
local function leave(edit)
  for _, restore in ipairs(edit.restore) do
    restore()
  end
  edit.restore = {}
  if api.nvim_buf_is_loaded(edit.home) then
    api.nvim_buf_clear_namespace(edit.home, hint_namespace, 0, -1)
  end
end

local function erase()
  local edit = shown
  shown = nil
  if not edit then
    return
  end
  leave(edit)
  if api.nvim_buf_is_loaded(edit.buf) then
    api.nvim_buf_clear_namespace(edit.buf, namespace, 0, -1)
  end
end

--- Withdraw the edit, and stop asking until the buffer changes or insert mode ends.
function M.withdraw()
  waiting:cancel()
  erase()
  settled = nil
end

--- Return true if an edit is offered in the current buffer.
function M.visible()
  return current() ~= nil
end

-- --- requests ---------------------------------------------------------------------------------------------

--- Return the client's loaded buffer of a document.
local function buffer_of(client, uri)
  for buf in pairs(client.attached_buffers) do
    if api.nvim_buf_is_loaded(buf) and vim.uri_from_bufnr(buf) == uri then
      return buf
    end
  end
end

--- Convert an answer's edit; nil if it is not one of a buffer as it is.
---@param home integer the buffer that was asked for
---@return fim_server.NextEdit?
local function converted(answer, client, home)
  local place, document = answer.range, answer.textDocument
  local is_whole = type(place) == 'table' and type(answer.text) == 'string' and type(document) == 'table'
  local buf = is_whole and buffer_of(client, document.uri)
  if not buf then
    return nil
  end
  local first, last, lines = place.start, place['end'], api.nvim_buf_line_count(buf)
  if document.version ~= lsp.util.buf_versions[buf] or first.line >= lines or last.line > lines then
    return nil
  end
  local function column(position)
    return vim.str_byteindex(line_at(buf, position.line), client.offset_encoding, position.character, false)
  end
  local end_row, end_col = last.line, column(last)
  if end_row == lines then -- the end of the last line's break
    end_row, end_col = lines - 1, #line_at(buf, lines - 1)
  end
  return {
    buf = buf,
    home = home,
    client = client,
    tick = api.nvim_buf_get_changedtick(buf),
    home_tick = api.nvim_buf_get_changedtick(home),
    row = first.line,
    col = column(first),
    end_row = end_row,
    end_col = end_col,
    change = { range = place, newText = (answer.text:gsub('\r\n?', '\n')) },
    command = answer.command,
    restore = {},
  }
end

--- Offer the edit in its home.
---@param edit fim_server.NextEdit
local function offer(edit)
  draw_hint()
  local function borrow(mode, key, name, act)
    if key then
      edit.restore[#edit.restore + 1] = keys.borrow(edit.home, mode, key, name, act)
    end
  end
  borrow('n', rules.accept, 'next_edit', M.next_edit)
  borrow('i', rules.accept, 'next_edit', function()
    return fn.pumvisible() == 0 and not rules.busy() and M.next_edit()
  end)
  borrow('n', rules.dismiss, 'dismiss_edit', M.dismiss_edit)
end

---@param edit fim_server.NextEdit
local function show(edit)
  erase()
  rules.appears()
  shown = edit
  draw(edit)
  offer(edit)
end

local function is_quiet()
  local mode = api.nvim_get_mode().mode
  return (mode == 'n' or mode:sub(1, 1) == 'i') and fn.pumvisible() == 0 and not rules.busy()
end

---@param client vim.lsp.Client
---@param buf integer
local function request(client, buf)
  local this = { client = client, buf = buf, tick = api.nvim_buf_get_changedtick(buf) }
  local pending = waiting.request
  if switches.silent(vim.bo[buf].filetype) or not is_quiet() or settled == state_of(buf) then
    return
  elseif pending and pending.buf == buf and pending.tick == this.tick then
    return
  end
  waiting:cancel()
  waiting.request = this
  local params = lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = lsp.util.buf_versions[buf]
  params.context = { triggerKind = 2 }
  params.otherDocuments = true
  local _, id = client:request(NEXT_EDIT, params, function(err, result)
    if waiting.request ~= this then
      return -- cancelled, but answered
    end
    waiting.request = nil
    if err and err.code == METHOD_NOT_FOUND then
      pcall(api.nvim_del_augroup_by_name, group_of(buf)) -- a server without next edits
    end
    local is_here = api.nvim_get_current_buf() == buf and api.nvim_buf_get_changedtick(buf) == this.tick
    if err or not is_here or not is_quiet() then
      return
    end
    settled = state_of(buf)
    local answer = (texts.without_nulls(result) or {}).edits
    local edit = answer and answer[1] and converted(answer[1], client, buf)
    if edit then
      show(edit)
    end
  end, buf)
  this.id = id
end

-- --- actions ----------------------------------------------------------------------------------------------

---@param name? string another command with the same argument
local function run_command(edit, name)
  if edit.command and not edit.client:is_stopped() then
    local command = vim.tbl_extend('force', edit.command, name and { command = name } or {})
    edit.client:exec_cmd(command, { bufnr = edit.buf }, function() end)
  end
end

--- Enter the buffer of an edit that is offered in another one. False: that failed.
---@param edit fim_server.NextEdit
local function enter(edit)
  local window = fn.bufwinid(edit.buf)
  is_entering = true
  local ok, message = pcall(function()
    if window ~= -1 then
      api.nvim_set_current_win(window)
    else
      api.nvim_win_set_buf(0, edit.buf)
    end
  end)
  is_entering = false
  if not ok or api.nvim_get_current_buf() ~= edit.buf then
    M.withdraw()
    vim.notify('fim-server: ' .. (ok and 'the file cannot be shown here' or message), vim.log.levels.WARN)
    return false
  end
  leave(edit)
  edit.home, edit.home_tick, settled = edit.buf, edit.tick, state_of(edit.buf)
  offer(edit)
  return true
end

---@param edit fim_server.NextEdit
local function jump(edit)
  if api.nvim_get_mode().mode == 'n' then
    vim.cmd("normal! m'")
  end
  if edit.buf ~= edit.home and not enter(edit) then
    return
  end
  api.nvim_win_set_cursor(0, { edit.row + 1, edit.col })
  pcall(vim.cmd.foldopen, { bang = true })
  draw_hint()
end

---@param edit fim_server.NextEdit
local function accept(edit)
  M.withdraw()
  vim.bo[edit.buf].undolevels = vim.bo[edit.buf].undolevels -- a separate undo step
  lsp.util.apply_text_edits({ vim.deepcopy(edit.change) }, edit.buf, edit.client.offset_encoding)
  local lines = vim.split(edit.change.newText, '\n', { plain = true })
  local row = math.min(edit.row + #lines, api.nvim_buf_line_count(edit.buf))
  api.nvim_win_set_cursor(0, { row, #lines[#lines] + (#lines == 1 and edit.col or 0) })
  run_command(edit)
  request(edit.client, edit.buf)
end

--- Jump to the offered edit, or accept it where the cursor is in its lines. False: none is visible.
function M.next_edit()
  local edit = current()
  if not edit then
    return false
  end
  local row = fn.line('.') - 1
  if edit.buf ~= edit.home or row < edit.row or row > edit.end_row then
    jump(edit)
  else
    accept(edit)
  end
  return true
end

--- Dismiss the offered edit; the server keeps it away until its lines change. False: none is visible.
function M.dismiss_edit()
  local edit = current()
  if not edit then
    return false
  end
  erase()
  run_command(edit, DISMISSED)
  return true
end

-- --- setting up -------------------------------------------------------------------------------------------

---@param given fim_server.NextEditRules
function M.setup(given)
  rules = given
  api.nvim_set_hl(0, 'FimEditRemoved', { default = true, link = 'DiffDelete' })
  api.nvim_set_hl(0, 'FimEditAdded', { default = true, link = 'DiffAdd' })
end

--- Request next edits after each pause in a buffer, and once it is entered.
---@param client vim.lsp.Client
---@param buf integer
function M.watch(client, buf)
  local group = api.nvim_create_augroup(group_of(buf), {})
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
  end
  local function request_soon()
    if api.nvim_get_current_buf() ~= buf or current() then
      return
    end
    waiting:pause(PAUSE_MS, function()
      if api.nvim_get_current_buf() == buf and not current() and not client:is_stopped() then
        request(client, buf)
      end
    end)
  end
  on({ 'TextChanged', 'TextChangedI', 'InsertLeave', 'BufEnter' }, request_soon)
  on({ 'CursorMoved', 'CursorMovedI' }, draw_hint)
  api.nvim_create_autocmd('WinScrolled', { group = group, callback = draw_hint })
  on('BufLeave', function()
    if not is_entering then
      M.withdraw()
    end
  end)
  on('LspDetach', function(event)
    if event.data.client_id == client.id then
      M.withdraw()
      api.nvim_del_augroup_by_id(group)
    end
  end)
  api.nvim_buf_attach(buf, false, {
    on_lines = function()
      vim.schedule(function()
        if shown and not is_fresh(shown) then
          erase()
        end
        local pending = waiting.request
        if pending and pending.buf == buf and pending.tick ~= api.nvim_buf_get_changedtick(buf) then
          waiting:cancel()
        end
      end)
      return not lsp.buf_is_attached(buf, client.id) -- true ends the subscription
    end,
  })
  request_soon()
end

return M

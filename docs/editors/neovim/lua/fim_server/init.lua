--- fim-server in Neovim, 0.11 or newer: ghost text, alternatives, acceptance by word and line, next edits,
--- explanations.
---
--- No dependencies. Put the folder `fim_server` into a folder `lua` of the runtime path and call, in init.lua,
---
---     require('fim_server').setup({ keymaps = true })
---
--- docs/editors.md describes it and its options, docs/protocol.md its messages.

local api, fn, lsp = vim.api, vim.fn, vim.lsp
local defaults = require('fim_server.defaults')
local keys = require('fim_server.keys')
local next_edits = require('fim_server.next_edits')
local pages = require('fim_server.pages')
local switches = require('fim_server.switches')
local texts = require('fim_server.texts')
local waiting = require('fim_server.waiting').new()

local M = {}
local NAME = 'fim_server'
local INLINE = 'textDocument/inlineCompletion'
local INVOKED, AUTOMATIC = 1, 2 -- lsp.InlineCompletionTriggerKind
local QUIET = { [-32800] = true, [-32801] = true, [-32802] = true } -- cancelled, by us or by the server
local STOP_POLL_MS, STOP_POLLS = 50, 40 -- time for a server to end before it is killed

local options = defaults.OPTIONS
local namespace = api.nvim_create_namespace(NAME)
local augroup = api.nvim_create_augroup(NAME, {})

--- A suggestion at one place of a buffer. Columns are bytes from 0.
---@class fim_server.Suggestion
---@field buf integer
---@field client_id integer
---@field row integer
---@field col integer where the text begins; its typed part is between there and the cursor
---@field text string
---@field before string the line left of the text
---@field after string the line right of the cursor
---@field covered integer how many bytes of `after` the text replaces
---@field below integer number of lines from the cursor's line on
---@field command? lsp.Command

--- The current suggestions; nil if there are none.
---@type { items: fim_server.Suggestion[], index: integer, invoked: boolean, last_row: integer }?
local offer
--- The buffer with ghost text.
---@type integer?
local drawn
--- The buffer state of the last request, since TextChangedI and CursorMovedI report the same keystroke.
---@type string?
local asked
--- The last fim-server/status.
local status

-- --- position ---------------------------------------------------------------------------------------------

---@return vim.lsp.Client?
local function client_of(buf)
  return lsp.get_clients({ name = NAME, bufnr = buf })[1]
end

---@return integer row, integer col both from 0
local function cursor()
  local at = api.nvim_win_get_cursor(0)
  return at[1] - 1, at[2]
end

local function line_at(buf, row)
  return api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
end

local function inserting()
  return vim.startswith(api.nvim_get_mode().mode, 'i')
end

--- The typed part of a suggestion, left of the cursor. Nil: it no longer fits here.
---@param s fim_server.Suggestion
local function typed(s)
  if api.nvim_get_current_buf() ~= s.buf then
    return nil
  end
  local row, col = cursor()
  if row < s.row or (row == s.row and col < s.col) or api.nvim_buf_line_count(s.buf) - row ~= s.below then
    return nil
  end
  if line_at(s.buf, s.row):sub(1, s.col) ~= s.before or line_at(s.buf, row):sub(col + 1) ~= s.after then
    return nil
  end
  local text = table.concat(api.nvim_buf_get_text(s.buf, s.row, s.col, row, col, {}), '\n')
  return vim.startswith(s.text, text) and text or nil
end

--- The rest of a suggestion. Nil: nothing, or it no longer fits here.
---@param s fim_server.Suggestion
local function remaining(s)
  local done = typed(s)
  local rest = done and s.text:sub(#done + 1) or ''
  return rest ~= s.after:sub(1, s.covered) and rest ~= '' and rest or nil
end

-- --- ghost text -----------------------------------------------------------------------------------------------

local function highlight_of(s)
  local argument = s.command and s.command.arguments and s.command.arguments[1]
  local guarantee = type(argument) == 'table' and argument.guarantee or 'exact'
  return guarantee == 'exact' and 'FimSuggestion' or 'FimSuggestionUnchecked'
end

local function erase()
  if drawn and api.nvim_buf_is_loaded(drawn) then
    api.nvim_buf_clear_namespace(drawn, namespace, 0, -1)
  end
  drawn = nil
end

--- Draw at a position of the current buffer.
local function mark_at(row, col, mark)
  drawn = api.nvim_get_current_buf()
  api.nvim_buf_set_extmark(drawn, namespace, row, col, mark)
end

--- Show a hint at the end of the cursor's line until the next keystroke.
local function hint(text)
  local row = cursor()
  mark_at(row, 0, { virt_text = { { text, 'FimHint' } }, virt_text_pos = 'eol' })
end

--- Draw a suggestion so that the window looks as it would after accepting it.
---@param s fim_server.Suggestion
---@param rest string
local function draw(s, rest)
  local row, col = cursor()
  local group = highlight_of(s)
  local covered, stays = s.after:sub(1, s.covered), s.after:sub(s.covered + 1)
  local lines = vim.split(rest, '\n', { plain = true })
  local column = fn.strdisplaywidth(line_at(s.buf, row):sub(1, col))
  local mark = { virt_text_pos = 'inline' }
  if #lines == 1 and vim.endswith(rest, covered) then
    mark.virt_text = { { texts.expanded(rest:sub(1, #rest - #covered), column), group } }
  elseif s.after == '' then
    mark.virt_text = { { texts.expanded(lines[1], column), group } }
  else
    -- The rest of the line moves behind the text, so draw the line again from the cursor on.
    local chunks = { { texts.expanded(lines[1], column), group } }
    if #lines == 1 then
      chunks[2] = { stays, 'Normal' }
    end
    local width = 0
    for _, chunk in ipairs(chunks) do
      width = width + fn.strdisplaywidth(chunk[1], column + width)
    end
    chunks[#chunks + 1] = { (' '):rep(fn.strdisplaywidth(s.after, column) - width), 'Normal' }
    mark.virt_text, mark.virt_text_pos = chunks, 'overlay'
  end
  if #lines > 1 then
    mark.virt_lines = {}
    for number = 2, #lines do
      mark.virt_lines[number - 1] = { { texts.expanded(lines[number], 0), group } }
    end
    table.insert(mark.virt_lines[#lines - 1], { stays, 'Normal' })
  end
  mark_at(row, col, mark)
  if offer.invoked and #offer.items > 1 then
    hint(('(%d/%d)'):format(offer.index, #offer.items))
  end
end

--- Draw the current suggestion. False: there is none.
local function show()
  erase()
  local current = offer and offer.items[offer.index]
  if not current then
    return false
  end
  offer.items = vim.tbl_filter(remaining, offer.items)
  offer.index = 1
  for index, item in ipairs(offer.items) do
    offer.index = item == current and index or offer.index
  end
  current = offer.items[offer.index]
  if not current then
    offer = nil
    return false
  end
  offer.last_row = cursor()
  next_edits.withdraw()
  draw(current, assert(remaining(current)))
  return true
end

-- --- requests -------------------------------------------------------------------------------------------------

local function forget()
  waiting:cancel()
  offer, asked = nil, nil
  erase()
end

--- Convert a protocol item to a suggestion at the cursor; nil if it does not fit there.
---@return fim_server.Suggestion?
local function suggestion(item, client, buf, row, col)
  if type(item.insertText) ~= 'string' then
    return nil -- an unrequested snippet
  end
  local line = line_at(buf, row)
  local first, last = col, col
  if item.range then
    if item.range.start.line ~= row or item.range['end'].line ~= row then
      return nil
    end
    first = vim.str_byteindex(line, client.offset_encoding, item.range.start.character, false)
    last = vim.str_byteindex(line, client.offset_encoding, item.range['end'].character, false)
  end
  if first > col or last < col then
    return nil
  end
  return {
    buf = buf,
    client_id = client.id,
    row = row,
    col = first,
    text = (item.insertText:gsub('\r\n?', '\n')),
    before = line:sub(1, first),
    after = line:sub(col + 1),
    covered = last - col,
    below = api.nvim_buf_line_count(buf) - row,
    command = item.command,
  }
end

--- Request suggestions at the cursor, and call back unless text or cursor have changed.
---@param kind integer
---@param on_items fun(items: fim_server.Suggestion[])
local function request(kind, on_items)
  waiting:cancel()
  local buf = api.nvim_get_current_buf()
  local client = client_of(buf)
  if not client or not client:supports_method(INLINE) then
    return
  end
  local row, col = cursor()
  local tick = api.nvim_buf_get_changedtick(buf)
  local params = {
    textDocument = lsp.util.make_text_document_params(buf),
    position = { line = row, character = vim.str_utfindex(line_at(buf, row), client.offset_encoding, col, false) },
    context = { triggerKind = kind },
  }
  local this = { client = client }
  waiting.request = this
  local _, id = client:request(INLINE, params, function(err, result)
    if waiting.request ~= this then
      return -- cancelled, but answered
    end
    waiting.request = nil
    if err then
      if not QUIET[err.code] then
        vim.notify_once('fim-server: ' .. err.message, vim.log.levels.WARN)
      end
      return
    end
    local now_row, now_col = cursor()
    local moved = api.nvim_get_current_buf() ~= buf or now_row ~= row or now_col ~= col
    if moved or api.nvim_buf_get_changedtick(buf) ~= tick or not inserting() then
      return
    end
    local items = {}
    result = texts.without_nulls(result) or {}
    for _, item in ipairs(result.items or result) do
      items[#items + 1] = suggestion(item, client, buf, row, col)
    end
    on_items(vim.tbl_filter(remaining, items))
  end, buf)
  this.id = id
end

local function ask_automatically()
  request(AUTOMATIC, function(items)
    offer = { items = items, index = 1, invoked = false, last_row = 0 }
    show()
  end)
end

--- Update after a possible move of the cursor or change of the text.
local function update()
  local buf = api.nvim_get_current_buf()
  if options.display ~= 'ghost' or switches.silent(vim.bo[buf].filetype) or not client_of(buf) then
    return
  end
  if not inserting() or fn.pumvisible() == 1 then
    return forget()
  end
  local row, col = cursor()
  local here = ('%d:%d:%d:%d'):format(buf, api.nvim_buf_get_changedtick(buf), row, col)
  if show() then -- typed through
    asked = here
    return waiting:cancel()
  end
  if here == asked or next_edits.visible() then
    return
  end
  waiting:cancel()
  asked = here
  waiting:pause(options.debounce_ms, function()
    if inserting() then
      ask_automatically()
    end
  end)
end

-- --- actions -----------------------------------------------------------------------------------------

--- Run the command of an item, or another one with its argument.
---@param name? string
local function run_command(s, name)
  local client = s.command and lsp.get_client_by_id(s.client_id)
  if client then
    local command = vim.tbl_extend('force', s.command, name and { command = name } or {})
    client:exec_cmd(command, { bufnr = s.buf }, function() end)
  end
end

--- Accept a suggestion or its next part.
---@param s fim_server.Suggestion
local function take(s, part)
  local done, rest = typed(s), remaining(s)
  if not done or not rest then
    return
  end
  local row, col = cursor()
  local piece = texts.piece_of(rest, part)
  local left_over = rest:sub(#piece + 1)
  if left_over == '' or left_over == s.after:sub(1, s.covered) then
    offer = nil
    texts.put(s.buf, row, col, row, col + s.covered, rest)
    run_command(s)
  else
    texts.put(s.buf, row, col, row, col, piece)
  end
  update()
end

--- Neovim 0.12's own client inserts the whole text at the requested position, even if a part has been typed.
local function take_builtin(part)
  return lsp.inline_completion.get({
    on_accept = function(item)
      local row, col = cursor()
      local start_row, start_col, end_row, end_col = row, col, row, col
      if item.range then
        start_row, start_col, end_row, end_col = item.range:to_extmark()
      end
      if type(item.insert_text) ~= 'string' or start_row ~= end_row then
        return
      end
      local buf = api.nvim_get_current_buf()
      take({
        buf = buf,
        client_id = item.client_id,
        row = start_row,
        col = start_col,
        text = (item.insert_text:gsub('\r\n?', '\n')),
        before = line_at(buf, start_row):sub(1, start_col),
        after = line_at(buf, row):sub(col + 1),
        covered = end_col - start_col,
        below = api.nvim_buf_line_count(buf) - row,
        command = item.command,
      }, part)
    end,
  })
end

--- Accept the visible suggestion or its next part. False: none is visible.
---@param part? 'all'|'word'|'line'
function M.accept(part)
  if options.display == 'builtin' then
    return take_builtin(part)
  end
  if not M.visible() then
    return false
  end
  take(offer.items[offer.index], part)
  return true
end

function M.accept_word()
  return M.accept('word')
end

function M.accept_line()
  return M.accept('line')
end

--- Return true if this plug-in's ghost text is visible at the cursor.
function M.visible()
  local current = offer and offer.items[offer.index]
  return current ~= nil and remaining(current) ~= nil
end

M.next_edit, M.dismiss_edit = next_edits.next_edit, next_edits.dismiss_edit

--- Return true if ghost text is visible, this plug-in's or Neovim's own.
local function is_ghost_visible()
  local builtin = options.display == 'builtin' and api.nvim_get_namespaces()['nvim.lsp.inline_completion']
  return M.visible() or (builtin and #api.nvim_buf_get_extmarks(0, builtin, 0, -1, { limit = 1 }) > 0) or false
end

--- Show another suggestion; the first time, request alternatives.
---@param step integer
local function cycle(step)
  if options.display == 'builtin' then
    lsp.inline_completion.select({ count = step })
    return true -- Neovim does not say whether it shows anything
  end
  if not inserting() or not client_of(api.nvim_get_current_buf()) then
    return false
  end
  if offer and offer.invoked and M.visible() then
    offer.index = (offer.index + step - 1) % #offer.items + 1
    return show()
  end
  local shown = M.visible() and remaining(offer.items[offer.index]) or nil
  request(INVOKED, function(items)
    if #items == 0 then
      if not shown then
        local last = status and status.last
        hint(last and last.items == 0 and last.reason or 'no suggestion here')
      end
      return
    end
    local index = 1
    for number, item in ipairs(items) do
      if item.text == shown then
        index = (number + step - 1) % #items + 1
      end
    end
    offer = { items = items, index = index, invoked = true, last_row = 0 }
    show()
  end)
  return true
end

--- Show the next alternative, or request a suggestion if none is visible.
function M.next()
  return cycle(1)
end

function M.previous()
  return cycle(-1)
end

--- Dismiss the suggestion until its line changes. False: there was none.
function M.dismiss()
  local was_visible = M.visible()
  if was_visible then
    run_command(offer.items[offer.index], 'fim-server.dismissed')
  end
  waiting:cancel()
  offer = nil
  erase()
  return was_visible
end

--- Short state for the status line; empty without a server.
function M.status()
  if #lsp.get_clients({ name = NAME }) == 0 or not status then
    return ''
  end
  local minutes = switches.minutes_left()
  if minutes then
    return ('fim: snoozed, %d min'):format(minutes)
  end
  if status.state == 'loading' then
    return status.progress and ('fim: loading %d%%'):format(status.progress * 100) or 'fim: loading'
  end
  if status.state == 'ready' and client_of(0) and switches.held_back(vim.bo.filetype, status.model) then
    return 'fim: only on request'
  end
  local last = status.last
  if status.state == 'ready' and last then
    local time = last.latency and (' %d ms'):format(last.latency.totalMs) or ''
    local unchecked = last.items > 0 and last.guarantee ~= 'exact'
    return 'fim:' .. time .. (unchecked and ' unchecked' or '')
  end
  return 'fim: ' .. (status.state == 'error' and status.message or status.state)
end

-- --- commands -------------------------------------------------------------------------------------------------

---@param on_result? fun(result: any)
local function execute(command, arguments, on_result)
  local client = client_of(api.nvim_get_current_buf()) or lsp.get_clients({ name = NAME })[1]
  if not client then
    return vim.notify('fim-server: no server runs for this buffer', vim.log.levels.WARN)
  end
  local params = { command = 'fim-server.' .. command, arguments = arguments }
  client:request('workspace/executeCommand', params, function(err, result)
    if err then
      vim.notify('fim-server: ' .. err.message, vim.log.levels.WARN)
    elseif on_result then
      on_result(texts.without_nulls(result))
    end
  end)
end

--- Explain the cursor in a window below, and judge a text if given. From a page, explain the window before it.
---@param text? string
function M.explain(text)
  local window
  for _, candidate in ipairs({ api.nvim_get_current_win(), fn.win_getid(fn.winnr('#')) }) do
    if not window and candidate ~= 0 and client_of(api.nvim_win_get_buf(candidate)) then
      window = candidate
    end
  end
  if not window then
    return vim.notify('fim-server: no source buffer to explain here', vim.log.levels.WARN)
  end
  local buf = api.nvim_win_get_buf(window)
  local client = assert(client_of(buf))
  local row, col = unpack(api.nvim_win_get_cursor(window))
  row = row - 1
  local character = vim.str_utfindex(line_at(buf, row), client.offset_encoding, col, false)
  local place = { line = row, character = character }
  local argument = { uri = vim.uri_from_bufnr(buf), position = place, text = text }
  execute('explainAt', { argument }, function(explanation)
    pages.show(('fim-server: line %d, column %d'):format(row + 1, col + 1), pages.explanation(explanation))
  end)
end

--- Show the server's statistics in a window below.
function M.statistics()
  execute('statistics', {}, function(statistics)
    pages.show('fim-server: statistics', pages.statistics(statistics))
  end)
end

M.switch, M.toggle, M.snooze = switches.switch, switches.toggle, switches.snooze

--- Restart the server.
function M.restart()
  forget()
  local clients = lsp.get_clients({ name = NAME })
  for _, client in ipairs(clients) do
    client:stop()
  end
  local polls = 0
  local function start_when_stopped()
    polls = polls + 1
    for _, client in ipairs(clients) do
      if lsp.get_client_by_id(client.id) then
        if polls == STOP_POLLS then
          client:stop(true)
        end
        return vim.defer_fn(start_when_stopped, STOP_POLL_MS)
      end
    end
    status = nil
    lsp.enable(NAME)
  end
  start_when_stopped()
end

-- --- setting up -----------------------------------------------------------------------------------------------

local function map_keys(buf)
  for name, key in pairs(options.keymaps) do
    if not vim.endswith(name, '_edit') then -- those are mapped while an edit is shown
      keys.map(buf, 'i', key, name, M[name])
    end
  end
end

local function on_attach(client, buf)
  map_keys(buf)
  require('fim_server.resting').watch(client, buf, NAME)
  if options.next_edits then
    next_edits.watch(client, buf)
  end
  if options.display == 'menu' then
    return lsp.completion.enable(true, client.id, buf, { autotrigger = true })
  elseif options.display == 'builtin' then
    return lsp.inline_completion.enable(true, { bufnr = buf })
  end
  api.nvim_clear_autocmds({ group = augroup, buffer = buf })
  -- Within InsertEnter the mode is still the old one, within CompleteDone the menu is still open.
  api.nvim_create_autocmd({ 'InsertEnter', 'CompleteDone' }, {
    group = augroup,
    buffer = buf,
    callback = vim.schedule_wrap(update),
  })
  api.nvim_create_autocmd({ 'TextChangedI', 'CursorMovedI' }, { group = augroup, buffer = buf, callback = update })
  api.nvim_create_autocmd({ 'InsertLeave', 'BufLeave', 'CompleteChanged' }, {
    group = augroup,
    buffer = buf,
    callback = forget,
  })
  api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last)
      -- A change elsewhere: the text may no longer fit.
      local current = offer and offer.items[offer.index]
      if current and current.buf == buf and (first < current.row or last > offer.last_row + 1) then
        offer, asked = nil, nil
        vim.schedule(update)
      end
      return client_of(buf) == nil -- true ends the subscription
    end,
  })
  update()
end

local function capabilities()
  local all = lsp.protocol.make_client_capabilities()
  all.textDocument.inlineCompletion = { dynamicRegistration = false }
  if options.display == 'menu' then
    all.textDocument.inlineCompletion = vim.NIL -- the server then offers textDocument/completion instead
  end
  return all
end

--- Start fim-server for its file types.
---@param given? fim_server.Options
function M.setup(given)
  if fn.has('nvim-0.11') == 0 then
    return vim.notify('fim-server: needs Neovim 0.11 or newer', vim.log.levels.ERROR)
  end
  options = vim.tbl_extend('force', defaults.OPTIONS, given or {})
  options.keymaps = options.keymaps == true and defaults.KEYS or options.keymaps or {}
  if options.display == 'builtin' and not lsp.inline_completion then
    options.display = 'ghost'
  end
  api.nvim_set_hl(0, 'FimSuggestion', { default = true, link = 'Comment' })
  api.nvim_set_hl(0, 'FimSuggestionUnchecked', { default = true, link = 'NonText' })
  api.nvim_set_hl(0, 'FimHint', { default = true, link = 'NonText' })

  next_edits.setup({
    busy = is_ghost_visible,
    appears = function()
      waiting:cancel()
    end,
    accept = options.keymaps.next_edit,
    dismiss = options.keymaps.dismiss_edit,
  })
  options.settings = vim.tbl_extend('force', options.settings, not options.next_edits and { nextEdits = false } or {})
  switches.setup(NAME, options.settings, function()
    forget()
    next_edits.withdraw()
    vim.cmd.redrawstatus()
  end)
  local settings = next(options.settings) and options.settings or nil
  lsp.config(NAME, {
    cmd = function(dispatchers) -- with a list, a missing program would only be logged
      return lsp.rpc.start(options.cmd, dispatchers)
    end,
    filetypes = options.filetypes,
    init_options = settings,
    settings = settings and { ['fim-server'] = settings },
    capabilities = capabilities(),
    root_dir = function(_, on_dir)
      if fn.executable(options.cmd[1]) == 1 then
        on_dir(nil)
      else
        vim.schedule(function() -- during Neovim's start, it would be overdrawn
          vim.notify_once('fim-server: no such program: ' .. options.cmd[1], vim.log.levels.WARN)
        end)
      end
    end,
    -- One server for all projects, since each holds a model. The server finds a file's project itself.
    reuse_client = function(client, config)
      return client.name == config.name and not client:is_stopped()
    end,
    handlers = {
      ['fim-server/status'] = function(_, new)
        status = texts.without_nulls(new)
        vim.cmd.redrawstatus()
      end,
    },
    on_attach = on_attach,
  })
  lsp.enable(NAME)

  require('fim_server.commands').define(M)
end

return M

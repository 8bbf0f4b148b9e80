-- SPDX-License-Identifier: Apache-2.0
-- A client of the server that a call names, by its options and the environment.
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local NO_SERVER = 'no server is named; write --url redis://host:6379 (or LATCHKEY_URL), or '
  .. '--url local: for your own server on this machine'

-- What files had in them: a pipe can be read once, and there may be several servers.
local contents = {}

local function read_once(file)
  local why
  if not contents[file] then
    contents[file], why = utils.readfile(file, true)
  end
  return contents[file], why
end

local function password(args, url)
  if not args.password_file then
    -- The user's own server has none.
    local given = not url:find('^local:') and os.getenv('LATCHKEY_PASSWORD')
    return given and given ~= '' and given or nil
  end
  local content, why = read_once(args.password_file)
  local line = content and content:match('^[^\r\n]+')
  if not line then
    return nil, ('--password-file %s'):format(why
      or args.password_file .. ' has no password on its first line')
  elseif line:find('%z') then
    return nil, ('--password-file %s has a NUL byte on its first line; write the password as UTF-8')
      :format(args.password_file)
  end
  return line
end

---It loads no scripts by being opened. With --verbose it is said which server it is.
---@param ctx cli.context
---@param url string|nil
---@param options? table of latchkey.open
---@return latchkey.client|nil client
---@return latchkey.error|nil err also where the call is wrong; nothing was told
return function(ctx, url, options)
  local secret, wrong = password(ctx.args, url or '')
  if not url or url == '' then
    wrong = NO_SERVER
  end
  if wrong then
    return nil, { status = 'LK_INVALID', message = wrong,
      hint = ('latchkey %s --help lists the options'):format(ctx.command) }
  end
  local client, err = require('latchkey').open(url, tablex.merge(options or {},
    { password = secret, no_load = true, label = ctx.command }, true))
  if client and ctx.verbose then
    ctx.stderr:write(('latchkey %s: connected to %s\n'):format(ctx.command, client:target()))
  end
  return client, err
end

-- SPDX-License-Identifier: Apache-2.0
-- The debugger as editors have it: a client that is written down, and each message that it is sent.
local cjson = require('cjson')
local dir = require('pl.dir')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local json = require('latchkey.json') -- cjson's own loses digits of large numbers
local program = require('cli.program')

-- Without a header; its lines are counted below.
local TAKE = [[
local key = KEYS[1]
local function left(most)
  return tonumber(redis.call('GET', key) or most)
end
local n = left(ARGV[1])
redis.call('SET', key, n - 1)
return { n - 1, 'left' }
]]

describe('latchkey debug --dap', function()
  local folder, file

  before_each(function()
    folder = program.folder()
    file = folder .. '/own/take.lua'
    dir.makepath(folder .. '/own')
    utils.writefile(file, TAKE)
  end)

  after_each(program.clean)

  local function frame(text)
    return ('Content-Length: %d\r\n\r\n%s'):format(#text, text)
  end

  local function messages_of(out)
    local messages, at = {}, 1
    while at <= #out do
      local length, from = out:match('^Content%-Length: (%d+)\r\n\r\n()', at)
      assert.truthy(length, 'no message at byte ' .. at)
      messages[#messages + 1] = cjson.decode(out:sub(from, from + length - 1))
      at = from + length
    end
    return messages
  end

  local function serve(bytes)
    local input = folder .. '/input'
    utils.writefile(input, bytes)
    local result = program.run({ 'debug', '--dap' }, { input = input })
    result.messages = messages_of(result.out)
    return result
  end

  -- Sends requests: { command, arguments } each. The result has what answered each and the events
  -- that came with it, before the next answer: { answer, event, ... }.
  local function talk(requests)
    local bytes = {}
    for seq, request in ipairs(requests) do
      bytes[seq] = frame(json.encode({ seq = seq, type = 'request', command = request[1],
        arguments = request[2] }))
    end
    local result, turns = serve(table.concat(bytes)), {}
    for number, message in ipairs(result.messages) do
      assert.equal(number, message.seq)
      if message.type == 'response' then
        turns[#turns + 1] = { message }
        assert.equal(#turns, message.request_seq)
        assert.equal(requests[#turns][1], message.command)
      else
        table.insert(turns[#turns], message)
      end
    end
    return turns, result
  end

  local function launch(more)
    local arguments = { script = 'own/take', dir = folder, keys = { 'nails' }, args = { 3 } }
    for name, value in pairs(more or {}) do
      arguments[name] = value
    end
    return { 'launch', arguments }
  end

  -- A session that is told to do these while the script is stopped at its first line.
  local function stopped(requests, more)
    more = more or {}
    more.stopOnEntry = true
    local all = { { 'initialize', { adapterID = 'latchkey' } }, launch(more),
      { 'configurationDone' } }
    for _, request in ipairs(requests) do
      all[#all + 1] = request
    end
    all[#all + 1] = { 'disconnect' }
    local turns, result = talk(all)
    assert.equal(0, result.code)
    return { unpack(turns, 3) }
  end

  local function answer(seq, command, body)
    return { type = 'response', seq = seq, request_seq = body.at, command = command,
      success = true, body = body.body }
  end

  it('leads an editor through a script, message by message', function()
    local turns, result = talk({
      { 'initialize', { adapterID = 'latchkey' } },
      launch({ before = { 'SET nails 5' } }),
      { 'setBreakpoints', { source = { path = file }, breakpoints = { { line = 2 },
        { line = 6, condition = 'n == 5' }, { line = 99 } } } },
      { 'setExceptionBreakpoints', { filters = {} } },
      { 'configurationDone' },
      { 'threads' },
      { 'stackTrace', { threadId = 1 } },
      { 'continue', { threadId = 1 } },
      { 'next', { threadId = 1 } },
      { 'continue', { threadId = 1 } },
      { 'disconnect' },
    })

    local source = { name = 'take.lua', path = file }
    assert.equal(0, result.code)
    assert.is_true(turns[1][1].body.supportsStepBack)
    assert.same({ { answer(2, 'launch', { at = 2 }), { type = 'event', seq = 3,
      event = 'initialized' } } }, { turns[2] })
    assert.same({ answer(4, 'setBreakpoints', { at = 3, body = { breakpoints = {
      { verified = true, line = 3 }, { verified = true, line = 6 },
      { verified = false, message = 'nothing runs at this line or below it' } } } }) }, turns[3])
    assert.same({ answer(5, 'setExceptionBreakpoints', { at = 4 }) }, turns[4])
    local function stop(seq, reason, description)
      return { type = 'event', seq = seq, event = 'stopped', body = { reason = reason,
        description = description, threadId = 1, allThreadsStopped = true } }
    end
    local function output(seq, category, text)
      return { type = 'event', seq = seq, event = 'output', body = { category = category,
        output = text } }
    end
    assert.same({ answer(6, 'configurationDone', { at = 5 }),
      stop(7, 'breakpoint', 'break point') }, turns[5])
    assert.same({ answer(8, 'threads', { at = 6, body = { threads = {
      { id = 1, name = 'own/take' } } } }) }, turns[6])
    assert.same({ answer(9, 'stackTrace', { at = 7, body = { totalFrames = 2, stackFrames = {
      { id = 1, name = 'left', line = 3, column = 1, source = source },
      { id = 2, name = '(script)', line = 5, column = 1, source = source } } } }) }, turns[7])
    assert.same({ answer(10, 'continue', { at = 8, body = { allThreadsContinued = true } }),
      output(11, 'console', '<redis> GET nails\n'), output(12, 'console', '<reply> "5"\n'),
      stop(13, 'breakpoint', 'break point') }, turns[8])
    assert.same({ answer(14, 'next', { at = 9 }),
      output(15, 'console', '<redis> SET nails 4\n'),
      output(16, 'console', '<reply> {ok = "OK"}\n'), stop(17, 'step', 'step over') }, turns[9])
    assert.same({ answer(18, 'continue', { at = 10, body = { allThreadsContinued = true } }),
      output(19, 'stdout', '1) (integer) 4\n2) "left"\n'),
      { type = 'event', seq = 20, event = 'exited', body = { exitCode = 0 } },
      { type = 'event', seq = 21, event = 'terminated' } }, turns[10])
    assert.same({ answer(22, 'disconnect', { at = 11 }) }, turns[11])
  end)

  local function line_of(turn)
    return turn[1].body.stackFrames[1].line
  end

  it('steps into functions, out of them, and back', function()
    local turns = stopped({ { 'next' }, { 'stepIn' }, { 'stackTrace' }, { 'stepOut' },
      { 'stackTrace' }, { 'stepBack' }, { 'stackTrace' }, { 'reverseContinue' },
      { 'stackTrace' } })

    assert.equal('entry', turns[1][2].body.reason)
    assert.equal(3, line_of(turns[4]))
    assert.equal(6, line_of(turns[6]))
    assert.equal(5, line_of(turns[8]))
    assert.equal(1, line_of(turns[10]))
  end)

  local function variables_of(turn)
    local list = {}
    for i, variable in ipairs(turn[1].body.variables) do
      list[i] = variable.name .. ' ' .. variable.value
    end
    return list
  end

  it('shows variables, arguments, the keyspace and the commands that ran', function()
    local turns = stopped({ { 'next' }, { 'next' }, { 'next' }, { 'scopes', { frameId = 1 } },
      { 'variables', { variablesReference = 1 } }, { 'variables', { variablesReference = 3 } },
      { 'variables', { variablesReference = 4 } }, { 'variables', { variablesReference = 5 } },
      { 'variables', { variablesReference = 6 } }, { 'variables', { variablesReference = 77 } },
      { 'scopes', { frameId = 9 } } })

    local names = {}
    for i, scope in ipairs(turns[5][1].body.scopes) do
      assert.equal(i, scope.variablesReference)
      names[i] = scope.name
    end
    assert.same({ 'Locals', 'Upvalues', 'KEYS and ARGV', 'Keyspace', 'Commands' }, names)
    assert.same({ 'key "nails"', 'left function (line 2)', 'n 3' }, variables_of(turns[6]))
    assert.same({ 'KEYS[1] "nails"', 'ARGV[1] "3"' }, variables_of(turns[7]))
    assert.same({ 'nails new: string  "2"' }, variables_of(turns[8]))
    assert.same({ '1 GET nails -> false', '2 SET nails 2 -> {ok = "OK"}' },
      variables_of(turns[9]))
    assert.same({ 'ok "OK"' }, variables_of(turns[10]))
    assert.equal('this reference means nothing any more', turns[11][1].message)
    assert.equal('there is no such frame', turns[12][1].message)
  end)

  it('evaluates, and sets variables, which stay set when it comes there again', function()
    local turns = stopped({ { 'next' }, { 'next' }, { 'scopes', { frameId = 1 } },
      { 'evaluate', { expression = 'n + 1', context = 'hover', frameId = 1 } },
      { 'evaluate', { expression = '{ n, KEYS[1] }', context = 'watch', frameId = 1 } },
      { 'evaluate', { expression = 'n +', context = 'watch', frameId = 1 } },
      { 'setVariable', { variablesReference = 1, name = 'n', value = '40' } },
      { 'setVariable', { variablesReference = 3, name = 'KEYS[1]', value = '40' } },
      { 'setVariable', { variablesReference = 1, name = 'm', value = '40' } },
      { 'next' }, { 'stepBack' }, { 'evaluate', { expression = 'n', context = 'hover' } },
      { 'evaluate', { expression = 'n = 7', context = 'repl' } }, { 'continue' } })

    assert.equal('4', turns[5][1].body.result)
    assert.same({ result = '{3, "nails"}', type = 'table', variablesReference = 6 },
      turns[6][1].body)
    assert.is_false(turns[7][1].success)
    assert.same({ value = '40', type = 'number', variablesReference = 0 }, turns[8][1].body)
    assert.equal('only local variables can be set', turns[9][1].message)
    assert.equal('no local variable is named m', turns[10][1].message)
    assert.equal('3', turns[13][1].body.result)
    assert.equal('1) (integer) 6\n2) "left"\n', turns[15][#turns[15] - 2].body.output)

    turns = stopped({ { 'next' }, { 'next' }, { 'scopes', { frameId = 1 } },
      { 'setVariable', { variablesReference = 1, name = 'n', value = '40' } }, { 'continue' },
      { 'evaluate', { expression = 'n', context = 'hover' } },
      { 'variables', { variablesReference = 1 } } }, { stopAtEnd = true })
    assert.equal('end', turns[6][#turns[6]].body.description)
    assert.equal('40', turns[7][1].body.result)
    assert.equal('this reference means nothing any more', turns[8][1].message)
  end)

  it('stops when a key has changed', function()
    local turns = stopped({ { 'scopes', { frameId = 1 } },
      { 'dataBreakpointInfo', { variablesReference = 4, name = 'nails' } },
      { 'dataBreakpointInfo', { variablesReference = 1, name = 'key' } },
      { 'setDataBreakpoints', { breakpoints = { { dataId = '"nails"' } } } }, { 'continue' },
      { 'stackTrace' } }, { before = { 'SET nails 5' } })

    assert.same({ dataId = '"nails"', description = 'nails', accessTypes = { 'write' } },
      turns[3][1].body)
    assert.equal(cjson.null, turns[4][1].body.dataId)
    assert.same({ { verified = true } }, turns[5][1].body.breakpoints)
    assert.equal('data breakpoint', turns[6][#turns[6]].body.reason)
    assert.equal(7, line_of(turns[7]))
  end)

  it('stops at the line that fails, and at the last one where that is asked for', function()
    utils.writefile(file, "local a = 1\nreturn a.b.c\n")
    local turns = stopped({ { 'setExceptionBreakpoints', { filters = { 'errors' } } },
      { 'continue' }, { 'exceptionInfo' }, { 'stackTrace' }, { 'continue' } })
    assert.equal('exception', turns[3][2].body.reason)
    assert.matches('attempt to index', turns[4][1].body.description)
    assert.equal(2, line_of(turns[5]))
    assert.same({ exitCode = 1 }, turns[6][3].body)

    utils.writefile(file, TAKE)
    turns = stopped({ { 'continue' }, { 'stackTrace' }, { 'stepBack' }, { 'stackTrace' },
      { 'restart' }, { 'stackTrace' } }, { stopAtEnd = true })
    assert.equal('end', turns[2][#turns[2]].body.description)
    assert.same({ 7, 6, 1 }, { line_of(turns[3]), line_of(turns[5]), line_of(turns[7]) })
  end)

  it('opens a line of a trace, and a replay of the checker', function()
    local turns = talk({ { 'initialize' }, { 'launch', { stopOnEntry = true,
      trace = program.root .. '/spec/checker/trace.jsonl:11' } }, { 'configurationDone' },
      { 'threads' }, { 'disconnect' } })
    assert.equal('lock/acquire', turns[4][1].body.threads[1].name)

    turns = talk({ { 'initialize' }, { 'launch', { model = 'lock', replay = 'A.acq +300 B.acq',
      options = { clients = 2 } } }, { 'configurationDone' }, { 'disconnect' } })
    assert.equal('initialized', turns[2][2].event)

    turns = talk({ { 'initialize' }, { 'launch', { model = 'lock', replay = 'A.nothing' } },
      { 'disconnect' } })
    assert.matches('word 1 of the replay, "A.nothing", cannot be there', turns[2][1].message)
  end)

  it('refuses what it cannot do, and goes on', function()
    local turns, result = talk({ { 'nonsense' }, { 'next' }, { 'threads' }, { 'launch', {} },
      { 'launch', { script = 'no/such' } }, { 'launch', { script = 7 } },
      { 'launch', { script = 'own/take', colour = 1 } },
      launch({ name = 'a name of the editor', type = 'latchkey', request = 'launch',
        __sessionId = 'x' }), launch(), { 'evaluate', { expression = '1' } }, { 'disconnect' } })

    for place, words in ipairs({ 'there is no request "nonsense"', 'the script is not stopped',
      'no script has been launched', 'a launch request names a "script"',
      'no script is named "no/such"', '"script" of the launch request is no string',
      'a launch request has no "colour"' }) do
      assert.is_false(turns[place][1].success)
      assert.truthy(turns[place][1].message:find(words, 1, true), turns[place][1].message)
    end
    assert.is_true(turns[8][1].success)
    assert.equal('a script has been launched already', turns[9][1].message)
    assert.equal('the script is not stopped', turns[10][1].message)
    assert.equal(0, result.code)
  end)

  -- The kinds of all events that came, in order.
  local function events_of(turns)
    local kinds = {}
    for _, turn in ipairs(turns) do
      for i = 2, #turn do
        local event = turn[i]
        kinds[#kinds + 1] = event.event == 'stopped' and event.body.description or event.event
      end
    end
    return table.concat(kinds, ' ')
  end

  it('runs a script without a stop where nothing is to be debugged', function()
    local run = 'initialized output output output output output exited terminated'
    local turns = talk({ { 'initialize' },
      launch({ noDebug = true, stopOnEntry = true, stopAtEnd = true }), { 'setBreakpoints',
        { source = { path = file }, breakpoints = { { line = 6 } } } },
      { 'configurationDone' }, { 'restart' }, { 'disconnect' } })
    assert.equal(run .. run:match(' .*'), events_of(turns))

    utils.writefile(file, 'redis.breakpoint()\nreturn a.b.c\n')
    turns = talk({ { 'initialize' }, launch({ noDebug = true }),
      { 'setExceptionBreakpoints', { filters = { 'errors' } } }, { 'configurationDone' },
      { 'disconnect' } })
    assert.equal('initialized output exited terminated', events_of(turns))
  end)

  it('finds files from the folder that the editor names', function()
    local turns = talk({ { 'initialize' }, launch({ cwd = folder .. '/nowhere' }),
      launch({ cwd = 7 }), launch({ cwd = folder, script = 'own/none.lua' }),
      { 'launch', { script = 'own/take.lua' } },
      { 'launch', { script = 'own/take.lua', cwd = folder, keys = { 'nails' }, args = { 3 },
        stopOnEntry = true } },
      { 'setBreakpoints', { source = { path = file }, breakpoints = { { line = 6 } } } },
      { 'configurationDone' }, { 'stackTrace' }, { 'disconnect' } })

    for place, words in pairs({ [2] = '/nowhere is not a folder', [3] = '"cwd" of the launch',
      [4] = 'no script is named', [5] = 'no script is named' }) do
      assert.is_false(turns[place][1].success)
      assert.matches(words, turns[place][1].message, 1, true)
    end
    assert.is_true(turns[7][1].body.breakpoints[1].verified)
    assert.equal(file, turns[9][1].body.stackFrames[1].source.path)
    turns = talk({ { 'initialize' }, launch({ dir = '.', cwd = folder }), { 'disconnect' } })
    assert.is_true(turns[2][1].success)
  end)

  it('knows its script by another path, and calls it as the editor does', function()
    unistd.link('own', folder .. '/workspace', true)
    local theirs = folder .. '/workspace/take.lua'
    local turns = talk({ { 'initialize' }, launch({ script = file }), { 'setBreakpoints',
      { source = { path = theirs }, breakpoints = { { line = 6 } } } }, { 'configurationDone' },
      { 'stackTrace' }, { 'setBreakpoints', { source = { path = folder .. '/workspace/none.lua' },
        breakpoints = { { line = 6 } } } }, { 'disconnect' } })

    assert.is_true(turns[3][1].body.breakpoints[1].verified)
    assert.same({ name = 'take.lua', path = theirs }, turns[5][1].body.stackFrames[1].source)
    assert.equal('this is not the script that is debugged',
      turns[6][1].body.breakpoints[1].message)
  end)

  it('begins again as it was launched', function()
    local turns = talk({ { 'initialize' }, launch(), { 'setBreakpoints',
      { source = { path = file }, breakpoints = { { line = 6 } } } }, { 'configurationDone' },
      { 'restart' }, { 'stackTrace' }, { 'disconnect' } })
    assert.equal('break point', turns[5][#turns[5]].body.description)
    assert.equal(6, line_of(turns[6]))

    turns = stopped({ { 'continue' }, { 'restart' }, { 'stackTrace' } })
    assert.equal('start', turns[3][2].body.description)
    assert.equal(1, line_of(turns[4]))
  end)

  it('passes over what an editor keeps in a launch configuration for itself', function()
    local turns = talk({ { 'initialize' }, launch({ suppressMultipleSessionWarning = true,
      serverReadyAction = { action = 'openExternally' }, debugServer = 4711, presentation = {},
      internalConsoleOptions = 'neverOpen' }), { 'disconnect' } })

    assert.is_true(turns[2][1].success, turns[2][1].message)
  end)

  local function refused(turns, place, words)
    local message = turns[place][1].message
    assert.is_false(turns[place][1].success)
    assert.truthy(message:find(words, 1, true), message)
  end

  it('refuses a call whose words are none, and goes on', function()
    local turns, result = talk({ { 'initialize' }, launch({ before = { 5 } }),
      launch({ before = { '+99999999999999' } }), launch({ args = { cjson.null } }),
      launch({ keys = { { 'nails' } } }), launch({ keys = { key = 'nails' } }),
      launch({ fields = { 'x' } }), launch(), { 'disconnect' } })

    refused(turns, 2, '"before" of the launch request takes texts, not number')
    refused(turns, 3, '99999999999999 is too far')
    refused(turns, 4, '"args" of the launch request takes texts and numbers, not null')
    refused(turns, 5, '"keys" of the launch request takes texts and numbers, not table')
    refused(turns, 6, '"keys" of the launch request is no array')
    refused(turns, 7, '"fields" of the launch request is no object')
    assert.is_true(turns[8][1].success)
    assert.equal(0, result.code)
  end)

  it('takes and shows whole numbers with all of their digits', function()
    local turns = stopped({ { 'evaluate', { expression = 'ARGV[1]' } },
      { 'evaluate', { expression = '{ ARGV[1] + 1, 0.5, -0, 1 / 0 }' } } },
      { args = { 1763900000000001 } })

    assert.equal('"1763900000000001"', turns[2][1].body.result)
    assert.equal('{1763900000000002, 0.5, -0, inf}', turns[3][1].body.result)
  end)

  it('goes on after requests whose parts are of another form', function()
    local turns = stopped({
      { 'setBreakpoints', { source = { path = file }, breakpoints = { 6, cjson.null, {},
        { line = '6' }, { line = 1e308 }, { line = 6 } } } },
      { 'setDataBreakpoints', { breakpoints = { 1, {}, { dataId = 7 } } } },
      { 'evaluate', {} }, { 'stackTrace', { startFrame = 0.5, levels = 'x' } },
      { 'setVariable', { variablesReference = 1, name = 7, value = 8 } } })

    local places = {}
    for i, point in ipairs(turns[2][1].body.breakpoints) do
      places[i] = point.line or 'none'
    end
    assert.same({ 'none', 'none', 'none', 'none', 'none', 6 }, places)
    assert.same({ { verified = false }, { verified = false }, { verified = false } },
      turns[3][1].body.breakpoints)
    refused(turns, 4, 'an expression is a text')
    assert.equal(1, line_of(turns[5]))
    refused(turns, 6, 'only local variables can be set')
  end)

  it('runs nothing behind the end of a script', function()
    local turns = talk({ { 'initialize' }, launch(), { 'pause' }, { 'restart' },
      { 'configurationDone' }, { 'pause' }, { 'restart' }, { 'terminate' }, { 'restart' },
      { 'disconnect' } })

    refused(turns, 3, 'the script does not run')
    refused(turns, 4, 'the script has not begun')
    assert.equal('terminated', turns[5][#turns[5]].event)
    refused(turns, 6, 'the script does not run')
    assert.equal('terminated', turns[7][#turns[7]].event)
    assert.equal(1, #turns[8])
    refused(turns, 9, 'the script was terminated')

    turns = talk({ { 'initialize' }, launch(), { 'terminate' }, { 'configurationDone' },
      { 'disconnect' } })
    assert.equal('terminated', turns[3][2].event)
    assert.equal(1, #turns[4])
  end)

  it('counts lines as the editor does, and gives the frames that it asks for', function()
    local turns = talk({ { 'initialize', { linesStartAt1 = false, columnsStartAt1 = false } },
      launch(), { 'setBreakpoints', { source = { path = file }, breakpoints = { { line = 2 } } } },
      { 'configurationDone' }, { 'stackTrace' }, { 'stackTrace', { startFrame = 1, levels = 9 } },
      { 'stackTrace', { levels = 1 } }, { 'initialize', { pathFormat = 'uri' } },
      { 'disconnect' } })

    local function frames_of(turn)
      local frames = {}
      for i, frame_of in ipairs(turn[1].body.stackFrames) do
        frames[i] = ('%d %s %d:%d'):format(frame_of.id, frame_of.name, frame_of.line,
          frame_of.column)
      end
      assert.equal(2, turn[1].body.totalFrames)
      return frames
    end
    assert.same({ { verified = true, line = 2 } }, turns[3][1].body.breakpoints)
    assert.same({ '1 left 2:0', '2 (script) 4:0' }, frames_of(turns[5]))
    assert.same({ '2 (script) 4:0' }, frames_of(turns[6]))
    assert.same({ '1 left 2:0' }, frames_of(turns[7]))
    refused(turns, 8, 'pathFormat "path"')
  end)

  it('ends with 64 where the bytes are none of the protocol', function()
    for bytes, words in pairs({
      ['hello\n\n'] = 'a header is "Content-Length: N"',
      ['Content-Length: x\r\n\r\n'] = 'no length of a message: x',
      ['Content-Length: 9\r\n\r\n{}'] = 'the input ends within a message',
      ['Content-Length: 9\r\n'] = 'the input ends within a header',
      [frame('[')] = 'no request: [',
      [frame('{"type":"event"}')] = 'no request: {"type":"event"}',
    }) do
      local result = serve(bytes)

      assert.equal(64, result.code)
      assert.truthy(result.err:find(words, 1, true), result.err)
    end
    assert.equal(0, serve('').code)
  end)

  it('says where its input cannot be read', function()
    local closed = program.start_any('sh', { '-c', 'exec "$0" debug --dap <&-', program.path })
      :wait()
    local folder_given = program.start_any('sh', { '-c', 'exec "$0" debug --dap </', program.path })
      :wait()

    assert.same({ 64, '' }, { closed.code, closed.out })
    assert.truthy(closed.err:find('the input cannot be read: Bad file descriptor\n', 1, true),
      closed.err)
    assert.equal(64, folder_given.code, folder_given.err)
  end)
end)

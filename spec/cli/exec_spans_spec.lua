-- SPDX-License-Identifier: Apache-2.0
-- The spans of waits and holds: each line fits the schema, and all are in the trace that the
-- caller gave.
local cjson = require('cjson')
local fcntl = require('posix.fcntl')
local signal = require('posix.signal')
local stat = require('posix.sys.stat')
local stringx = require('pl.stringx')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local program = require('cli.program')

local SCHEMA = program.root .. '/c/packaging/monitoring/spans.schema.json'
local TRACE, PARENT = '4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'
local GIVEN = ('00-%s-%s-01'):format(TRACE, PARENT)

describe('latchkey exec --spans', function()
  local server, file

  before_each(function()
    server = program.server()
    file = program.folder() .. '/spans.json'
  end)

  after_each(program.clean)

  local function run(options, command, env)
    return program.run(program.exec(server, { '--spans', file, unpack(options) }, command),
      { env = env or { TRACEPARENT = GIVEN } })
  end

  -- The spans by their names, each with its attributes by theirs; every line fits the schema.
  local function spans()
    local found, words = {}, { 'jsonschema' }
    for i, line in ipairs(stringx.splitlines(assert(utils.readfile(file)))) do
      local one = ('%s.%d'):format(file, i)
      assert(utils.writefile(one, line))
      words[#words + 1] = '-i ' .. one
      local span = cjson.decode(line).resourceSpans[1].scopeSpans[1].spans[1]
      for _, attribute in ipairs(span.attributes) do
        span[attribute.key] = attribute.value.stringValue or attribute.value.intValue
      end
      found[span.name] = span
      found[#found + 1] = span
    end
    local fits, _, _, why = utils.executeex(table.concat(words, ' ') .. ' ' .. SCHEMA)
    assert.is_true(fits, why)
    return found
  end

  it('writes a wait and a hold of each name, in the caller\'s trace', function()
    local result = run({ '--kind', 'fenced', 'a', 'b' },
      { 'sh', '-c', 'echo $TRACEPARENT; sleep 0.3' })

    local found = spans()
    assert.equal(0, result.code)
    assert.equal(4, #found)
    for _, name in ipairs({ 'a', 'b' }) do
      local wait, hold = found['latchkey wait ' .. name], found['latchkey hold ' .. name]
      for _, span in ipairs({ wait, hold }) do
        assert.same({ TRACE, PARENT, 1, name, 'fenced' }, { span.traceId, span.parentSpanId,
          span.status.code, span['latchkey.lock.name'], span['latchkey.lock.kind'] })
      end
      assert.equal(wait.endTimeUnixNano, hold.startTimeUnixNano)
      assert.is_true(hold.endTimeUnixNano - hold.startTimeUnixNano >= 0.3e9)
      assert.truthy(hold['latchkey.owner']:find('^lk%-'))
      assert.is_true(tonumber(hold['latchkey.token']) > 0)
    end
    assert.equal(('00-%s-%s-01\n'):format(TRACE, found['latchkey hold a'].spanId), result.out)
  end)

  it('says who had it and that the wait came to nothing, behind what the file has', function()
    local theirs = program.folder() .. '/theirs.json'
    local holder = program.start(program.exec(server, { '--spans', theirs, 'job' },
      { 'sleep', '60' }))
    program.eventually('it is held', function()
      return not server:is_free('job')
    end)

    local result = run({ '--wait', '3s', 'job' }, { 'true' })
    holder:kill(signal.SIGTERM)
    holder:wait()
    run({ 'job' }, { 'true' })

    local found = spans()
    assert.equal(75, result.code)
    assert.equal(3, #found)
    assert.same({ 'latchkey wait job', 2, 'sleep@job', '1' }, { found[1].name,
      found[1].status.code, found[1]['latchkey.holder.label'], found[1]['latchkey.holder.count'] })
    assert.truthy(found[1].status.message:find('is held by another owner', 1, true))
    assert.truthy(found[1]['latchkey.holder.owner']:find('^lk%-'))
    assert.equal(1, found[2].status.code)
    -- The holder's own span has the id that the waiter knew.
    local lines = stringx.splitlines(assert(utils.readfile(theirs)))
    local hold = cjson.decode(lines[2]).resourceSpans[1].scopeSpans[1].spans[1]
    assert.equal('latchkey hold job', hold.name)
    assert.equal(hold.spanId, found[1]['latchkey.holder.span_id'])
  end)

  it('says that a lock was lost', function()
    local process = program.start(program.exec(server,
      { '--spans', file, '--lease', '6s', 'job' }, { 'sleep', '60' }))
    program.eventually('it is held', function()
      return not server:is_free('job')
    end)
    server:command('DEL', 'job')
    assert.equal(80, process:wait().code)

    local hold = spans()['latchkey hold job']
    assert.same({ 2, 'broken' }, { hold.status.code, hold['latchkey.lost'] })
  end)

  it('begins a trace where none is given, or what is given is none', function()
    for _, given in ipairs({ false, '', 'x', GIVEN:upper(), GIVEN:gsub('4bf9', '4bf'),
      '00-' .. ('0'):rep(32) .. '-' .. PARENT .. '-01', 'ff' .. GIVEN:sub(3) }) do
      os.remove(file)
      local result = run({ 'job' }, { 'sh', '-c', 'echo $TRACEPARENT' }, { TRACEPARENT = given })

      local found = spans()
      assert.is_nil(found[1].parentSpanId)
      assert.is_true(found[1].traceId ~= TRACE)
      assert.equal(found[1].traceId, found[2].traceId)
      assert.equal(found[1].traceId, result.out:match('^00%-(%x+)%-'))
    end
  end)

  it('leaves TRACEPARENT to the command without it', function()
    local result = program.run(program.exec(server, { 'job' },
      { 'sh', '-c', 'echo $TRACEPARENT' }), { env = { TRACEPARENT = 'as it is' } })

    assert.equal('as it is\n', result.out)
  end)

  it('names a file that cannot be written, and runs nothing', function()
    file = '/nowhere/spans'
    local result = run({ 'job' }, { 'echo', 'ran' })

    assert.same({ 64, '' }, { result.code, result.out })
    assert.truthy(result.err:find('--spans /nowhere/spans: No such file', 1, true), result.err)
  end)

  -- A pipe that holds no more, with a reader that does not read.
  local function full_pipe(name)
    assert(stat.mkfifo(name, tonumber('600', 8)))
    local pipe = assert(fcntl.open(name, fcntl.O_RDWR + fcntl.O_NONBLOCK))
    while unistd.write(pipe, ('x'):rep(4096)) do end
    return pipe
  end

  it('does not wait for the reader of a pipe: CMD runs, and what is missing is said', function()
    local pipe = full_pipe(file)
    local process = program.start(program.exec(server,
      { '--lease', '3s', '--spans', file, 'job', 'other' }, { 'echo', 'ran' }))

    local ended, result = pcall(process.wait, process, 15)
    unistd.close(pipe)
    assert.is_true(ended, result)
    assert.same({ 0, 'ran\n' }, { result.code, result.out })
    local _, times = result.err:gsub('the spans %S+ were not all written', '')
    assert.equal(2, times, result.err)
    assert.is_true(server:is_free('job') and server:is_free('other'))
  end)

  it('writes into a pipe what its reader takes in time', function()
    local pipe = full_pipe(file)
    local process = program.start(program.exec(server, { '--spans', file, 'job' }, { 'true' }))
    program.eventually('it is held', function()
      return not server:is_free('job') or process:poll()
    end)
    local text = ''
    program.eventually('it has ended', function()
      text = text .. (unistd.read(pipe, 65536) or '')
      return process:poll()
    end)
    text = text .. (unistd.read(pipe, 65536) or '')
    unistd.close(pipe)

    assert.equal('', process:wait().err)
    assert.truthy(text:find('latchkey wait job', 1, true))
    assert.truthy(text:find('latchkey hold job.*\n$'))
  end)

  it('begins a line of its own behind one that a full disk has cut short', function()
    assert(utils.writefile(file, ('x'):rep(1700) .. '\n'))
    local words = program.exec(server, { '--spans', file, 'job' }, { 'true' })
    local cut = program.start_any('sh', { '-c', 'ulimit -f 4 && exec "$@"', 'sh', program.path,
      unpack(words) }):wait()
    local size = stat.stat(file).st_size
    run({ 'job' }, { 'true' })

    local lines = stringx.splitlines(assert(utils.readfile(file)))
    assert.truthy(cut.err:find('were not all written', 1, true), cut.err)
    assert.same({ 0, 2048, 4 }, { cut.code, size, #lines })
    for i, what in ipairs({ 'wait', 'hold' }) do
      local span = cjson.decode(lines[2 + i]).resourceSpans[1].scopeSpans[1].spans[1]
      assert.equal('latchkey ' .. what .. ' job', span.name)
    end
  end)
end)

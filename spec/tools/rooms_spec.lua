-- SPDX-License-Identifier: Apache-2.0
-- That files and functions of C which are too large are found, and names that stand in two files.
local rooms = require('lib.rooms')

local function body(lines)
  return (' {\n%s}\n'):format(('  go();\n'):rep(lines - 2))
end

describe('the rooms of the library', function()
  it('are a function each: its name, its first line, its lines, its parameters', function()
    local text = '#include <a.h>\n\nstruct a {\n  int b;\n};\n\nint declared(int a);\n\n'
      .. 'static int one(int a, void (*f)(int, int),\n               char b[2]) {\n  return 1;\n}\n'
      .. 'void none(void) { one(1, 2, 3); }\n'
      .. 'static void held(lk_pipe *pipe) LK_REQUIRES(pipe->mutex) {\n}\n'
    assert.same({
      { name = 'one', parameters = 3, is_static = true, line = 9, lines = 4 },
      { name = 'none', parameters = 0, is_static = false, line = 13, lines = 1 },
      { name = 'held', parameters = 1, is_static = true, line = 14, lines = 2 },
    }, rooms.functions(text))
  end)

  it('may have 500 lines, and no more', function()
    assert.same({}, rooms.check({ { 'a.h', ('\n'):rep(500) } }, {}))
    assert.same({ 'a.h has 501 lines; 500 are enough' },
      rooms.check({ { 'a.h', ('\n'):rep(501) } }, {}))
  end)

  it('have functions of 60 lines, and no more', function()
    assert.same({}, rooms.check({ { 'a.c', 'void a(void)' .. body(60) } }, {}))
    assert.same({ 'a.c:1: a() has 61 lines; 60 are enough' },
      rooms.check({ { 'a.c', 'void a(void)' .. body(61) } }, {}))
  end)

  it('have functions of 6 parameters, or what a public header has promised', function()
    local six = { 'a.c', 'int f(int a, int b, int c, int d, int e, int f)' .. body(3) }
    local seven = { 'a.c', 'int f(int a, int b, int c, int d, int e, int f,\n  int g)' .. body(3) }
    assert.same({}, rooms.check({ six }, {}))
    assert.same({ 'a.c:1: f() has 7 parameters; 6 are enough' }, rooms.check({ seven }, {}))
    assert.same({}, rooms.check({ seven }, { public = { f = true } }))
  end)

  it('share no static name', function()
    local a = { 'a.c', 'static void go(void)' .. body(3) }
    local b = { 'b.c', 'static int go(int x)' .. body(3) }
    assert.same({ 'b.c:1: go() stands in a.c, too: a name means one thing' },
      rooms.check({ a, b }, {}))
  end)

  it('leave words to the folder that is for them', function()
    local text = 'void a(void) {\n  pthread_self();\n}\n'
    local rules = { refused = { ['%f[%w_]pthread_%w+'] = 'c/src/os/' } }
    assert.same({}, rooms.check({ { 'c/src/os/a.c', text } }, rules))
    assert.same({ 'c/src/net/a.c names pthread_self; only c/src/os/ may' },
      rooms.check({ { 'c/src/net/a.c', text } }, rules))
  end)

  it('want exceptions gone that nothing needs any more', function()
    local rules = { excepted = { 'a.h', 'b.h' } }
    assert.same({ 'b.h needs no exception any more: remove it' },
      rooms.check({ { 'a.h', ('\n'):rep(501) } }, rules))
  end)
end)

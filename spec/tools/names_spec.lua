-- SPDX-License-Identifier: Apache-2.0
local names = require('latchkey.script.names')

local function form(kind, text, plus)
  return { kind = kind, text = text or '', plus = plus or '' }
end

describe('names.form', function()
  it('leaves the main key as it is', function()
    assert.equal('lk', names.form(form('name'), 'lk'))
    assert.equal('{a}:lk', names.form(form('name'), '{a}:lk'))
  end)

  it('gives a prefixed or suffixed name a hash tag, unless it has a brace', function()
    assert.equal('P:{lk}', names.form(form('prefix', 'P'), 'lk'))
    assert.equal('P:{a}:lk', names.form(form('prefix', 'P'), '{a}:lk'))
    assert.equal('{lk}:S', names.form(form('suffix', 'S'), 'lk'))
    assert.equal('{a}:lk:S', names.form(form('suffix', 'S'), '{a}:lk'))
  end)

  it('braces a name always, also one with a tag', function()
    assert.equal('P{lk}', names.form(form('braces', 'P'), 'lk'))
    assert.equal('P{{a}:lk}', names.form(form('braces', 'P'), '{a}:lk'))
  end)

  it('appends an argument and a text', function()
    local args = { caller = 'c1' }

    assert.equal('seq:{lk}:c1', names.form(form('prefix', 'seq', 'caller'), 'lk', args))
    assert.equal('seq:{lk}:c1:x', names.form(form('prefix', 'seq', 'caller+:x'), 'lk', args))
  end)

  it('forms no name for a key that is any of the slot', function()
    assert.error_matches(function()
      names.form(form('slot'), 'lk')
    end, 'is chosen, not formed')
  end)

  it('refuses a form whose argument is not given', function()
    assert.error_matches(function()
      names.form(form('prefix', 'seq', 'caller'), 'lk', {})
    end, 'needs the argument "caller"')
  end)
end)

describe('names.check', function()
  for _, name in ipairs({ 'lk', '{a}:lk', 'x{a}y', 'a}b{c}', '{a}{', ('n'):rep(512), '\255 ' }) do
    it(('allows %q'):format(name:sub(1, 10)), function()
      assert.is_true(names.check(name))
    end)
  end

  local refused = {
    { 'empty', '' },
    { '513 bytes', ('n'):rep(513) },
    { 'NUL', 'a\0b' },
    { 'without a "{"', 'a}b' },
    { 'opens no hash tag', 'a{b' },
    { 'opens no hash tag', '{}x' },
    { 'opens no hash tag', '{}{a}' },
  }
  for _, case in ipairs(refused) do
    it(('refuses %q and says why'):format(case[2]:sub(1, 10)), function()
      local ok, why = names.check(case[2])

      assert.is_nil(ok)
      assert.matches(case[1], why, 1, true)
    end)
  end

  it('allows exactly the names whose keys share a slot', function()
    local forms = { form('prefix', 'P'), form('suffix', 'S') }
    local letters = { 'a', '{', '}' }
    for i = 0, 3 ^ 5 - 1 do
      local name = ''
      for place = 0, 4 do
        name = name .. letters[math.floor(i / 3 ^ place) % 3 + 1]
      end
      local shared = true
      for _, other in ipairs(forms) do
        shared = shared and names.slot(names.form(other, name)) == names.slot(name)
      end

      assert.equal(shared, names.check(name) or false, name)
    end
  end)
end)

describe('names.slot', function()
  it('is the CRC16 of the Redis Cluster specification', function()
    assert.equal(0x31C3, names.slot('123456789'))
    assert.equal(12182, names.slot('foo'))
    assert.equal(2244, names.slot('@'))
    assert.equal(0, names.slot(''))
  end)

  it('counts the hash tag alone, if there is one', function()
    assert.equal(names.slot('user1000'), names.slot('{user1000}.following'))
    assert.equal(names.slot('bar'), names.slot('foo{bar}{zap}'))
    assert.equal(names.slot('{bar'), names.slot('foo{{bar}}zap'))
    assert.not_equal(names.slot(''), names.slot('foo{}{bar}'))
  end)
end)

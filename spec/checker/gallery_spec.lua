-- SPDX-License-Identifier: Apache-2.0
-- The pages of the gallery: that the checker writes them, and how Chromium shows them. A script at
-- the end of a copy measures what was drawn and writes it into the page; what the browser complains
-- of stands in its log.
local cjson = require('cjson')
local path = require('pl.path')
local utils = require('pl.utils')

local GALLERY = 'docs/explanation/gallery'

local MEASURE = [[
<pre id="measured"></pre><script>
const svg = document.querySelector('svg'), box = svg.getBoundingClientRect();
const texts = [...svg.querySelectorAll('text')];
const out = texts.filter(t => { const b = t.getBoundingClientRect();
  return b.left < box.left - 1 || b.bottom > box.bottom + 1; });
const shown = id => { const e = document.getElementById(id); return e ? e.innerText : null; };
const mark = document.getElementById('blame');
document.getElementById('measured').textContent = JSON.stringify({
  width: box.width, height: box.height, arrows: svg.querySelectorAll('line[marker-end]').length,
  texts: texts.map(t => t.textContent).filter(t => t), outside: out.map(t => t.textContent),
  verdict: shown('verdict'), replay: shown('replay'),
  blame: mark && mark.getBoundingClientRect().height > 0 ? mark.innerText : null,
  colour: mark && getComputedStyle(mark).backgroundColor,
  keys: document.querySelectorAll('td').length });
</script></body></html>
]]

local PAGES = {
  ['release-of-anothers-lock'] = { verdict = 'G4 violated', clients = 'AB', only = 'G4',
    calls = 'lock/release', blames = true },
  ['lost-wake-up'] = { verdict = 'G6 violated', clients = 'AB', only = 'G6', calls = 'lock/release',
    blames = true },
  ['fail-over'] = { verdict = 'G2 violated', clients = 'AB', only = 'G2', calls = 'lock/acquire' },
  fencing = { verdict = 'No promise is broken', clients = 'AB', only = 'G3',
    calls = 'fence/admit' },
  ['double-count'] = { verdict = 'G5 violated', clients = 'A', only = 'G5', calls = 'lock/acquire',
    blames = true },
  ['dead-head'] = { verdict = 'G6 violated', clients = 'ABC', only = 'G6,G7',
    calls = 'fair/acquire' },
}

-- What the page measured of itself, and the lines that the browser's console has.
local function open_in(program, html)
  local folder = path.tmpname()
  os.remove(folder)
  assert(path.mkdir(folder))
  utils.writefile(folder .. '/page.html', html)
  local _, _, dom, log = utils.executeex(('timeout 60 %s --headless --no-sandbox --disable-gpu '
    .. '--user-data-dir=%s/profile --enable-logging=stderr --dump-dom file://%s/page.html')
    :format(program, folder, folder))
  utils.execute('rm -rf -- ' .. folder)
  local errors = {}
  for line in log:gmatch('[^\n]+') do
    errors[#errors + 1] = line:match('CONSOLE.*')
  end
  local text = dom:match('<pre id="measured">(.-)</pre>') or error('no page came of it: ' .. log)
  local plain = text:gsub('&lt;', '<'):gsub('&gt;', '>'):gsub('&amp;', '&')
  return cjson.decode(plain), errors
end

describe('the gallery', function()
  it('has the pages that the checker writes of the scripts as they are', function()
    local folder = path.tmpname()
    os.remove(folder)
    local good, _, _, why = utils.executeex('luajit tools/gallery.lua ' .. folder)
    assert.is_true(good, why)

    for name in pairs(PAGES) do
      local fresh = utils.readfile(('%s/%s.html'):format(folder, name))
      assert.is_true(fresh == utils.readfile(('%s/%s.html'):format(GALLERY, name)),
        name .. ' is out of date; luajit tools/gallery.lua')
    end

    utils.execute('rm -rf -- ' .. folder)
  end)
end)

-- A browser is large: `tools/test --full` runs these with one.
local program = os.getenv('LATCHKEY_BROWSER')
if not program then
  return
end

describe('in a browser', function()
  it('a page that fails is noticed', function()
    local html = utils.readfile(GALLERY .. '/fencing.html'):gsub('</body>.*', '')

    local _, errors = open_in(program, html .. '<script>nothing.here()</script>' .. MEASURE)

    assert.equal(1, #errors)
    assert.matches('nothing is not defined', errors[1])
  end)

  for name, claims in require('pl.tablex').sort(PAGES) do
    it(name .. ' shows what it claims', function()
      local html = utils.readfile(('%s/%s.html'):format(GALLERY, name)):gsub('</body>.*', '')

      local seen, errors = open_in(program, html .. MEASURE)

      assert.same({}, errors)
      assert.is_true(seen.width > 300 and seen.height > 150)
      assert.same({}, seen.outside)
      assert.matches('^' .. claims.verdict, seen.verdict)
      local drawn = table.concat(seen.texts, '\n')
      local clients = {}
      for letter in drawn:gmatch('client (%u)\n') do
        clients[#clients + 1] = letter
      end
      assert.equal(claims.clients, table.concat(clients))
      assert.matches('\nserver\n', drawn)
      assert.is_truthy(drawn:find(claims.calls, 1, true))
      assert.is_true(seen.arrows >= 2 and seen.keys >= 4)
      assert.is_truthy(seen.replay:find('--only ' .. claims.only .. " --replay 'A:", 1, true))
      if claims.blames then
        assert.equal('string', type(seen.blame))
        assert.equal('rgb(255, 217, 212)', seen.colour)
      end
    end)
  end
end)

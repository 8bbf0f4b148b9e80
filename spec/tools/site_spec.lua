-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local check = require('lib.site.check')
local headers = require('lib.site.headers')
local search = require('lib.site.search')
local states = require('lib.site.states')
local tree = require('lib.site.tree')

local folder

local function write(name, text)
  local file = path.join(folder, name)
  assert(dir.makepath(path.dirname(file)))
  assert(utils.writefile(file, text))
end

before_each(function()
  folder = os.tmpname()
  os.remove(folder)
  assert(dir.makepath(folder))
end)

after_each(function()
  utils.execute(("rm -rf -- '%s'"):format(folder))
end)

describe('tools/site', function()
  it('removes no folder that is no site', function()
    write('html/kept', 'x')
    write('build/manual/commands/ls.md', '')

    local _, code, _, said = utils.executeex(
      ('tools/site --build %s/build --output %s/html'):format(folder, folder))

    assert.equal(64, code, said)
    assert.matches('is there and is no site', said)
    assert.equal('x', utils.readfile(folder .. '/html/kept'))
  end)
end)

describe('the check of a site', function()
  it('takes links to files and anchors that are there, and to elsewhere', function()
    write('a.html', '<h2 id="one">x</h2><a href="b/c.html#two">x</a><a href="#one">x</a>'
      .. '<a href="https://example.org/">x</a><img src="data:image/png;base64,x">')
    write('b/c.html', '<h2 class="x" id="two">x</h2><a href="..">x</a><a href="../a.html">x</a>')
    write('index.html', '')

    assert.same({}, check.site(folder))
  end)

  it('finds dead links, dead anchors, and what is loaded from elsewhere', function()
    write('a.html', '<a class="x" href="gone.html">x</a><a href="#gone">x</a>'
      .. '<script async src="https://example.org/x.js"></script>'
      .. '<link rel="stylesheet" href="//example.org/x.css">')
    write('x.css', '@font-face { src: url("https://example.org/font") }')

    assert.same({
      'a.html: loads https://example.org/x.js',
      'a.html: loads //example.org/x.css',
      'a.html: leads to gone.html, which is not there',
      'a.html: leads to #gone, an anchor that is not there',
      'x.css: loads https://example.org/font',
    }, check.site(folder))
  end)
end)

describe('the check of the search', function()
  local PAGE = '# Questions\n\n### Who has `x`?\n\nHe.\n\n### Why not?\n\nSo.\n'

  it('finds each question by all its words, and says which it does not', function()
    write('search/search_index.json', [[{"docs": [
      {"location": "howto/q/#a", "title": "Who has <code>x</code>?", "text": ""},
      {"location": "howto/q/", "title": "Why not", "text": ""},
      {"location": "other/#b", "title": "Why not?", "text": ""}]}]])

    assert.same({ 'Who has `x`?', 'Why not?' }, search.questions(PAGE))
    assert.same({ 'the search does not lead to howto/q by its words: Why not?' },
      search.check(folder, 'howto/q', search.questions(PAGE)))
  end)

  it('says that there is no index', function()
    assert.same({ 'search/search_index.json is not there' }, search.check(folder, 'q', {}))
  end)
end)

describe('the page of a header', function()
  local HEADER = [[
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * what it is for
 *
 * Units       milliseconds,
 *             all of them.
 *
 *   | object | used by   |
 *   |--------|-----------|
 *   | lk_a   | any       |
 *   |        | thread    |
 */
extern "C" {

#define LK_MOST 3 /**< the most */

/* ---------------------------------------------------------------------------------- things -- */

/** A thing. */
typedef struct lk_a {
  int size; /**< its size; in bytes */
} lk_a;

/**
 * Take a thing, or LK_NONE.
 *
 * @param count  how many,
 *               1 to LK_MOST
 * @param a      of me@home
 * @return LK_OK; lk_a_free() again
 * @after-io nothing is left
 * @since 0.1.0
 */
LK_API int lk_a_take(lk_a *a,
                     int count);
}
]]

  it('has what its comments say', function()
    local page = headers.page('a.h', HEADER)

    for _, part in ipairs({
      '# a.h\n', '**Units.** milliseconds, all of them.', '| `lk_a` | any thread |',
      '| `LK_MOST` | `3` | the most |', '## Things\n', '### `lk_a`\n\nA thing.\n',
      '  int size; /**< its size; in bytes */\n',
      '### `lk_a_take`\n\nTake a thing, or `LK_NONE`.\n',
      '```c\nint lk_a_take(lk_a *a,\n                     int count);\n```',
      '| `count` | how many, 1 to `LK_MOST` |', '| `a` | of me@home |',
      '| **Returns** | `LK_OK`; `lk_a_free()` again |',
      '| **If the reply was lost** | nothing is left |', '| **Since** | 0.1.0 |',
    }) do
      assert.truthy(page:find(part, 1, true), part .. '\nin\n' .. page)
    end
  end)
end)

describe('a diagram of states', function()
  it('has one arrow for all that leads from one state to another', function()
    local dot = states.dot({
      { family = 'lock', from = 'free', by = 'lock/acquire', reply = '{1}', to = 'held' },
      { family = 'lock', from = 'held', by = 'rw/break', reply = '{1}', to = 'free' },
      { family = 'lock', from = 'held', by = 'lease ends', reply = '-', to = 'free' },
    })

    assert.truthy(dot:find('"free" -> "held" [label=" acquire "];', 1, true))
    assert.truthy(dot:find('"held" -> "free" [label=" rw/break \\n (lease ends) "];', 1, true))
  end)
end)

describe('the pages of the site', function()
  local function pages_of(text)
    write('docs/index.md', '# x\n[b](howto/b.md)\n')
    write('docs/reference/states.tsv', 'family\tfrom\tby\treply\tto\n')
    write('docs/howto/a.md', text)
    write('docs/howto/b.md', '# b\n')
    write('c/include/latchkey/a.h', '\n/*\n * a header\n */\nextern "C" {\n}\n')
    write('code/x.lua', 'return 1\n')
    write('code/read.md', '# read\n[a page](../docs/howto/a.md)\n')
    write('commands/exec.md', '# latchkey exec\n')
    return tree.pages(folder, {}, path.join(folder, 'commands'))
  end

  it('have a page for each file that a page leads to', function()
    local pages = pages_of('[x](../../code/x.lua#L1), [read](../../code/read.md), [b](b.md#c)')

    assert.equal('[x](../source/code/x.lua.md#L1), [read](../source/code/read.md), [b](b.md#c)',
      pages['howto/a.md'])
    assert.equal('# code/x.lua\n\n````lua\nreturn 1\n````\n', pages['source/code/x.lua.md'])
    assert.equal('# read\n[a page](../../howto/a.md)', pages['source/code/read.md'])
  end)

  it('list a folder, and lead from a header to its reference', function()
    local pages = pages_of('[code](../../code), [h](../../c/include/latchkey/a.h)')

    assert.equal('[code](../source/code/index.md), [h](../reference/c/a.h.md)',
      pages['howto/a.md'])
    assert.truthy(pages['source/code/index.md']:find('- [x.lua](x.lua.md)', 1, true))
    assert.is_string(pages['source/code/x.lua.md'])
    assert.is_string(pages['reference/c/a.h.md'])
  end)

  it('leave what stands in fences, but for the name of a file', function()
    local pages = pages_of('```lua a/b.lua\nx = t[1](y)\n```\n\n```sh\n[a](b)\n```')

    assert.equal('```lua title="a/b.lua"\nx = t[1](y)\n```\n\n```sh\n[a](b)\n```',
      pages['howto/a.md'])
  end)

  it('show the states of a family before its scripts', function()
    pages_of('# a\n')
    write('docs/reference/states.tsv', 'family\tfrom\tby\treply\tto\n'
      .. 'lock\tfree\tlock/acquire\t{1, hold}\theld\n')
    write('docs/reference/lock.md', '# lock\n\n## On the wire\n\n### Scripts\n\n| script |\n')
    assert(dir.makepath(path.join(folder, 'scripts/lock')))
    local page = tree.pages(folder, {}, path.join(folder, 'commands'))['reference/lock.md']

    assert.matches('\n### States\n\n<.*svg.*\n### Scripts\n', page)
  end)

  it('stand in the order of the front page, then by name', function()
    local nav = tree.nav(pages_of('# a\n'))

    assert.truthy(nav:find('  - How-to:\n      - howto/b.md\n      - howto/a.md\n', 1, true), nav)
    assert.truthy(nav:find('- Commands:\n          - reference/commands/exec.md\n', 1, true), nav)
  end)

  it('have those of contributors apart', function()
    local pages = pages_of('# a\n')
    pages['explanation/a.md'], pages['explanation/b.md'] = '# a\n', '# b\n'
    pages['index.md'] = pages['index.md'] .. '\n## How it is built\n[b](explanation/b.md)\n'

    local nav = tree.nav(pages)

    assert.truthy(nav:find('- Explanation:\n      - explanation/a.md\n'
      .. '      - Internals:\n          - explanation/b.md\n', 1, true), nav)
  end)
end)

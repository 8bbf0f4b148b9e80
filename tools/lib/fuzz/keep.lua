-- SPDX-License-Identifier: Apache-2.0
-- Writes the kept bundle again, and what is made of it (manifest, evidence, envelope), from the
-- scripts that are in it: after a change of their form. luajit tools/lib/fuzz/keep.lua
local root = arg[0]:match('^(.*)tools/lib/fuzz/keep%.lua$')
package.path = ('%stools/?.lua;%stools/?/init.lua;%s'):format(root, root, package.path)

local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local bundle = require('latchkey.bundle')
local catalog = require('latchkey.script.catalog')
local envelope = require('latchkey.bundle.envelope')
local evidence = require('latchkey.bundle.evidence')
local gzip = require('latchkey.bundle.gzip')
local tar = require('latchkey.bundle.tar')

local CORPUS = root .. 'c/tests/fuzz/corpus/'
local PARTS = {
  { name = 'lint', command = 'latchkey lint', exact = true, minutes = 1, says = '0 findings',
    figures = { findings = 0 } },
  { name = 'check lock', command = 'latchkey check lock', exact = true, minutes = 1,
    says = 'exhaustive', bounds = 'clients=2 faults=1', figures = { runs = 2, states = 10 } },
  { name = 'faults', command = 'tools/faults', exact = false, minutes = 20, says = 'nothing' },
}

local function write(file, bytes)
  assert(utils.writefile(CORPUS .. file, bytes, true))
end

local _, files = tar.unpack(assert(gzip.unpack(utils.readfile(CORPUS .. 'bundle/small', true))),
  { files = 100, bytes = 1048576 })
local folder = path.tmpname()
os.remove(folder)
for name, content in pairs(files) do
  local file = path.join(folder, name)
  dir.makepath(path.dirname(file))
  utils.writefile(file, content, true)
end

local statement = evidence.write({ version = '0.1.0', commit = 'c0ffee',
  date = '2026-11-22T00:00:00Z' }, assert(catalog.read(folder .. '/scripts')), PARTS,
  { 'not made: mutants' })
local packed = assert(bundle.pack({ name = 'small', version = '1.0.0' }, folder .. '/scripts',
  'Free.\n', statement))
write('bundle/small', packed.bytes)
write('manifest/small', packed.files['manifest.json'])
write('evidence/small', statement)

local key = utils.quote_arg(folder .. '/key')
assert(utils.executeex("ssh-keygen -q -t ecdsa -b 256 -m PKCS8 -N '' -f " .. key))
assert(utils.executeex(('openssl pkey -in %s -pubout -out %s'):format(key,
  utils.quote_arg(root .. 'c/tests/fuzz/envelope.pem'))))
local sealed = assert(envelope.sign(statement, folder .. '/key'))
write('evidence/signed', sealed)
write('envelope/small', sealed)
dir.rmtree(folder)

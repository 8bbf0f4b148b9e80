-- SPDX-License-Identifier: Apache-2.0
-- liblatchkey as FFI has it: `lib`, loaded once, and its declarations.
local ffi = require('ffi')

local library = {}

local FILE = os.getenv('LATCHKEY_LIB')

---The C declarations in use. They stand beside the library in a build, and among the tools when
---installed.
---@return string
function library.declarations()
  local built = FILE and loadfile(FILE:gsub('[^/]*$', '') .. 'generated/latchkey_cdef.lua')
  if built then
    return built()
  end
  local is_installed, declarations = pcall(require, 'latchkey.generated.latchkey_cdef')
  return is_installed and declarations or require('generated.latchkey_cdef')
end

-- The file of the system that programs are linked with. Its name without a number comes with the
-- headers, which who only uses the binding need not have, and may be of another binary interface.
local function soname()
  local is_installed, name = pcall(require, 'latchkey.generated.soname')
  return is_installed and name or require('generated.soname')
end

-- LATCHKEY_LIB, or what the running program is linked with, or the system's.
local function load_library()
  if not pcall(ffi.typeof, 'lk_client') then
    ffi.cdef(library.declarations())
  end
  if FILE then
    return ffi.load(FILE)
  elseif pcall(function() return ffi.C.lk_version end) then
    return ffi.C
  end
  return ffi.load(soname())
end

-- Finalizers call into the library, so it must not be collected in the same cycle as a handle.
local registry = debug.getregistry()
registry['latchkey.library'] = registry['latchkey.library'] or load_library()
library.lib = registry['latchkey.library']

return library

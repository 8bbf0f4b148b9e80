-- SPDX-License-Identifier: Apache-2.0
-- The floors of the library, lowest first: a module uses its own floor and those before it, and
-- nothing in a circle. tools/floors proves it from the object files, in the section `lint`.
return {
  floors = { 'base', 'os', 'net', 'harness', 'locks' },

  -- Which of them alone uses the operating system. What it says, it says in words of `base`.
  system_floor = 'os',

  -- Of the C library, what neither waits nor asks the operating system. Patterns of Lua.
  pure = { 'calloc', 'malloc', 'realloc', 'free', 'mem%l+', '__mem%l+_chk', 'str%l+', 'inet_pton',
    '__isoc99_sscanf', 'v?sn?printf', '__v?sn?printf_chk', 'qsort', 'bsearch', 'tsearch', 'tfind',
    'tdelete', 'twalk', 'abort', '__tls_get_addr', '__stack_chk_fail',
    '_GLOBAL_OFFSET_TABLE_', '__explicit_bzero_chk', 'explicit_bzero' },

  -- What nobody uses, and why.
  refused = {
    pipe = 'a program that another thread starts meanwhile inherits it; pipe2 closes it then',
    getenv = 'a program with more rights than its user would obey the user; secure_getenv does not',
  },

  -- What no source names but in one folder: a pattern, and that folder.
  words = { ['%f[%w_]pthread_%w+'] = 'c/src/os/' },

  -- What else a floor or a module is for.
  libraries = {
    net = { 'redis%u%w+', 'freeReplyObject' },
    harness = { 'freeReplyObject' },
    locks = { 'freeReplyObject' },
    ['base/sha1'] = { 'EVP_%w+', 'OPENSSL_init_crypto' },
  },
}

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
    'tdelete', 'twalk', 'abort', '__errno_location', '__tls_get_addr', '__stack_chk_fail',
    '_GLOBAL_OFFSET_TABLE_', '__explicit_bzero_chk', 'explicit_bzero' },

  -- What nobody uses, and why.
  refused = {
    pipe = 'a program that another thread starts meanwhile inherits it; pipe2 closes it then',
    getenv = 'a program with more rights than its user would obey the user; secure_getenv does not',
  },

  -- What else a floor or a module is for.
  libraries = {
    net = { 'redis%u%w+', 'freeReplyObject' },
    harness = { 'freeReplyObject' },
    locks = { 'freeReplyObject' },
    ['base/sha1'] = { 'EVP_%w+' },
  },

  -- Arrows that still point upward or close a circle. This list only shrinks.
  arrows = {
    'locks/attempt -> locks/waiters',
    'locks/handle -> locks/holds',
    'locks/handle -> locks/kinds',
  },

  -- What modules of other floors still use of the operating system. This list only shrinks.
  system = {
    ['harness/caller'] = { 'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock',
      'pthread_mutex_unlock' },
    ['harness/catalog'] = { 'closedir', 'fclose', 'fileno', 'fopen64', 'fread', 'fstat64',
      'opendir', 'readdir64', 'stat64' },
    ['harness/client'] = { 'pthread_cond_broadcast', 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['harness/eval_start'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['harness/line'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['harness/steps'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['locks/counting'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['harness/load'] = { 'pthread_cond_destroy', 'pthread_cond_init', 'pthread_cond_signal',
      'pthread_cond_wait', 'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock',
      'pthread_mutex_unlock' },
    ['harness/op'] = { 'pthread_cond_destroy', 'pthread_cond_signal', 'pthread_cond_wait',
      'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['harness/open'] = { 'pthread_cond_broadcast', 'pthread_cond_destroy', 'pthread_cond_wait',
      'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock',
      'pthread_mutex_unlock' },
    ['harness/peek'] = { 'pthread_cond_destroy', 'pthread_cond_init', 'pthread_cond_signal',
      'pthread_cond_wait', 'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock',
      'pthread_mutex_unlock' },
    ['harness/seq'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['harness/stats'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['net/trace'] = { 'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock',
      'pthread_mutex_unlock' },
    ['harness/trouble'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['harness/undo'] = { 'pthread_cond_broadcast', 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['harness/watch'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['locks/attempt'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock', 'pthread_self' },
    ['locks/fair'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['locks/grant'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['locks/handle'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['locks/holds'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['locks/lock'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['locks/multilock'] = { 'pthread_cond_destroy', 'pthread_cond_signal',
      'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock',
      'pthread_mutex_unlock' },
    ['locks/plain'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['locks/release'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['locks/rivals'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['locks/waiters'] = { 'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['net/channels'] = { 'pthread_cond_broadcast', 'pthread_cond_destroy',
      'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock',
      'pthread_mutex_unlock' },
    ['net/conn'] = { 'close', 'connect', 'fcntl64', 'freeaddrinfo', 'gai_strerror', 'getsockopt',
      'recv', 'send', 'setsockopt', 'shutdown', 'socket' },
    ['net/events'] = { 'pthread_cond_broadcast', 'pthread_cond_destroy', 'pthread_cond_init',
      'pthread_cond_wait', 'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock',
      'pthread_mutex_unlock', 'pthread_self' },
    ['net/keeper'] = { 'poll', 'pthread_cond_broadcast', 'pthread_cond_destroy',
      'pthread_cond_init', 'pthread_cond_wait', 'pthread_join', 'pthread_mutex_destroy',
      'pthread_mutex_init', 'pthread_mutex_lock', 'pthread_mutex_unlock', 'pthread_self' },
    ['net/pipe'] = { 'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock' },
    ['net/pipe_drive'] = { 'poll', 'pthread_mutex_lock', 'pthread_mutex_unlock', 'sched_yield' },
    ['net/route'] = { 'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock',
      'pthread_mutex_unlock' },
    ['net/topology_cluster'] = { 'pthread_mutex_destroy', 'pthread_mutex_init',
      'pthread_mutex_lock', 'pthread_mutex_unlock' },
    ['net/topology_sentinel'] = { 'pthread_cond_broadcast', 'pthread_cond_destroy',
      'pthread_mutex_destroy', 'pthread_mutex_init', 'pthread_mutex_lock',
      'pthread_mutex_unlock' },
  },
}

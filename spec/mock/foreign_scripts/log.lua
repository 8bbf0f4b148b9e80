local id = redis.call('XADD', KEYS[1], 'MAXLEN', '=', 2, '*', 'text', ARGV[1])
redis.call('HSET', KEYS[2], 'last', id, 'n', redis.call('XLEN', KEYS[1]))
return redis.call('HGETALL', KEYS[2])

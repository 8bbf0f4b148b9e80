-- The scripts run in the server's sandbox; its globals are read-only there too.
stds.redis = {
  read_globals = {
    'KEYS', 'ARGV', 'cjson', 'cmsgpack', 'struct', 'bit',
    redis = { fields = { 'acl_check_cmd', 'call', 'pcall', 'error_reply', 'status_reply' } },
  },
}

std = 'luajit'
max_line_length = 100
max_cyclomatic_complexity = 20
exclude_files = { 'spec/tools/fixtures', 'build' }

-- A script is one chunk, and the check of each argument counts.
files['scripts'] = { std = 'lua51+redis', max_cyclomatic_complexity = 40 }
files['tools/bench/plain'] = { std = 'lua51+redis' }
files['scripts/_fragments'] = { std = 'lua51+redis', ignore = { '211' } } -- used where copied
files['spec'] = { std = 'luajit+busted' }
files['spec/mock/foreign_scripts'] = { std = 'lua51+redis' }
-- A model file sees its words alone; beside them stand the kinds of clients.
files['tools/latchkey/checker/models'] = { read_globals = { 'model' } }

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of tools/platforms
# What README.md and docs/howto/install.md tell a new user to do; for tools/platforms. Each command is taken from
# the page.

# block FILE INFO N: the lines of its Nth block that begins with ```INFO.
block() {
  awk -v info="\`\`\`$2" -v wanted="$3" '
    $0 == info && !on { on = ++n == wanted ? 2 : 1; next } /^```$/ { on = 0 } on == 2' "$1"
}
# The commands of README to see it and to test it, without what explains them.
tried() { awk '/^```$/ { on = !on; next } on && /^tools\// { sub(/ *#.*/, ""); print }' README.md; }

# as_user COMMAND...: in the clone.
as_user() { run_in "$system" "$suite" "$user" "$clone" "$@"; }
as_root() { run_in "$system" "$suite" root "$clone" "$@"; }

# told COMMAND...: runs it, and where it asks for one line to be run with sudo, that first.
told() {
  local line
  as_user "$@" 2>&1 | tee "$home/told"
  [ "${PIPESTATUS[0]}" -eq 0 ] && return
  line=$(sed -n "s/^setup: run this first: sudo sh -c '\(.*\)'\$/\1/p" "$home/told")
  [ -n "$line" ] || return
  as_root sh -euc "$line" && as_user "$@"
}

install_from_sources() {
  local line
  while IFS= read -r line; do
    echo "+ $line"
    case $line in
    'cmake --install'* | ldconfig*) as_root bash -euc "$line" || return ;;
    tools/setup*) told bash -euc "$line" || return ;;
    *) as_user bash -euc "$line" || return ;;
    esac
  done < <(block docs/howto/install.md build 2)
}

# The first lock of README, by the program and from C.
first_lock() {
  local cc
  # shellcheck disable=SC2016 # a command of the page
  cc=$(grep -o '`cc orders.c [^`]*`' README.md | tr -d '`')
  [ -n "$cc" ] || return
  block README.md 'c orders.c' 1 | as_root_writes "$system/tmp/orders.c"
  as_user bash -euc "$(block README.md sh 1)" &&
    as_user bash -euc "cd /tmp; $cc; LATCHKEY_LOCAL_DIR=/tmp/orders ./a.out; latchkey local stop; echo 'the lock is taken and released'"
}
as_root_writes() { cat >"$1" && [ -s "$1" ]; }

# A second clone has what it needs, and no network.
second_clone() {
  local offline=yes
  export offline
  as_user git clone -q . ../second || return
  run_in "$system" "$suite" "$user" "${clone%/*}/second" bash -euc \
    'tools/setup run && cmake --preset release && cmake --build --preset release && tools/test --no-setup --only unit --only demo'
}

prepare() {
  copy_base "$suite" "$system" || return
  if [ "$user" != root ]; then run_in "$system" "$suite" root / useradd --create-home --uid 1000 --shell /bin/bash "$user"; fi
  cp "$sources" "$system/tmp/latchkey.bundle"
  run_in "$system" "$suite" "$user" / mkdir -p "${clone%/*}" &&
    run_in "$system" "$suite" "$user" / git clone -q /tmp/latchkey.bundle "$clone" &&
    echo "in \`${clone}\`"
}

# as_new_user PLATFORM SUITE USER CLONE
as_new_user() {
  local platform=$1 suite=$2 user=$3 clone=$4 system=$home/root-$1 command
  step "$platform" 'a clone' prepare || return
  while IFS= read -r command; do
    if [ -n "$quick" ] && [ "$command" = tools/test ]; then continue; fi
    step "$platform" "\`$command\`" told bash -c "$command"
  done < <(tried)
  step "$platform" 'installation' install_from_sources
  step "$platform" 'the first lock' first_lock
  step "$platform" 'a second clone, no network' second_clone
}

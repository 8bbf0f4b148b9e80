# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The sections of tools/test, one function each; sections.tsv says what they are for.

if [ -n "$LK_FULL" ]; then torture_s=120 traced_steps=200000; else torture_s=10 traced_steps=100000; fi

section_build() { check 'gcc, release' tools/lib/build.sh ci "$LK_BUILD"; }

sections_are_listed() { ! list_sections | grep -vxFf CONTRIBUTING.md; }

# Each deliberately wrong version is looked for by the torture or by the simulator; only the latter knows those
# that are its own.
sabotages_are_found() {
  ! grep -LE '^Found by: (torture|torture alone|simulation|simulation alone)$' c/tests/torture/sabotages/*.patch | grep . &&
    ! grep -LE '^Found by: simulation alone(, at length)?$' c/tests/sim/sabotages/*.patch | grep .
}

# A patch that no longer fits would be found by the section sabotage, minutes later.
sabotages_fit() {
  local patch path
  for patch in c/tests/torture/sabotages/*.patch c/tests/sim/sabotages/*.patch; do
    path=$(sed -n 's/^+++ b\///p' "$patch")
    patch --dry-run --quiet --fuzz=0 --output=/dev/null "$path" "$patch" || echo "$patch" 1>&2
  done 2>&1 | awk '{ print > "/dev/stderr" } END { exit NR > 0 }'
}

# The preset `dev` has what abidiff reads: debug information. The library alone is built, in some ten seconds of a
# processor where nothing of it is there.
interface_is_kept() { tools/lib/build.sh dev build/dev latchkey_shared && tools/abi build/dev; }

section_lint() {
  local files
  check 'latchkey lint' "$LK_BUILD/latchkey" lint
  have luacheck 'luacheck' && check 'luacheck' luacheck -q tools tools/cmutants tools/luamutants tools/release tools/fidelity tools/floors tools/site tools/words spec scripts c/src
  check 'floors of c/src' tools/floors "$LK_BUILD"
  check 'words' tools/words --strict
  mapfile -t files < <(find c -name '*.[ch]')
  have clang-format 'clang-format' &&
    check 'clang-format' clang-format --dry-run -Werror "${files[@]}"
  mapfile -t files < <(grep -rlE '^#!/(bin/sh|usr/bin/env bash)|shellcheck shell=' tools c .ci)
  check 'CONTRIBUTING lists the sections' sections_are_listed
  check 'each sabotage is looked for' sabotages_are_found
  have patch 'sabotages fit' && check 'sabotages fit' sabotages_fit
  have shellcheck 'shellcheck' && check 'shellcheck' shellcheck -x "${files[@]}"
  have abidiff 'the binary interface' && check 'the binary interface' interface_is_kept
}

# specs RUN BUILD: a run of .busted with the library and the program of a build.
specs() {
  have busted "specs ($1)" && tap "specs ($1)" env LATCHKEY_LIB="$2/liblatchkey.so" \
    LATCHKEY_PROGRAM="$2/latchkey" tools/lib/test/with_terminals.sh busted --run="$1" -v -o TAP
}

# live_specs BUILD [RUNTIME [FOLDER...]]: the run `live` beside a server, or these folders of it; RUNTIME is
# loaded into LuaJIT alone.
live_specs() {
  have busted 'specs (live)' &&
    tap 'specs (live)' tools/lib/test/with_server.sh env LATCHKEY_LIB="$1/liblatchkey.so" \
      ${2+LD_PRELOAD="$2"} luajit "$(command -v busted)" --ignore-lua --run=live -v -o TAP "${@:3}"
}

section_specs() {
  specs beside "$LK_BUILD"
  if [ -n "$LK_FULL" ] && have chromium 'gallery'; then
    tap 'gallery' env LATCHKEY_BROWSER=chromium busted -o TAP spec/checker/gallery_spec.lua
  fi
}
section_specs_puc() { have lua5.1 'specs (puc)' && specs "puc${LK_FULL:+-whole}" "$LK_BUILD"; }
# The scenarios of tools/interop, with processes of latchkey on both sides.
section_specs_live() {
  live_specs "$LK_BUILD"
  have busted 'specs (processes)' &&
    tap 'specs (processes)' tools/lib/test/with_server.sh env LATCHKEY_LIB="$LK_BUILD/liblatchkey.so" \
      LATCHKEY_PROGRAM="$LK_BUILD/latchkey" luajit "$(command -v busted)" --ignore-lua --run=live \
      --pattern='%.lua$' -o TAP spec/interop/beside
}

# acl_specs OPTION...: the scripts' specs. A channel of 1 or 1024 bytes is of no lock, so such a user
# may not tell it.
acl_specs() {
  local folders
  mapfile -t folders < <(ls -d scripts/[a-z]*/)
  folders=("${folders[@]/#scripts/spec}")
  tools/lib/test/with_server.sh env LATCHKEY_LIB="$LK_BUILD/liblatchkey.so" \
    luajit "$(command -v busted)" --ignore-lua --run=live --helper=spec/cli/as_user.lua \
    --filter-out='takes as channels? the .+est' -o TAP "$@" spec/contract_spec.lua "${folders[@]}"
}
# A cluster's node is made a replica in another way than those specs do it. Its second port is the next one: both are
# below those that other specs and tests choose, and that systems give to connections.
section_specs_acl() {
  have busted 'specs (acl)' || return
  tap 'specs (acl)' acl_specs
  LK_SERVER_CLUSTER=1 LK_SERVER_PORT=$((10000 + 2 * ($$ % 1000))) \
    tap 'specs (acl, cluster)' acl_specs --filter-out='read%-only replica'
}
# Two specs are about scripts as the server keeps them, which functions are not.
section_specs_functions() {
  have busted 'specs (functions)' &&
    LK_SERVER_QUERY='?functions=1' tap 'specs (functions)' tools/lib/test/with_server.sh \
      env LATCHKEY_LIB="$LK_BUILD/liblatchkey.so" luajit "$(command -v busted)" --ignore-lua \
      --run=live --filter-out='forgotten them' --filter-out='loaded anew by load' -o TAP
}
section_fidelity() {
  have redis-server 'fidelity' &&
    check 'fidelity' tools/fidelity ${LK_FULL:+--seconds 400 --seed 10001}
}
section_mutants() {
  have busted 'mutants' || return
  if [ -n "$LK_FULL" ]; then
    check 'all mutants' "$LK_BUILD/latchkey" mutate
    return
  fi
  check '30 mutants of all' "$LK_BUILD/latchkey" mutate --sample 30
  if git rev-parse -q --verify HEAD~1 >/dev/null; then
    check '100 mutants of changed scripts' "$LK_BUILD/latchkey" mutate --changed --sample 100
  else
    skip 'mutants of changed scripts' 'there is no commit to compare with'
  fi
}
section_coverage() { specs coverage "$LK_BUILD"; }
section_check() { check 'latchkey check' "$LK_BUILD/latchkey" check --no-spec --workers 2; }

# has_c_tests BUILD TITLE: were they configured? Without cmocka TITLE is skipped; without a build it fails.
has_c_tests() {
  [ -e "$1/CMakeCache.txt" ] ||
    { echo "not ok - $2: nothing is built in $1; tools/test --only build does it" && return 1; }
  grep -q '^CMOCKA_FOUND:INTERNAL=1$' "$1/CMakeCache.txt" ||
    { skip "$2" 'cmocka is not installed' && return 1; }
}

# spread JOBS TITLE COMMAND... -- FILE...: the command with each of the files, which mostly waits, so many at a
# time; it speaks TAP. What they said is told in order.
spread() {
  local jobs=$1 title=$2 said file
  local -a command=()
  shift 2
  while [ "$1" != -- ]; do command+=("$1") && shift; done
  shift
  said=$(mktemp -d "$LK_TEST_DIR/said.XXXXXX")
  # shellcheck disable=SC2016,SC2154 # for the shell inside; of tap.sh
  printf '%s\n' "$@" | tools/lib/test/with_terminals.sh xargs -P "$jobs" -I '{}' sh -c '
      file=$1 said=$2/${1##*/} limit_s=$3
      shift 3
      timeout "$limit_s" "$@" "$file" >"$said.tap" 2>"$said.err"
      echo $? >"$said.code"
      times >"$said.times"' sh '{}' "$said" "$limit_s" "${command[@]}"
  for file; do
    tap "$title/$(basename "${file%.*}")" said_again "$said/${file##*/}"
    echo "$(seconds_in "$said/${file##*/}.times") $title/$(basename "${file%.*}")" >>"$LK_TEST_DIR/$LK_SECTION.parts"
  done
  rm -r "$said"
}
# cmocka calls what was skipped "not ok"; why it was stands in a line before.
said_again() {
  awk '
    sub(/^# does not apply: /, "") { why = $0; next }
    /^not ok [0-9]+ # SKIP / { print "ok " $3 " - " $6 " # SKIP " why; next }
    { print }' "$1.tap"
  cat "$1.err" >&2
  return "$(cat "$1.code")"
}

# c_tests LABEL BUILD [FILE...]: the programs of c/tests/LABEL, or these. Each has servers of its own.
c_tests() {
  local label=$1 build=$2
  local -a programs
  shift 2
  has_c_tests "$build" "$label" || return
  [ $# -gt 0 ] || set -- c/tests/"$label"/test_*.c
  programs=("${@##*/}") && programs=("${programs[@]/#/$build/tests/}")
  spread "${c_jobs:-4}" "$label" env CMOCKA_MESSAGE_OUTPUT=TAP \
    ${LK_FULL:+LK_TEST_FAILOVERS=5 LK_TEST_CONTENTION_S=20} -- "${programs[@]%.c}"
}

# refused BUILD: memory, threads and descriptors that the system does not give.
refused() { LK_TEST_REFUSED=${LK_FULL:+all} c_tests refused "$1"; }

section_unit() {
  c_tests unit "$LK_BUILD"
  c_tests torture "$LK_BUILD"
}
section_live() {
  c_tests live "$LK_BUILD"
  refused "$LK_BUILD"
  [ -z "$LK_FULL" ] || LATCHKEY_TEST_TOPOLOGY=cluster LATCHKEY_TEST_TLS=1 refused "$LK_BUILD"
}

# A seed has one hash in each kind of world: without randomised addresses, in another environment, from another folder.
# Two that have none are not the same.
one_hash() {
  local program want got options
  set -o pipefail
  program=$(realpath "$1")
  for options in '' '--work eval' '--work ask' '--topology sentinel' '--topology cluster' '--busy' '--profile memory' \
    '--crowd' '--forks'; do
    # shellcheck disable=SC2086 # a list of words
    if ! want=$("$program" $options --seeds 1..6 --each | sed -n '/^seed /p' | sort) ||
      ! got=$(cd / && env -i SOME="$(seq 500 | tr -d '\n')" setarch -R "$program" $options --seeds 1..6 --each |
        sed -n '/^seed /p' | sort) || [ "$want" != "$got" ] ||
      [ "$(grep -c ' 0 violations, hash [0-9a-f]*$' <<<"$want")" != 6 ]; then
      printf '%s: not the same:\n%s\n%s\n' "$options" "$want" "${got-}" >&2
      return 1
    fi
  done
}
# found_by HOW FILE...: the patches that say so.
found_by() { grep -lE "^Found by: $1\$" "${@:2}"; }
# Each commit has fresh ones, and the same ones whenever it is tested: a run that fails does so again.
first_fresh_seed() {
  local commit
  commit=$(git rev-parse -q --verify --short=8 HEAD 2>/dev/null) || commit=$(date +%s)
  echo "$((16#${commit:0:8}))0000"
}
# Those that are found within seconds: every second one, which half by the commit's hash; with --full all that the
# simulator finds, as `tools/sim --sabotage all` looks for them.
wrong_versions() {
  local names how='simulation( alone)?' seconds=60 parts=2
  if [ -n "$LK_FULL" ]; then how='simulation.*' seconds=300 parts=1; fi
  mapfile -t names < <(found_by "$how" c/tests/{torture,sim}/sabotages/*.patch | xargs -n 1 basename -s .patch |
    awk -v parts="$parts" -v part="$(($(first_fresh_seed) / 10000 % parts))" 'NR % parts == part')
  echo "1..${#names[@]}"
  cmake --build "$LK_BUILD" --target "${names[@]/#/sim_}" -j 2 1>&2 || return
  # shellcheck disable=SC2016 # for the shell inside
  printf '%s\n' "${names[@]}" | xargs -P 2 -I '{}' sh -c '
      if tools/sim --sabotage "$1" --starts 1 --for "$2" 1>&2; then
        echo "ok - found: $1"
      else
        echo "not ok - missed: $1"
      fi' sh '{}' "$seconds"
}
section_sim() {
  local seeds=200 times=1 seed half topology work
  has_c_tests "$LK_BUILD" 'sim' || return
  if [ -n "$LK_FULL" ]; then seeds=5000 times=2; fi
  check 'the seam' c/tests/sim/seam "$LK_BUILD"
  check "fixed seeds, 1 to $seeds" "$LK_BUILD/tests/sim" --seeds "1..$seeds"
  check 'where memory ends' "$LK_BUILD/tests/sim" --profile memory --seeds "1..$((seeds / 4))"
  check 'waits and watches' "$LK_BUILD/tests/sim" --work wait --seeds "1..$((50 * times))"
  check 'scripts by name' "$LK_BUILD/tests/sim" --work eval --seeds "1..$((30 * times))"
  check 'questions' "$LK_BUILD/tests/sim" --work ask --seeds "1..$((30 * times))"
  check 'on a busy machine' "$LK_BUILD/tests/sim" --busy --seeds "1..$((100 * times))"
  check 'second connections' "$LK_BUILD/tests/sim" --crowd --busy --seeds "1..$((50 * times))"
  for work in lock async; do
    check "children of fork(): $work" "$LK_BUILD/tests/sim" --forks --work "$work" --seeds 1..10
  done
  seed=$(first_fresh_seed)
  half=$((seeds / 2))
  check "$half fresh seeds from $seed" "$LK_BUILD/tests/sim" --seeds "$seed..$((seed + half - 1))"
  seed=$((seed + half))
  check "$half more from $seed, on a busy machine" "$LK_BUILD/tests/sim" --busy --seeds "$seed..$((seed + half - 1))"
  seed=$((seed + half))
  for topology in sentinel cluster; do
    for work in lock async count multi wait eval ask; do
      check "$topology: $work, fresh seeds from $seed" "$LK_BUILD/tests/sim" --topology "$topology" --work "$work" \
        --seeds "$seed..$((seed + 10 * times - 1))"
    done
  done
  check 'one hash for each seed' one_hash "$LK_BUILD/tests/sim"
  tap 'replays' c/tests/sim/replays "$LK_BUILD"
  check 'stories' c/tests/sim/stories "$LK_BUILD"
  check 'what is no task' c/tests/sim/refuses "$LK_BUILD"
  have patch 'wrong versions' && tap 'wrong versions' wrong_versions
}

# live_as TOPOLOGY NAME...: these live tests, with servers as part of that topology.
live_as() {
  local topology=$1
  shift
  LATCHKEY_TEST_TOPOLOGY=$topology c_tests live "$LK_BUILD" "${@/#/c/tests/live/test_}"
}
section_topologies() {
  local names=(locks.c fair.c rw.c permit.c countdown.c wait_watch.c leases.c) c_jobs=7
  live_as sentinel "${names[@]}"
  LATCHKEY_TEST_TLS=1 live_as cluster "${names[@]}"
}

# Live tests whose servers are `latchkey mock`: what they take for Redis, they find in its place.
section_mock() {
  local names=(locks rw countdown semaphore fenced guard eval functions stats connections names)
  local bin=$LK_TEST_DIR/mock-server
  names=("${names[@]/#/c/tests/live/test_}")
  rm -rf "$bin" && mkdir -p "$bin"
  ln -s "$PWD/tools/lib/test/mock_server.sh" "$bin/redis-server"
  LATCHKEY_PROGRAM=$LK_BUILD/latchkey PATH=$bin:$PATH \
    c_tests live "$LK_BUILD" "${names[@]/%/.c}"
}

# shellcheck source=tools/lib/test/matrix.sh
. tools/lib/test/matrix.sh

# cli_specs BUILD [NAME...]: the files of spec/cli, or these, those first that take longest.
cli_specs() {
  local build=$1 keys=200000 # who goes through all of so few is slow, too
  local -a first files
  shift
  have busted 'specs (cli)' || return
  if [ -n "$LK_FULL" ]; then keys=1000000; fi
  if [ $# -eq 0 ]; then
    first=(acl load cluster bundle cluster_acl mock doctor job top exec_trouble)
    mapfile -t files < <(basename -s _spec.lua -a spec/cli/*_spec.lua | grep -vxF "$(printf '%s\n' "${first[@]}")")
    set -- "${first[@]}" "${files[@]}"
  fi
  files=("${@/#/spec/cli/}")
  spread 2 cli env LATCHKEY_SPEC_KEYS="$keys" LATCHKEY_LIB="$build/liblatchkey.so" LATCHKEY_PROGRAM="$build/latchkey" \
    busted --run=cli -v -o TAP -- "${files[@]/%/_spec.lua}"
}
section_cli() { cli_specs "$LK_BUILD"; }

# torture BUILD SECONDS: each kind of lock for so long, and the crowd.
torture() {
  has_c_tests "$1" 'torture' || return
  spread 3 torture tools/lib/test/tortured.sh "$1" "$2" -- lock mutex fenced fair rw crowd
}
section_torture() {
  torture "$LK_BUILD" "$torture_s"
  has_c_tests "$LK_BUILD" 'programs of torture and faults' &&
    tap 'programs of torture and faults' c/tests/torture/programs "$LK_BUILD"
  has_c_tests "$LK_BUILD" 'torture, traced' &&
    check 'torture, traced' tools/lib/test/traced.sh "$LK_BUILD" "$traced_steps"
}

# Old and new scripts at once on one lock: a bundle is rolled out, or back.
section_two_bundles() {
  local newer=$LK_TEST_DIR/newer
  has_c_tests "$LK_BUILD" 'two bundles' || return
  rm -rf "$newer" && mkdir -p "$newer"
  cp -r scripts/[a-z]*/ "$newer"
  sed -i 's/^\(version:  *[0-9]*\)\.[0-9]*\./\1.999./' "$newer"/*/*.lua
  check 'two bundles, scripts' "$LK_BUILD/tests/torture" --seconds 10 \
    --kind lock,mutex,fenced,fair,rw --locks 5 --scripts scripts --scripts "$newer"
  check 'two bundles, functions' "$LK_BUILD/tests/torture" --seconds 10 \
    --kind lock,mutex,fenced,fair,rw --locks 5 --scripts scripts --scripts "$newer" --functions
}

# faults OPTION...: its output is kept, so that what it skipped can be said.
faults() { "$LK_BUILD/tests/faults" "$@" | tee -a "$LK_TEST_DIR/faults.out" 1>&2 && return "${PIPESTATUS[0]}"; }
section_faults() {
  local seconds=40
  has_c_tests "$LK_BUILD" 'faults' || return
  : >"$LK_TEST_DIR/faults.out"
  if [ -n "$LK_FULL" ]; then seconds=1800; fi
  check "faults, $seconds s" faults --seconds "$seconds" --kind lock,mutex,fenced,fair,rw --locks 5
  check 'faults, TLS, 20 s' faults --seconds 20 --tls
  if [ -n "$LK_FULL" ]; then
    for topology in sentinel cluster; do
      check "faults, $topology" faults --topology "$topology" --admit --kind lock,fenced,fair,rw \
        --locks 5 --seconds 120
      check "faults, $topology, TLS" faults --topology "$topology" --tls --seconds 60
    done
  fi
  sed -n 's/^faults: SKIPPED \(.*\): \(.*\)/ok - faults, \1 # SKIP \2/p' "$LK_TEST_DIR/faults.out" |
    sort -u
}

section_sabotage() {
  has_c_tests "$LK_BUILD" 'sabotage' && have patch 'sabotage' &&
    tap 'sabotage' c/tests/torture/sabotage "$LK_BUILD" ${LK_FULL:+all}
}

section_consumer() { tap 'consumer' c/tests/consumer/run.sh "$LK_BUILD"; }

section_docs() {
  specs documents "$LK_BUILD"
  have mkdocs 'site' && have dot 'site' && check 'site' tools/site --build "$LK_BUILD"
}

# By the words of the page on installing, its first block; what is needed is there.
make_packages() {
  rm -f build/packages/packages/*.deb
  awk '/^```build$/ { on = ++n == 1; next } /^```/ { on = 0 } on' docs/howto/install.md |
    sed '/^tools.setup/d' | (umask 077 && sh -eux) && # by a user who is careful
    packages_are_there
}
packages_are_there() { compgen -G 'build/packages/packages/*.deb' >/dev/null; }
section_packages() {
  have debootstrap 'packages' && have dpkg-shlibdeps 'packages' && have file 'packages' || return
  if ! unshare --mount true 2>/dev/null; then
    skip 'packages' 'only root can make a bare system'
    return
  fi
  check 'the packages are made' make_packages
  if packages_are_there; then tap 'packages' c/packaging/test build/packages/packages; fi
}

section_reproducible() {
  have faketime 'reproducible' && have dpkg-shlibdeps 'reproducible' && have file 'reproducible' &&
    tap 'reproducible' tools/lib/test/reproducible.sh
}

section_cost() {
  has_c_tests "$LK_BUILD" 'cost' && have strace 'cost' && have valgrind 'cost' &&
    tap 'cost' c/tests/cost/run.sh "$LK_BUILD"
}

section_analyzers() {
  local analyzer
  have clang-tidy 'analyzers' || return
  for analyzer in gcc clang-tidy; do
    # It may take longer than a program may.
    limit_s=5400 check "$analyzer finds nothing" tools/analyze --only "$analyzer"
    check_fails "$analyzer finds a planted mistake" tools/analyze --only "$analyzer" c/tests/analyzers/planted.c
  done
}

section_branches() {
  has_c_tests "$LK_BUILD" 'branches' && have llvm-cov 'branches' &&
    limit_s=5400 check 'branches of c/src' tools/coverage
}

section_fuzz() {
  local target targets
  have clang 'fuzz' || return
  targets=$(tools/fuzz --list) || { say "not ok - fuzz: the targets cannot be listed (exit code $?)" && return; }
  for target in $targets; do check "fuzz $target" tools/fuzz "$target"; done
}

section_clang() {
  have clang 'clang' || return
  check 'clang' tools/lib/build.sh "clang${LK_FULL:+-optimized}" build/clang
  c_tests unit build/clang
}

# sanitized NAME RUNTIME: unit and live tests, specs of the binding and of exec, torture. What the sanitizers
# report counts whatever became of the process that it is about.
sanitized() {
  local build=build/$1 reports=$LK_TEST_DIR/$1-report
  local -a live=(spec/live) exec=(exec exec_signals exec_keeper exec_lost exec_trouble)
  if [ -n "$LK_FULL" ]; then
    live=()
    mapfile -t exec < <(basename -s _spec.lua -a spec/cli/exec_*_spec.lua)
  fi
  rm -f "$reports".*
  # Blanks, colons and commas stand between options.
  export ASAN_OPTIONS="log_path='$reports'" UBSAN_OPTIONS="log_path='$reports'"
  export TSAN_OPTIONS="log_path='$reports' die_after_fork=0"
  check "build ($1)" tools/lib/build.sh "$1" "$build"
  c_tests unit "$build"
  LK_TEST_FAILOVERS=1 c_tests live "$build"
  refused "$build"
  live_specs "$build" "$(gcc -print-file-name="$2")" "${live[@]}"
  cli_specs "$build" "${exec[@]}"
  torture "$build" 4
  [ "$1" = tsan ] || check "sim, 20 s ($1)" "$build/tests/sim" --seeds 1..1000000 --for 20
  check "no reports ($1)" nothing_in "$reports".*
}
nothing_in() { ! cat "$@" 2>/dev/null; }
section_asan() { sanitized asan libasan.so; }
section_tsan() { sanitized tsan libtsan.so; }

section_demo() { check 'demo' tools/demo; }

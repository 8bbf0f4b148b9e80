# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Every section of tools/test speaks TAP on standard output; what programs say besides goes to
# standard error, its log.

# A program gets a quarter of an hour, of the long versions an hour and a half; so does a function with all that it
# calls, in a shell that has the functions of this one.
if [ -n "$LK_FULL" ]; then limit_s=5400; else limit_s=900; fi
limited() {
  if declare -F "$1" >/dev/null; then
    # shellcheck disable=SC2154 # the table is that of tools/test
    set -- bash -uc "$(declare -f; declare -p limit_s table)"$'\n"$@"' "$1" "$@"
  fi
  timeout -k 30 "$limit_s" "$@"
}

# say LINE: of TAP. Where it cannot be written, the section breaks off.
say() { echo "$1" || exit 74; }

# Of what `times` says, 1m2.345s: all of it, in seconds.
seconds_in() {
  awk '{ gsub("s", ""); for (i = 1; i <= 2; i++) { split($i, t, "m"); sum += t[1] * 60 + t[2] } }
    END { printf "%.1f\n", sum }' "$@"
}

# What the parts of a section cost stands in SECTION.parts: seconds of a processor, and what they were for.
costs_from() {
  times >"$LK_TEST_DIR/$LK_SECTION.times"
  part_cpu_s=$(seconds_in "$LK_TEST_DIR/$LK_SECTION.times")
}
costs_are() {
  times >"$LK_TEST_DIR/$LK_SECTION.times"
  seconds_in "$LK_TEST_DIR/$LK_SECTION.times" | awk -v before="$part_cpu_s" -v title="$1" '
    $1 - before >= 0.1 { printf "%.1f %s\n", $1 - before, title }' >>"$LK_TEST_DIR/$LK_SECTION.parts"
}

# check TITLE COMMAND...: one test, passed when the command succeeds.
check() {
  local title=$1
  shift
  costs_from
  if limited "$@" 1>&2; then say "ok - $title"; else say "not ok - $title (exit code $?)"; fi
  costs_are "$title"
}

# check_fails TITLE COMMAND...: one test, passed when the command finds something: exit code 1.
check_fails() {
  local title=$1 code=0
  shift
  costs_from
  limited "$@" 1>&2 || code=$?
  costs_are "$title"
  if [ "$code" -eq 1 ]; then
    say "ok - $title"
  else
    say "not ok - $title (exit code $code, 1 was due)"
  fi
}

skip() { say "ok - $1 # SKIP $2"; }

# have PROGRAM TITLE: is it there? If not, TITLE is skipped.
have() {
  command -v "$1" >/dev/null || { skip "$2" "$1 is not installed" && return 1; }
}

# tap TITLE COMMAND...: the tests of a runner that speaks TAP itself. A runner that stops early, runs
# nothing, or fails without naming a test is a failure too.
tap() {
  local title=$1 code=0 part
  shift
  part=$(mktemp "$LK_TEST_DIR/part.XXXXXX") || exit 74
  costs_from
  limited "$@" >"$part" || code=$?
  costs_are "$title"
  cat "$part" || exit 74
  awk -v title="$title" -v code="$code" '
    /^1\.\./ { planned += substr($0, 4) }
    /^(not )?ok / { run++ }
    /^not ok / { failed++ }
    END {
      if (planned + 0 != run + 0 || !run)
        printf "not ok - %s: %d tests planned, %d run, exit code %d\n", title, planned, run, code
      else if (code != 0 && !failed)
        printf "not ok - %s: exit code %d\n", title, code
    }' "$part" || exit 74
  rm -f "$part"
}

# by_folder FILE: how many specs of each folder passed, on lines that fit; those of the contract count
# for the family of their script. busted -v says where a spec stands in a line before its outcome.
by_folder() {
  awk '
    /^# [^ ]*spec\/[^ ]* @ [0-9]+: / {
      folder = $2
      sub(/^.*spec\//, "", folder)
      if (folder !~ /\//) folder = $5
      sub(/\/.*/, "", folder)
    }
    /^ok .*# SKIP/ { next }
    /^ok / && folder { passed[folder]++ }
    END { for (folder in passed) print folder "~" passed[folder] }' "$1" |
    sort | paste -s -d , | sed 's/,/, /g' | fold -s -w 76 | sed '/./!d; s/^/    /; s/ *$//; s/~/ /g'
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Words for another shell; sourced.

# quoted WORD: it in single quotation marks, which every shell reads alike. bash's %q is for bash alone.
quoted() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

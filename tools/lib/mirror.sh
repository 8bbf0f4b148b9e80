# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Where Debian's packages come from, as this system's apt knows it; sourced.

# debian_mirror [-security]: its archive, or that of its security updates. LATCHKEY_DEBIAN_MIRROR is taken for the
# first where apt knows none, or another is wanted.
debian_mirror() {
  if [ -z "${1-}" ] && [ -n "${LATCHKEY_DEBIAN_MIRROR-}" ]; then
    echo "$LATCHKEY_DEBIAN_MIRROR"
    return
  fi
  # shellcheck disable=SC2016 # apt's own placeholders
  apt-get indextargets --format '$(REPO_URI) $(ORIGIN)' |
    awk -v of="/debian${1-}/?$" '$2 == "Debian" && $1 ~ of { print $1; exit }'
}

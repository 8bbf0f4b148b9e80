# SPDX-License-Identifier: Apache-2.0
# What zsh offers for lines that are begun: complete.zsh FOLDER SCRATCH LINE... An interactive zsh on a
# terminal of its own, with the completion of FOLDER, is typed each line and a key that completes; the
# offers are written a line each, a "#" behind those of a line. SCRATCH is an empty folder.
zmodload zsh/zpty zsh/zselect
folder=$1 scratch=$2 said=$2/said
shift 2

# Completion functions hand what fits to compadd, unless it is only to be looked at (-O, -A, -D).
cat >$scratch/rc <<RC
PROMPT=
# A list that does not fit asks whether it is wanted, and takes the next key for the answer.
setopt no_auto_list no_auto_menu
fpath=($folder \$fpath)
autoload -Uz compinit
compinit -u -D
compadd() {
  if [[ \${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
    local -a offers
    builtin compadd -A offers "\$@"
    ((\$#offers)) && print -rl -- \$offers >>$said
  fi
  builtin compadd "\$@"
}
probe() {
  _main_complete
  print -r '#' >>$said
}
zle -C probe complete-word probe
bindkey '^X' probe
print -r '#' >>$said
RC

# Until the end of what is said for one line; for 20 s at most.
await() {
  local i
  for ((i = 0; i < 2000; i++)); do
    [[ $(<$said) == *'#' ]] && return
    zselect -t 1
  done
  print -u2 'zsh does not answer'
  exit 1
}

: >$said
zpty typist "zsh -f -i"
zpty -w typist "source $scratch/rc"
await
for line; do
  : >$said
  zpty -w -n typist "$line"$'\x18'
  await
  print -r -- "$(<$said)"
  zpty -w -n typist $'\x15'
done
zpty -d typist

#compdef jp
# Completion of jp for zsh: eval "$(jp completion zsh)" after compinit, or as a file _jp in a directory of $fpath.
_jp() {
    emulate -L zsh
    local line value description flags='' found=1
    local -a lines values shown ending
    lines=("${(@f)$(_JP_COMPLETE=zsh command jp "${(@)words[2,CURRENT-1]}" "$IPREFIX$QIPREFIX$PREFIX" 2>/dev/null </dev/null)}")
    flags=" ${lines[1]} "
    for line in "${(@)lines[2,-1]}"; do
        value=${line%%$'\t'*}
        description=${line#*$'\t'}
        values+=("$value")
        shown+=("$value${description:+  -- $description}")
    done
    [[ $flags == *' open_ended '* ]] && ending=(-S '')
    if (( ${#values} )); then
        compadd -l -V jp "${ending[@]}" -d shown -a values && found=0
    fi
    if [[ $flags == *' files '* ]]; then
        [[ $PREFIX == --*=* ]] && compset -P '--*='
        _files && found=0
    fi
    return found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _jp "$@"
else
    compdef _jp jp
fi

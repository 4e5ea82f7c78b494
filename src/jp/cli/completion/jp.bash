# Completion of jp for bash 3.2 and newer: eval "$(jp completion bash)"
_jp_completion() {
    local flags= value description line typed=${COMP_LINE:0:COMP_POINT}
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $flags ]]; then
            flags=" $line "
            continue
        fi
        value=${line%%$'\t'*}
        description=${line#*$'\t'}
        # A list that is only shown has descriptions, too: 63 is the list after the second Tab.
        if [[ ${COMP_TYPE-} == 63 && -n $description ]]; then
            value="$value  ($description)"
        fi
        COMPREPLY[${#COMPREPLY[@]}]=$value
    done < <(_JP_COMPLETE=bash command jp "$typed" "$2" 2>/dev/null </dev/null)
    # A single one would be inserted with its description.
    if [[ ${COMP_TYPE-} == 63 && ${#COMPREPLY[@]} == 1 ]]; then
        COMPREPLY=("${COMPREPLY[0]%%  (*}")
    fi
    if type compopt >/dev/null 2>&1; then
        if [[ $flags == *' files '* ]]; then compopt -o default; fi
        if [[ $flags == *' open_ended '* ]]; then compopt -o nospace; fi
    fi
    return 0
}
if type compopt >/dev/null 2>&1; then
    complete -F _jp_completion jp
else
    complete -o default -F _jp_completion jp
fi

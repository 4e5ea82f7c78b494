most_usd=0.05
most_characters=100000

# The hook that was here before jp's runs first, with the same arguments and input; where it fails, git is told so.
before=${0%/*}/$hook.before-jp
pushed=
[ "$hook" != pre-push ] || pushed=$(cat)
if [ -x "$before" ]; then
    if [ "$hook" = pre-push ]; then
        printf '%s' "${pushed:+$pushed
}" | "$before" "$@"
    else
        "$before" "$@"
    fi || exit
fi

# What goes wrong here blocks git only with --strict.
give_up() {
    [ -n "$strict" ] || exit 0
    echo "$hook: stopped, because it was installed with --strict; \`--no-verify\` skips it" >&2
    exit 1
}

# Made for a program, whatever your configuration of git makes of diffs for you.
as_text="--no-color --no-ext-diff --no-textconv"

# - A new conversation is nobody else's, so there is no lock to wait for. It lies outside of the repository, expires
#   after a day, and does not become the active one of a shell that sets JP_SESSION.
# - Without tools nothing can need your consent, which a hook cannot ask for.
# - What the workspace attaches to every conversation tells nothing of this change.
unset JP_SESSION
ask() {
    printf '%s\n' "$content" | jp query --quiet --new --local --tmp --title "$title" ${prompt:+--prompt "$prompt"} \
        --no-tool --cfg 'conversation.attachments:=[]' --deadline "$deadline" "$@" "$question" >"$answer" 2>"$errors"
}

# Where nobody knows what the model costs, nothing was sent, and one request without tools is cheap then, too.
ask_within_limits() {
    trap 'rm -f "$answer" "$errors"' EXIT
    trap 'exit 0' HUP INT TERM
    ask --max-cost "$most_usd" "$@"
    code=$?
    if [ "$code" -eq 3 ]; then
        ask "$@"
        code=$?
    fi
    cat "$errors" >&2
    return "$code"
}

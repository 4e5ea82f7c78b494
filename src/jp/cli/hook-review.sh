
# A rebase makes commits again that were reviewed when they were made.
for state in rebase-merge rebase-apply; do
    [ ! -d "$(git rev-parse --git-path "$state")" ] || exit 0
done

if ! command -v jp >/dev/null 2>&1; then
    echo "$hook: jp is not on PATH, so it reviews nothing" >&2
    give_up
fi

# A change of any size is cut at a line, before it is held in memory.
first() {
    LC_ALL=C awk -v most="$most_characters" '{ size += length($0) + 1 } size > most { exit } { print }'
}

case $hook in
commit-msg)
    # git refuses an empty message itself, and a merge has the message of git.
    message=$(sed '/ -\{24\} >8 -\{24\}$/,$d' "$1" | git stripspace --strip-comments) || exit 0
    [ -n "$message" ] || exit 0
    ! git rev-parse -q --verify MERGE_HEAD >/dev/null || exit 0
    content=$(git diff --cached $as_text | first)
    content=${content:+"$message

$content"}
    title="Review of a commit message"
    question="Does this commit message describe the change below it, and is it free of mistakes?"
    ;;
post-commit)
    content=$(git log -1 -p --no-merges --format=%B $as_text HEAD | first)
    title="Review of a commit"
    question="Review this commit. Name defects only, each in a line with its file."
    ;;
pre-push)
    content=$(printf '%s\n' "$pushed" | while read -r _ ours _ theirs; do
        case $ours in *[!0]*) ;; *) continue ;; esac # a branch that is deleted
        if git cat-file -e "$theirs" 2>/dev/null; then
            git log --reverse -p --no-merges $as_text "$theirs..$ours" --
        else
            git log --reverse -p --no-merges $as_text "$ours" --not --remotes --
        fi
    done | first)
    title="Review of a push"
    question="Review these commits. Name defects only, each in a line with its file."
    ;;
esac
[ -n "$content" ] || exit 0

[ -z "$prompt" ] || question=
question="$question If there is nothing to object to, answer with the one word OK."
answer=$(git rev-parse --git-path "jp-$hook-$$")
errors=$answer.errors

ask_within_limits || give_up

# Nobody has checked what a model writes for a terminal: control characters go.
review=$(LC_ALL=C tr -d '\000-\010\013-\037\177' <"$answer" | LC_ALL=C sed "s/$(printf '\302')[$(printf '\200')-$(printf '\237')]//g")
case $review in
OK | OK. | "") exit 0 ;;
esac
printf '%s: %s\n' "$hook" "$review" >&2
give_up


file=$1
source=${2-}

# With -m, -F, -c, --amend, a template, a merge or a squash, git says where the message comes from: it is there already.
[ -z "$source" ] || exit 0

# Another hook may have written one, too. Comments do not count, nor does the diff that `git commit -v` shows.
written=$(sed '/ -\{24\} >8 -\{24\}$/,$d' "$file" | git stripspace --strip-comments) || exit 0
[ -z "$written" ] || exit 0

if ! command -v jp >/dev/null 2>&1; then
    echo "$hook: jp is not on PATH, so it suggests no message" >&2
    give_up
fi

content=$(git diff --cached $as_text) || exit 0
[ -n "$content" ] || exit 0
[ "${#content}" -le "$most_characters" ] || content=$(git diff --cached $as_text --stat --summary) || exit 0

# Beside the message, because that is where git lets this hook write; with a number, because two may run at once.
answer=$file.jp-$$
errors=$file.jp-$$.errors
title="Commit message"
question="Write a commit message for this change, in one fenced code block: a line of at most 72 characters that says \
what it does, in the imperative, and where the reason is not plain a blank line and the reason. No headings."
[ -z "$prompt" ] || question="Answer with the commit message in one fenced code block."

# The code block alone is taken, whatever the model says around it. After a failure there may be a part of an answer,
# and half a message is worse than none.
ask_within_limits --extract || give_up
[ -s "$answer" ] || exit 0

# One step, so that git never finds half of it.
cat "$file" >>"$answer" && mv -f "$answer" "$file"
exit 0

#!/bin/sh
# jp's main job, step by step, with the embedded `script` provider: no key, no network.
# It works in a copy, with jp's own files in a temporary directory: nothing of yours is read or changed.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p "$temporary/repair-shed/.jp"
cd "$temporary/repair-shed"
cp -R "$here/README.md" "$here/src" "$here/data" .
cp -R "$here/.jp/config.toml" "$here/.jp/scenarios" .jp

export JP_USER_DATA_DIR="$temporary/data" JP_GLOBAL_CONFIG_DIR="$temporary/config" JP_SESSION=demo
for name in $(env | sed -n 's/^\(JP_CFG_[A-Za-z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done

say() {
    printf '\n# %s\n' "$*"
}

run() {
    printf '\n$ %s\n' "$1"
    eval "$1"
}

# Nothing is piped into jp here, whatever this script itself reads from.
exec </dev/null

say "A repair shed keeps its loans in a file. The script that lists the overdue ones crashes:"
run 'python src/overdue.py 2026-02-20 2>&1 | tail -n 1'

say "This workspace came with a configuration that lets a tool run without asking. It counts once you trust it:"
run 'jp workspace trust --yes'

say "A new conversation. What is attached is a snapshot, frozen at this turn:"
run 'jp query --new --title "Overdue list" --attach src/loans.py "Why does overdue.py crash?"'

say "A follow-up in the same conversation. The model reads another file with a tool:"
run 'jp query --id . "What else depends on due()?"'

say "The file changes:"
run 'sed "s/loan.lent.replace.*/loan.lent + timedelta(days=LOAN_DAYS)/" src/loans.py > loans.new && mv loans.new src/loans.py'
run 'python src/overdue.py 2026-02-20'

say "The model reads what is attached again, and the other file, too. What has not changed is sent as a reference:"
run 'jp query --id . "I changed it. Is it fixed now?"'

say "A result that is too large for the model gets a handle. With it, the model pages through the rest:"
run 'seq -f "visit %g of the shed" 1 2000 > data/visits.log && wc -c data/visits.log'
run 'jp query --id . "Is visit 1000 in data/visits.log?"'

say "All of it is kept in the workspace, as files that can be committed:"
run 'jp conversation ls'

say "What the model is sent has grown. What would be saved if each result of a tool were told in one line?"
run 'jp conversation compact --dry-run --keep 0'

say "That is done by one more line in the log. Nothing is deleted:"
run 'jp conversation compact --keep 0'

say "The next question is asked on what is left. The model recalls what it needs by the handle in the line that it sees:"
run 'jp query --id . "And visit 1500?"'

say "The conversation is what it was, and the model is shown another view of it:"
run 'jp conversation print . --turn 3 | head -n 9'
run 'jp conversation print . --turn 3 --compacted | head -n 9'

say "One line takes it back, and every byte is sent as before:"
run 'jp conversation compact --reset'
run 'jp conversation print . --turn 3 --compacted | head -n 9'

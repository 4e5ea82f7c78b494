#!/bin/sh
# Leaves old things out of the conversations of a workspace where that pays, and says a line for each. Made for cron.
#
#     scripts/compact-nightly.sh [DIRECTORY]
#
# It asks nobody, no model and no network, and what it does is undone with `jp conversation undo ID`.
# The exit code is 0 unless something is wrong that somebody should look at.
set -u

profile=default
least_freed=${JP_NIGHTLY_LEAST_FREED:-2000}      # tokens: a cache that breaks for less is a bad bargain
most_requests=${JP_NIGHTLY_MOST_REQUESTS:-10}    # after which it has to have paid for itself

cd "${1:-.}" || exit 1
started=$(date -u +%Y-%m-%dT%H:%MZ)

# jp itself needs Python, so that is there where `jq` may not be.
for program in jp python3; do
    if ! command -v "$program" >/dev/null 2>&1; then
        echo "compact-nightly: $program is not on PATH" >&2
        exit 1
    fi
done

# ID=why it is left alone, or ID= where nothing speaks against it. Archived conversations are not listed.
# A conversation of the original JP is left alone because jp would go on in a log of its own, beside the original's.
choose='
import json, os, sys
for found in json.load(sys.stdin)["conversations"]:
    reasons = {
        "pinned": found["pinned_at"],
        "temporary": found["expires_at"],
        "original": not os.path.exists(os.path.join(found["path"], "events.jsonl")),
    }
    print(found["id"], next((reason for reason in reasons if reasons[reason]), ""), sep="=")
'

# FREED BEFORE REQUESTS ASKS. REQUESTS is 0 where prices are not known, and then tokens alone decide.
weigh='
import json, sys
told = json.load(sys.stdin)
edit = told["cache"]["edit"] or {"break_even": 0}
requests = "never" if edit["break_even"] is None else edit["break_even"]
print(told["tokens"]["freed"], told["tokens"]["before"], requests, "no" if told["summary"] is None else "yes")
'

say() {
    echo "$started $*"
}

wrong=0

# Whoever ends jp wants this to end, too.
failed() {
    case $2 in
        11) say "$1 left: another process writes it" ;;
        12) say "$1 left: nothing to compact" ;;
        130 | 143) exit "$2" ;;
        *)
            say "$1 failed: exit code $2"
            wrong=1
            ;;
    esac
}

compact() {
    told=$(jp conversation compact --dry-run --profile "$profile" --format json "$1" </dev/null) || {
        failed "$1" $?
        return
    }
    numbers=$(printf '%s\n' "$told" | python3 -c "$weigh") || {
        failed "$1" $?
        return
    }
    read -r freed before requests asks <<END
$numbers
END
    if [ "$asks" = yes ]; then
        say "$1 left: profile '$profile' would ask a model"
    elif [ "$freed" -lt "$least_freed" ]; then
        say "$1 left: it would free $freed of $before tokens"
    elif [ "$requests" = never ]; then
        say "$1 left: it would free $freed of $before tokens, and never pay for itself"
    elif [ "$requests" -gt "$most_requests" ]; then
        say "$1 left: it would free $freed of $before tokens, and pay after $requests requests only"
    elif errors=$(jp conversation compact --quiet --profile "$profile" "$1" </dev/null 2>&1 >/dev/null); then
        say "$1 compacted: $freed of $before tokens freed, undone by: jp conversation undo $1"
    else
        code=$?
        # Cron mails what stands on stderr, and a conversation that somebody uses is no news.
        [ -z "$errors" ] || [ "$code" -eq 11 ] || printf '%s\n' "$errors" >&2
        failed "$1" "$code"
    fi
}

listed=$(jp conversation ls --format json </dev/null) || exit 1
chosen=$(printf '%s\n' "$listed" | python3 -c "$choose") || exit 1

for conversation in $chosen; do
    case $conversation in
        *=) compact "${conversation%=}" ;;
        *) say "${conversation%%=*} skipped: ${conversation#*=}" ;;
    esac
done
exit "$wrong"

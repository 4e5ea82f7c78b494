# Completion of jp for fish: jp completion fish > ~/.config/fish/completions/jp.fish
function __jp_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines (_JP_COMPLETE=fish command jp $words[2..-1] "$current" 2>/dev/null </dev/null)
    set -l flags $lines[1]
    if test (count $lines) -gt 1
        printf '%s\n' $lines[2..-1]
    end
    if string match -q '*files*' -- $flags
        if string match -qr '^--[^=]*=' -- "$current"
            set -l prefix (string replace -r '=.*' '=' -- "$current")
            for path in (__fish_complete_path (string replace -r '^[^=]*=' '' -- "$current"))
                printf '%s\n' "$prefix$path"
            end
        else
            # The quote of an unfinished word belongs to no file.
            __fish_complete_path (string replace -r '^["\']' '' -- "$current")
        end
    end
end
complete -c jp -f -a '(__jp_complete)'

#!/bin/bash
# Copies files to a folder (of the day).
set -eu
folder=${1:-"$HOME/backup"}/$(date +%F)
names=("notes" 'it'\''s' "a b")

copy() {
    local name
    for name in "$@"; do
        if [[ -f "$name" && ! -e "$folder/${name##*/}" ]]; then
            cp -- "$name" "$folder/" || return 1
        fi
    done
}

case "${2:-}" in
    -h | --help) echo "usage: backup [FOLDER]"; exit ;;
    "") mkdir -p "$folder" ;;
    *) printf '%s\n' "unknown: $2 (" >&2; exit $((1 + 1)) ;;
esac
copy "${names[@]}"
cat <<EOF >"$folder/README"
copied: ${#names[@]} files
EOF

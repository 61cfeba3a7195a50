#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three real nodes on loopback: they join a space, write, lose one by kill -9, and converge.
# usage: tests/demo/three-nodes.sh [PROGRAM]
set -euo pipefail

faberio=${1:-build/release/faberio}
[[ $faberio == */* ]] || faberio=$(command -v "$faberio")
directory=$(mktemp -d)
declare -A pid=()

cleanup() {
    local node
    for node in "${!pid[@]}"; do kill -9 "${pid[$node]}" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$directory"
}
trap cleanup EXIT

at() { # NODE COMMAND...
    local node=$1
    shift
    "$faberio" "$@" --home "$directory/$node"
}

member() { # NAME, of the JSON object on standard input
    sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | head -n 1
}

# Starts a node and returns when it answers: its fifth banner line is the API's.
start() { # NODE [OPTION...]
    local node=$1 line
    shift
    local pipe=$directory/$node.out
    rm -f "$pipe"
    mkfifo "$pipe"
    "$faberio" run --home "$directory/$node" "$@" >"$pipe" 2>&1 &
    pid[$node]=$!
    exec {out}<"$pipe"
    while read -r -u "$out" line; do
        [[ $line != api\ * ]] || break
    done
    cat <&"$out" >"$directory/$node.log" &
    exec {out}<&-
}

# Reads changes on NODE, from the first one, until COUNT records were seen.
await() { # NODE COUNT
    local node=$1 count=$2 line id watch
    declare -A seen=()
    exec {watch}< <(exec "$faberio" record watch demo --since 0 --json --home "$directory/$node" \
        2>/dev/null)
    local watcher=$!
    while ((${#seen[@]} < count)) && read -r -u "$watch" line; do
        id=$(member id <<<"$line")
        seen[$id]=1
    done
    kill "$watcher" 2>/dev/null || true
    exec {watch}<&-
    ((${#seen[@]} == count))
}

show() { printf '%s\n' "$*"; }

for node in ada bob eve; do
    id=$(at "$node" init --json | member node_id)
    start "$node" --listen 127.0.0.1:0
    declare "$node=$id"
    show "$node runs as $id"
done

at ada space create demo >/dev/null
invite=$(at ada space invite demo --uses 2)
for node in bob eve; do
    at "$node" space join "$invite" >/dev/null
    at ada space approve demo "${!node}" >/dev/null
    show "$node asked to join, ada approved"
done
# A node may write once it has read that it is a member.
for node in bob eve; do
    for ((asked = 0; asked < 2000; asked++)); do
        at "$node" space list | grep -q status=approved && break
    done
done

write() { # NODE FROM TO
    local node=$1 i
    for ((i = $2; i <= $3; i++)); do
        at "$node" record put demo notes new "from=\"$node\"" "n=$i" >/dev/null
    done
    show "$node wrote $(($3 - $2 + 1)) records"
}

for node in ada bob eve; do write "$node" 1 5; done
for node in ada bob eve; do await "$node" 15; done

kill -9 "${pid[eve]}"
wait "${pid[eve]}" 2>/dev/null || true
show "eve was killed; the others go on"
for node in ada bob; do write "$node" 6 8; done
start eve --listen 127.0.0.1:0
show "eve is back"
for node in ada bob eve; do await "$node" 21; done

same=$(for node in ada bob eve; do
    at "$node" record list demo notes --json | sha256sum
done | sort -u)
show "each of the three lists: sha256 $(head -c 16 <<<"$same")..."
if (($(wc -l <<<"$same") != 1)); then
    show "the three differ"
    exit 1
fi
for node in ada bob eve; do kill -TERM "${pid[$node]}"; done
for node in ada bob eve; do wait "${pid[$node]}"; done
pid=()
show "21 records on each of three nodes, the same bytes; all three stopped in order"

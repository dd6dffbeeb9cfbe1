#!/bin/sh
# Run the pgTAP files on the server that PGHOST and friends name, in a database that is made for it and dropped again.
# Needs psql and perl's prove, no Python.
set -eu
cd "$(dirname "$0")/.."

say_and_fail() {
    echo "installcheck: $*" >&2
    exit 1
}

# POSIX find keeps names with blanks together only by -exec; the files are named by rooms and promises, without any.
files=$(find pgtap -name '*.sql' | sort)
[ -n "$files" ] || say_and_fail "there is no pgTAP file below pgtap/."
command -v psql >/dev/null || say_and_fail "psql is not on PATH (on Debian: apt-get install postgresql-client)."

database=stepq_installcheck_$$
scratch=$(mktemp -d)
psql="psql -XAtq -v ON_ERROR_STOP=1"

drop_database() {
    $psql -d "${PGDATABASE:-postgres}" -c "set client_min_messages = warning" \
        -c "drop database if exists $database" || true
    rm -rf "$scratch"
}
trap drop_database EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

$psql -d "${PGDATABASE:-postgres}" -c "create database $database" ||
    say_and_fail "no database can be made on this server. Set PGHOST, PGPORT and PGUSER to one where it can."
for extension in pgmq pgflow_stepq pgtap; do
    $psql -d "$database" -c "create extension $extension" || say_and_fail "the server can't create extension $extension.
pgflow_stepq comes by make install, pgmq by its own installation (or pgflow-stepq stage DIR --only pgmq), pgtap by the
system's package (on Debian: apt-get install postgresql-<major>-pgtap)."
done

{
    status=0
    if command -v pg_prove >/dev/null; then
        # shellcheck disable=SC2086
        pg_prove --failures --comments -d "$database" $files || status=$?
    elif command -v prove >/dev/null; then
        # shellcheck disable=SC2086
        prove --failures --comments --exec "$psql -d $database -f" $files || status=$?
    else
        echo "Neither pg_prove nor prove is on PATH (on Debian: apt-get install libtap-parser-sourcehandler-pgtap-perl)."
        status=127
    fi
    echo $status >"$scratch/status"
} 2>&1 | tee "$scratch/log"

status=$(cat "$scratch/status")
ran=$(sed -n 's/^Files=[0-9]*, Tests=\([0-9]*\),.*/\1/p' "$scratch/log")
failed=$(sed -n 's/.*Tests: [0-9]* Failed: \([0-9]*\).*/\1/p' "$scratch/log" | awk '{ sum += $1 } END { print sum + 0 }')
ran=${ran:-0}
if [ "$status" -eq 0 ] && [ "$ran" -eq 0 ]; then
    status=1
fi
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
    echo "installcheck: a file ended early; see above."
fi
echo "pgtap: $((ran - failed)) passed, $failed failed"
exit "$status"

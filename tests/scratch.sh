#!/bin/sh
# Make a folder for the files of tests and print its name: in memory where 4 GB are free there, else where temporary files are.
set -eu
free_kb=$(df -Pk /dev/shm 2> /dev/null | awk 'NR == 2 { print $4 }')
available_kb=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2> /dev/null || true)
place=${TMPDIR:-/tmp}
if [ "${free_kb:-0}" -gt 4000000 ] && [ "${available_kb:-0}" -gt 8000000 ] && [ -w /dev/shm ]; then place=/dev/shm; fi
folder=$(mktemp -d "$place/gpureport-tests.XXXXXX")
chmod 1777 "$folder"  # as that of temporary files: a test runs a command as another user
echo "$folder"

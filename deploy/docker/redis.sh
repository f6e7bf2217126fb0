#!/bin/sh
# Redis with its append-only file. The password goes in by standard input, because everybody sees words of a command line.
set -eu
exec redis-server - <<EOF
dir /data
appendonly yes
appendfsync everysec
save ""
maxmemory 128mb
maxmemory-policy noeviction
requirepass $(cat "/run/secrets/redis_password")
EOF

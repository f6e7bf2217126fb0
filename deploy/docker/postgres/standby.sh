#!/bin/sh
# The standby: copies the primary at the first start, and follows it. docs/fail-over.md says how it takes over.
set -eu
secrets=/run/secrets
# The log of a server shows its settings, so the password is not one of them.
printf '%s:*:*:replicator:%s\n' "$PRIMARY" "$(cat "$secrets/replication_password")" >/tmp/pgpass
chmod 0600 /tmp/pgpass
export PGPASSFILE=/tmp/pgpass
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # It gets its name when it is whole, so that a copy that was cut short begins anew.
  new=$PGDATA.new
  rm -rf "$new"
  pg_basebackup --pgdata="$new" --host="$PRIMARY" --username=replicator --no-password --wal-method=stream \
    --checkpoint=fast
  # A primary that waits for itself commits nothing, and this one may become the primary.
  sed -i '/^synchronous_standby_names/d' "$new/postgresql.auto.conf"
  touch "$new/standby.signal"
  mv "$new" "$PGDATA"
fi
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp -c cluster_name=b \
  -c wal_keep_size=512MB -c primary_conninfo="host=$PRIMARY user=replicator passfile=/tmp/pgpass"

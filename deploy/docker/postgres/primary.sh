#!/bin/sh
# The primary: makes the cluster at the first start, with the roles of idmint and a standby that commits wait for.
set -eu
secrets=/run/secrets
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # It gets its name when it is whole, so that a start that was cut short begins anew.
  new=$PGDATA.new
  rm -rf "$new"
  initdb --pgdata="$new" --username=postgres --pwfile="$secrets/postgres_password" --auth=scram-sha-256 \
    --encoding=UTF8 --locale=C --data-checksums
  cat >"$new/pg_hba.conf" <<EOF
local all postgres trust
host all all all scram-sha-256
host replication replicator all scram-sha-256
EOF
  pg_ctl --pgdata="$new" --wait --options="-c listen_addresses='' -c unix_socket_directories=/tmp" start
  psql --host=/tmp --username=postgres --no-psqlrc --quiet --set=ON_ERROR_STOP=1 <<EOF
\\set owner \`cat $secrets/owner_password\`
\\set server \`cat $secrets/server_password\`
\\set replicator \`cat $secrets/replication_password\`
CREATE ROLE idmint_owner LOGIN PASSWORD :'owner';
CREATE ROLE idmint_server LOGIN PASSWORD :'server';
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'replicator';
GRANT pg_monitor TO idmint_server;
CREATE DATABASE idmint OWNER idmint_owner;
\\connect idmint
-- What the owner makes is for the servers too; the schema itself stays the owner's.
ALTER DEFAULT PRIVILEGES FOR ROLE idmint_owner GRANT USAGE ON SCHEMAS TO idmint_server;
ALTER DEFAULT PRIVILEGES FOR ROLE idmint_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO idmint_server;
ALTER SYSTEM SET synchronous_standby_names = 'b';
EOF
  pg_ctl --pgdata="$new" --wait --mode=fast stop
  mv "$new" "$PGDATA"
fi
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp -c cluster_name=a \
  -c wal_keep_size=512MB

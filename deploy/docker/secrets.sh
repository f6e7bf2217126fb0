#!/bin/sh
# Makes the secrets of compose.yaml, in a folder that only you can enter: passwords, a certificate with its authority, and
# a token. What is there already stays as it is.
set -eu
folder=${1:-$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)/secrets}
mkdir -p "$folder"
# Containers have users of their own. They see single files and not the folder, so the folder is what keeps others out.
chmod 0700 "$folder"
cd "$folder"
umask 022

for name in postgres_password owner_password server_password replication_password redis_password grafana_password; do
  [ -s "$name" ] || openssl rand -hex 24 >"$name"
done

if [ ! -s tls_cert ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj '/CN=idmint' \
    -keyout ca_key -out tls_ca 2>/dev/null
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=idmint' \
    -keyout tls_key -out request 2>/dev/null
  printf 'subjectAltName=DNS:idmint-1,DNS:idmint-2,DNS:idmint-3,DNS:localhost,IP:127.0.0.1\n' >names
  openssl x509 -req -in request -CA tls_ca -CAkey ca_key -CAcreateserial -days 365 -extfile names -out tls_cert \
    2>/dev/null
  # Nothing else is signed by this authority.
  rm -f ca_key request names tls_ca.srl
  chmod 0444 tls_key
fi

if [ ! -s access ]; then
  id=$(openssl rand -hex 8)
  secret=$(openssl rand -base64 32 | tr '+/' '-_' | tr -d '=\n')
  printf 'idm_%s_%s\n' "$id" "$secret" >ops_token
  hash=$(printf %s "$secret" | openssl dgst -sha256 -r | cut -d ' ' -f 1)
  cat >access <<EOF
principals:
  ops:
    admin: ["*"]
    issue: ["*"]
    tokens:
      - id: "$id"
        sha256: "$hash"
        expires: "$(($(date -u +%Y) + 1))-$(date -u +%m)-01T00:00:00Z"
EOF
fi

#!/bin/sh
# Makes the secrets of the compose stack under deploy/compose/secrets, each once; what is there stays.
#
#   deploy/compose/make-secrets.sh              what is missing
#   deploy/compose/make-secrets.sh api_token    this one anew, in the same file: containers that run see it
#
# docs/operations.md says which service is to be told afterwards.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
names="clickhouse_writer_password clickhouse_reader_password proxy_client_secret proxy_control_secret api_token \
metrics_token grafana_admin_password"

random() { head -c 24 /dev/urandom | base64 | tr '+/' '-_'; }
digest() { printf %s "$(cat "secrets/$1")" | { sha256sum 2>/dev/null || shasum -a 256; } | cut -d' ' -f1; }
# Into the same file, as a container has the file and not its name.
keep() { [ ! -e "secrets/$1" ] || chmod u+w "secrets/$1"; cat > "secrets/$1"; }

for name in "$@"; do
  case " $names " in
    *" $name "*) random | keep "$name" ;;
    *) echo "no secret is called $name; there are: $names" >&2; exit 2 ;;
  esac
done
for name in $names; do
  [ -s "secrets/$name" ] || random | keep "$name"
done
# What servers keep are digests.
digest api_token | keep api_token_sha256
digest metrics_token | keep metrics_token_sha256
sed -e "s/@WRITER_SHA256@/$(digest clickhouse_writer_password)/" \
    -e "s/@READER_SHA256@/$(digest clickhouse_reader_password)/" clickhouse/users.xml | keep clickhouse_users.xml
# The folder lets nobody else in; the users of the containers, which have other ids, read the files through their mounts.
chmod 0700 secrets
chmod 0444 secrets/*
echo "secrets are in $(pwd)/secrets"

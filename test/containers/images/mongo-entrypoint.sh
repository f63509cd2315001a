#!/bin/sh
# Started by root, the server runs as the user mongodb.
set -e
if [ "$1" = mongod ] && [ "$(id -u)" = 0 ]; then
  find /data/configdb /data/db \! -user mongodb -exec chown mongodb '{}' +
  exec setpriv --reuid=mongodb --regid=mongodb --clear-groups "$0" "$@"
fi
exec "$@"

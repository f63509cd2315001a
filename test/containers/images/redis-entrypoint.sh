#!/bin/sh
# Started by root, the server runs as the user redis.
set -e
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  find . \! -user redis -exec chown redis '{}' +
  exec setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
fi
umask 0077
# The official image is built without protected mode.
[ "$1" != redis-server ] || set -- "$@" --protected-mode no
exec "$@"

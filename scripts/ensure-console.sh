# Sourced after ensure-node.sh: builds the console's pages (services/console) into services/console/built, unless they are there and no
# source has changed since.

console=services/console

ensure_console() {
  [ -d "$console" ] || return 0
  is_newest "$console/built/.sources" && return
  local digest
  digest=$(digest_of_sources)
  if [ "$(cat "$console/built/.sources" 2>/dev/null)" = "$digest" ]; then touch "$console/built/.sources"; return; fi
  say 'Building the console ...'
  run_child "$node" scripts/build-console.ts </dev/null >&2 || { say 'The console could not be built: the API works without it.'; return 0; }
  printf '%s\n' "$digest" >"$console/built/.sources"
}

# What the build reads.
sources=("$console" shared/client scripts/build-console.ts scripts/console-*.ts package-lock.json)

# Nothing that the build reads has changed since, nor been deleted: that changes the folder's time.
is_newest() {
  [ -e "$1" ] && [ -z "$(find "${sources[@]}" -not -path "$console/built*" -newer "$1" -print -quit 2>&1)" ]
}

digest_of_sources() {
  find "${sources[@]}" -type f -not -path "$console/built*" -print0 2>/dev/null |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
}

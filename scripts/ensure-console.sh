# Sourced after ensure-node.sh: builds the console's pages (services/console) into services/console/built, unless they are there and no
# source has changed since.

console=services/console

ensure_console() {
  [ -d "$console" ] || return 0
  local sources
  sources=$(console_sources)
  [ "$(cat "$console/built/.sources" 2>/dev/null)" = "$sources" ] && return
  say 'Building the console ...'
  run_child "$node" scripts/build-console.ts </dev/null >&2 || { say 'The console could not be built: the API works without it.'; return 0; }
  printf '%s\n' "$sources" >"$console/built/.sources"
}

# One digest of everything that the build reads.
console_sources() {
  find "$console" shared/client scripts/build-console.ts scripts/console-*.ts package-lock.json -type f -not -path "$console/built*" -print0 2>/dev/null |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
}

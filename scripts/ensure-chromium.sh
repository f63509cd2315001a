# Sourced by scripts/test: leaves CHROMIUM as the browser the tests drive, where there is or can be one. The headless shell is preferred: it
# is Chromium without windows, and a page of it takes a quarter of the CPU time.

ensure_chromium() {
  find_chromium && return
  if command -v apt-get >/dev/null && as_root true 2>/dev/null; then
    say 'Installing Chromium for the browser tests (apt-get install chromium-headless-shell) ...'
    run_child as_root apt-get update -qq </dev/null >/dev/null || true
    run_child as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -qq -y --no-install-recommends chromium-headless-shell </dev/null >/dev/null || true
    find_chromium && return
  fi
  say 'No Chromium: install one (Debian: apt-get install chromium-headless-shell) or set CHROMIUM; the browser tests will fail without it.'
}

find_chromium() {
  local name
  for name in "${CHROMIUM:-}" chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do
    if [ -n "$name" ] && CHROMIUM=$(command -v "$name"); then export CHROMIUM; return; fi
  done
  return 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

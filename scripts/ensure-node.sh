# Sourced by the scripts beside it, in the project's folder. `ensure_node` installs the packages of package-lock.json that the product
# needs, with the argument `dev` also those for development and tests, and sets $node to a Node that can run the project. It prints what it does to stderr, so that stdout holds the program's output only.

stamp=node_modules/.installed-lock
# The packages for development are there when this one is. TypeScript would not do: npm installs it for a package of the product, too.
for_development=node_modules/mocha

ensure_node() {
  require_npm
  # node_modules contains a Node for Linux x86-64; on any other system the one on PATH is used.
  case "$(uname -sm)" in 'Linux x86_64') ;; *) find_node || refuse_node ;; esac
  is_installed "${1:-}" || install_packages "${1:-}"
  find_node || refuse_node
}

# Prints the usage and the settings of a script and exits, when --help or -h is among its arguments. Installs packages only when
# there is no usable Node yet.
print_help_if_asked() {
  local script=$1 argument
  shift
  for argument in "$@"; do
    case "$argument" in
      --help | -h)
        find_node || ensure_node
        exec "$node" scripts/print-help.ts "$script"
        ;;
    esac
  done
}

say() { printf '%s\n' "$*" >&2; }

require_npm() {
  command -v npm >/dev/null || { say 'agent-engine needs Node with npm: install it from https://nodejs.org and try again.'; exit 1; }
}

# `npm ci` run by hand leaves no stamp, but its own lock file is then newer than package-lock.json.
is_installed() {
  [ "$1" != dev ] || [ -e "$for_development" ] || return 1
  if [ -e "$stamp" ]; then cmp -s package-lock.json "$stamp"; return; fi
  [ node_modules/.package-lock.json -nt package-lock.json ] && cp package-lock.json "$stamp"
}

# A folder that has the packages for development keeps them: its tests may be running.
install_packages() {
  say 'Installing the packages of package-lock.json (npm ci) ...'
  local kind=--omit=dev
  [ "$1" != dev ] && [ ! -e "$for_development" ] || kind=--include=dev
  run_child npm ci "$kind" --include=optional --no-fund --no-audit --loglevel=error </dev/null >&2
  cp package-lock.json "$stamp"
}

# Sets $node, and its version in $node_version.
find_node() {
  for node in "$PWD/node_modules/.bin/node" "$(command -v node || true)"; do
    if node_version=$("$node" -v 2>/dev/null) && is_new_enough "$node_version"; then return; fi
  done
  return 1
}

# Compares a version that Node has printed with package.json. A program of Node for it would take 25 ms of each start.
is_new_enough() {
  local engines='"engines"[^}]*"node"[^0-9]*([0-9]+)'
  [[ $(<package.json) =~ $engines ]] || return
  wanted=${BASH_REMATCH[1]}
  [[ $1 =~ ^v([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge "$wanted" ]
}

refuse_node() {
  say "agent-engine needs Node $wanted or newer and this is $(node -v): install it from https://nodejs.org (or \`nvm install 24\`) and try again."
  exit 1
}

# Runs a command in a process group of its own, which a signal to this script ends as a whole.
run_child() {
  local code=0
  set -m
  "$@" &
  child=$!
  set +m
  trap 'end_child; exit 143' TERM
  trap 'end_child; exit 130' INT
  wait "$child" || code=$?
  trap - TERM INT
  return "$code"
}

end_child() {
  kill -TERM -- "-$child" 2>/dev/null || return 0
  wait "$child" || true
  kill -KILL -- "-$child" 2>/dev/null || true
}

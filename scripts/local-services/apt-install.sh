# Run by sh, as root: installs Debian packages without starting the services they bring.
#   sh apt-install.sh redis-server
set -eu
policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d} # Debian's own switch: 101 forbids the start of services.

if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 130' INT TERM
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
fi
apt-get update -qq || true # What is known already may be enough.
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@"

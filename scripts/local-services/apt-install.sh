# Installs Debian packages without starting their services. Run by sh as root:
#   sh apt-install.sh redis-server
set -eu
policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d} # Debian calls it before it starts a service; exit code 101 forbids the start.

if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 130' INT TERM
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
fi
apt-get update -qq || true # The package lists on disk may be enough.
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@"

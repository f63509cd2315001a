import { BlockList, isIP } from 'node:net'

/**
 * Tells whether an IP address belongs to the public internet. Ranges that IANA reserves do not, and neither do IPv4 addresses
 * in IPv6 form. Text that is no IP address is not public.
 */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address)
  if (version === 4) return !RESERVED_IPV4.check(address, 'ipv4')
  return version === 6 && !RESERVED_IPV6.check(address.replace(/%.*$/, ''), 'ipv6')
}

/** Tells whether an address belongs to the metadata service of a cloud, in any spelling. */
export function isMetadataAddress(address: string): boolean {
  const version = isIP(address)
  if (version === 4) return METADATA.check(address, 'ipv4')
  return version === 6 && METADATA.check(address.replace(/%.*$/, ''), 'ipv6')
}

// Two lists, because a `BlockList` that contains ::ffff:0:0/96 matches every IPv4 address.
const RESERVED_IPV4 = blockList('ipv4', [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10], // carrier-grade NAT
  ['127.0.0.0', 8],
  ['169.254.0.0', 16], // link-local, with the metadata services of clouds
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16],
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 3], // multicast, reserved, broadcast
])

const RESERVED_IPV6 = blockList('ipv6', [
  ['::', 3], // everything below 2000::/3: ::/96, ::1, mapped ::ffff:0:0/96, NAT64 64:ff9b::/96 and 64:ff9b:1::/48, 100::/64
  ['2001::', 23], // protocol assignments, Teredo
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4
  ['3fff::', 20], // documentation
  ['4000::', 2],
  ['8000::', 1], // everything above 3fff::/16: fc00::/7, fe80::/10, fec0::/10, ff00::/8
])

function blockList(family: 'ipv4' | 'ipv6', subnets: [string, number][]): BlockList {
  const list = new BlockList()
  for (const [network, prefix] of subnets) list.addSubnet(network, prefix, family)
  return list
}

/**
 * The well-known addresses, and the same IPv4 ones inside IPv6: mapped (checked by Node itself), compatible, translated (SIIT),
 * NAT64 under the well-known and the local prefix, 6to4, and link-local, where OpenStack has its service.
 */
const METADATA = new BlockList()
for (const address of [
  '169.254.169.254',
  '169.254.170.2',
  '169.254.170.23',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
]) {
  METADATA.addAddress(address, 'ipv4')
  const hex = Buffer.from(address.split('.').map(Number)).toString('hex')
  const [high, low] = [hex.slice(0, 4), hex.slice(4)]
  for (const prefix of ['::', '::ffff:0:', '64:ff9b::', '64:ff9b:1::', 'fe80::']) {
    METADATA.addAddress(`${prefix}${high}:${low}`, 'ipv6')
  }
  METADATA.addSubnet(`2002:${high}:${low}::`, 48, 'ipv6')
}
for (const address of ['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254']) METADATA.addAddress(address, 'ipv6')

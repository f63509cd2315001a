import { readFileSync } from 'node:fs'

const PAGE_KIB = 4
/** The kernel buffers of a connection whose client never reads: up to 4 MiB at the sender, and those of the receiver. */
const CLIENT_KIB = 6 * 1024

/**
 * The number of never-reading clients whose buffers the kernel holds without shortage, at most `wanted`. Beyond `tcp_mem` it takes
 * bytes from the gateway only slowly and for minutes, so that the runs do not stall before the first clients are cut off.
 */
export function clientsThatFit(wanted: number): number {
  const [, pressurePages = 0] = readFileSync('/proc/sys/net/ipv4/tcp_mem', 'utf8').trim().split(/\s+/).map(Number)
  return Math.min(wanted, Math.floor((pressurePages * PAGE_KIB) / CLIENT_KIB))
}

import { readFileSync } from 'node:fs'

type Queue = { from: number; to: number; unsent: number; unread: number }

/** Bytes that the kernel holds of what one local port of IPv4 has sent to another and nobody has read (proc(5): tcp). */
export function bytesInKernel(from: number, to: number): number {
  const queues = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1).map(parse)
  const unsent = queues.find((each) => each.from === from && each.to === to)?.unsent ?? 0
  const unread = queues.find((each) => each.from === to && each.to === from)?.unread ?? 0
  return unsent + unread
}

function parse(line: string): Queue {
  const [, local, remote, , queues] = line.trim().split(/\s+/)
  const hex = (part: string | undefined, i: number) => Number.parseInt(part?.split(':')[i] ?? '', 16)
  return { from: hex(local, 1), to: hex(remote, 1), unsent: hex(queues, 0), unread: hex(queues, 1) }
}

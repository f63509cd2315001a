import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { cpuMs } from '../proc.ts'
import type { Peer } from '../relay/peer.ts'
import type { Row } from '../relay/row.ts'

const SETTLE_MS = 5_000
const WATCH_MS = 10_000
const MIB = 1024 * 1024

type Cluster = { members: number; hosts: readonly Peer[] }

/** Measures the work of Redis for members that only renew their leases. */
export async function measureIdle({ url }: { url: string }, { members, hosts }: Cluster): Promise<Row[]> {
  const client = new Redis(url)
  await sleep(SETTLE_MS) // Until the effects of the joins are over.
  const hostsCpu = () => hosts.reduce((sum, { pid }) => sum + cpuMs(pid), 0)
  const [before, hostsBefore, since] = [await readInfo(client), hostsCpu(), performance.now()]
  await sleep(WATCH_MS)
  const after = await readInfo(client)
  const secs = (performance.now() - since) / 1000
  const pieces = after.pieces - before.pieces
  const simulation = (hostsCpu() - hostsBefore) / secs / 10
  client.disconnect()
  return [
    {
      goal: 'members',
      what: 'CPU of Redis (used_cpu_*)',
      value: ((after.cpuSecs - before.cpuSecs) / secs) * 100,
      bound: { atMost: 5 },
      unit: ' %',
      detail: `${members} members; the simulation itself uses ${simulation.toFixed(0)} % of a core`,
    },
    {
      goal: 'members',
      what: 'traffic of Redis per second, in and out',
      value: (after.bytes - before.bytes) / secs / MIB,
      bound: { atMost: 2 },
      unit: ' MiB',
      detail: `${((after.commands - before.commands) / secs).toFixed(0)} commands a second; ${pieces} pieces of the list of members were read`,
    },
  ]
}

async function readInfo(client: Redis) {
  const text = await client.info('all')
  const read = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1] ?? 0)
  return {
    cpuSecs: read('used_cpu_user') + read('used_cpu_sys'),
    bytes: read('total_net_input_bytes') + read('total_net_output_bytes'),
    commands: read('total_commands_processed'),
    /** Only a list of the members scans a hash. */
    pieces: Number(/^cmdstat_hscan:calls=(\d+)/m.exec(text)?.[1] ?? 0),
  }
}

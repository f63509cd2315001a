import { freePort } from '../local-services/free-port.ts'
import type { Slot } from './member.ts'

export type Counts = { gateways: number; workers: number; executors: number }
/** The first port of each kind; 0 takes any free ports. */
export type FirstPorts = { port: number; opsPort: number }

/**
 * Lays out the slots of a cluster. Public ports are consecutive, and so are ops ports: first the gateways', then the workers',
 * then the executors' (D1.3 OPS_PORT).
 */
export async function slotsOf(counts: Counts, { port, opsPort }: FirstPorts): Promise<Slot[]> {
  const { gateways, workers, executors } = counts
  const all = gateways + workers + executors
  const ports =
    port === 0 ? await freePorts(gateways, opsPort === 0 ? [] : portsFrom(opsPort, all)) : portsFrom(port, gateways)
  const opsPorts = opsPort === 0 ? await freePorts(all, ports) : portsFrom(opsPort, all)
  const places = [
    ...ports.map((own, i) => ({ name: `gateway ${i + 1}`, role: 'gateway' as const, port: own })),
    ...placesOf('worker', workers),
    ...placesOf('executor', executors),
  ]
  return places.map((place, i) => ({ ...place, opsPort: opsPorts[i] ?? 0 }))
}

const placesOf = (role: 'worker' | 'executor', count: number) =>
  Array.from({ length: count }, (_, i) => ({ name: `${role} ${i + 1}`, role, port: null }))

const portsFrom = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i)

async function freePorts(count: number, taken: readonly number[]): Promise<number[]> {
  const ports = new Set<number>()
  while (ports.size < count) {
    const port = await freePort()
    if (!taken.includes(port)) ports.add(port)
  }
  return [...ports]
}

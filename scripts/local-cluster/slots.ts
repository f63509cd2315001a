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
  const ports = await portsFrom(port, gateways)
  const opsPorts = await portsFrom(opsPort, gateways + workers + executors)
  const places = [
    ...ports.map((own, i) => ({ name: `gateway ${i + 1}`, role: 'gateway' as const, port: own })),
    ...placesOf('worker', workers),
    ...placesOf('executor', executors),
  ]
  return places.map((place, i) => ({ ...place, opsPort: opsPorts[i] ?? 0 }))
}

const placesOf = (role: 'worker' | 'executor', count: number) =>
  Array.from({ length: count }, (_, i) => ({ name: `${role} ${i + 1}`, role, port: null }))

async function portsFrom(first: number, count: number): Promise<number[]> {
  const ports = new Set<number>()
  while (ports.size < count) ports.add(first === 0 ? await freePort() : first + ports.size)
  return [...ports]
}

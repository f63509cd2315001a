import { freePort } from '../local-services/free-port.ts'
import type { Slot } from './member.ts'

export type Counts = { gateways: number; workers: number }
/** The first port of each kind; 0 takes any free ports. */
export type FirstPorts = { port: number; opsPort: number }

/**
 * Lays out the slots of a cluster. Public ports are consecutive, and so are ops ports: first the gateways', then the workers'
 * (D1.3).
 */
export async function slotsOf({ gateways, workers }: Counts, { port, opsPort }: FirstPorts): Promise<Slot[]> {
  const ports = await portsFrom(port, gateways)
  const opsPorts = await portsFrom(opsPort, gateways + workers)
  const places = [
    ...ports.map((own, i) => ({ name: `gateway ${i + 1}`, role: 'gateway' as const, port: own })),
    ...Array.from({ length: workers }, (_, i) => ({ name: `worker ${i + 1}`, role: 'worker' as const, port: null })),
  ]
  return places.map((place, i) => ({ ...place, opsPort: opsPorts[i] ?? 0 }))
}

async function portsFrom(first: number, count: number): Promise<number[]> {
  const ports = new Set<number>()
  while (ports.size < count) ports.add(first === 0 ? await freePort() : first + ports.size)
  return [...ports]
}

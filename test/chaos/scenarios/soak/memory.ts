import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Memory, now } from '../../history.ts'
import type { World } from '../../world.ts'

const EVERY_MS = 5_000
const KIB_PER_MIB = 1_024

/** Reads the resident memory of every process of the cluster each five seconds, until the signal is aborted. */
export async function watchMemory(world: World, signal: AbortSignal): Promise<Memory[]> {
  const samples: Memory[] = []
  while (!signal.aborted) {
    await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined)
    for (const { name, proc } of [...world.gateways, ...world.workers, ...world.executors]) {
      const rssMiB = readRss(proc.pid)
      if (rssMiB !== undefined) samples.push({ kind: 'memory', t: now(), what: name, rssMiB })
    }
  }
  return samples
}

/** `undefined`: the process has just ended. */
function readRss(pid: number): number | undefined {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kib === undefined ? undefined : Number(kib) / KIB_PER_MIB
  } catch {
    return undefined
  }
}

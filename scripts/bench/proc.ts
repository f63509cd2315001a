import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const MS_PER_TICK = 10
const KIB_PER_MIB = 1024

/** User and system CPU time of a process with all its threads, in milliseconds (proc(5): fields 14 and 15 of stat). */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK
}

/** The same to the nanosecond, as the scheduler counts it. The time of threads that have ended is missing. */
export function threadsCpuMs(pid: number): number {
  const ns = readdirSync(`/proc/${pid}/task`).map((id) => readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'latin1'))
  return ns.reduce((sum, line) => sum + Number(line.split(' ')[0]), 0) / NS_PER_MS
}

const NS_PER_MS = 1e6

/** How long the main thread of a process was ready to run while others had the cores, in milliseconds. NaN where the kernel does not count it. */
export function coreWaitMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[1]) / NS_PER_MS
  } catch {
    return Number.NaN
  }
}

/** CPU time of the whole machine, in milliseconds: user, nice, system and what the hypervisor gave to others (proc(5)). */
export function machineCpuMs(): number {
  const fields = readFileSync('/proc/stat', 'latin1').split('\n')[0]?.trim().split(/\s+/).slice(1).map(Number)
  const [user = 0, nice = 0, system = 0, , , , , steal = 0] = fields ?? []
  return (user + nice + system + steal) * MS_PER_TICK
}

/** Resident memory in MiB. */
export function rssMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
  return Number(kib) / KIB_PER_MIB
}

export type JobRetry = {
  /** The memory has settled when it has stayed within `slackMiB` for this long. */
  calmMs: number
  slackMiB: number
  maxMs: number
  signal: AbortSignal
}

const LOOK_EVERY_MS = 100

/** Waits until the resident memory has settled, at most `maxMs`, and resolves with it. */
export async function settledRssMiB(pid: number, { calmMs, slackMiB, maxMs, signal }: JobRetry): Promise<number> {
  const end = performance.now() + maxMs
  let mark = rssMiB(pid)
  let calmSince = performance.now()
  while (performance.now() < end && performance.now() - calmSince < calmMs) {
    await sleep(LOOK_EVERY_MS, undefined, { signal })
    const now = rssMiB(pid)
    if (Math.abs(now - mark) <= slackMiB) continue
    mark = now
    calmSince = performance.now()
  }
  return rssMiB(pid)
}

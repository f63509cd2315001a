import { setTimeout as sleep } from 'node:timers/promises'
import type { LoopProbe, Stall } from '../harness/loop-probe.ts'
import { Connection } from './connection.ts'
import type { Finding } from './finding.ts'
import { type FuzzInput, send } from './input.ts'
import type { Played } from './play.ts'

/** The longest time for which a request may block the event loop (P12). */
export const MAX_STALL_MS = 250

/** Time for the process to report the stall. */
const REPORT_MS = 60
const MAX_SUSPECTS = 20

export type FuzzedProcess = { port: number; probe: LoopProbe }

/** Finds the requests that blocked the event loop: sends those that were in progress again, one by one. */
export async function findCulprits(
  played: Played,
  stalls: readonly Stall[],
  process: FuzzedProcess,
): Promise<Finding[]> {
  const findings = new Map<string, Finding>()
  for (const stall of stalls) {
    if (stall.busyMs <= MAX_STALL_MS) continue
    for (const finding of await explain(stall, played, process)) findings.set(finding.name, finding)
  }
  return [...findings.values()]
}

async function explain(
  { busyMs, ms, until }: Stall,
  { inputs, spans }: Played,
  process: FuzzedProcess,
): Promise<Finding[]> {
  const near = spans.filter(({ from, to }) => from < until && to > until - ms).slice(0, MAX_SUSPECTS)
  const suspects: FuzzInput[] = []
  const culprits: Finding[] = []
  for (const { index } of near) {
    const input = await inputs.at(index)
    const alone = await stallOf(input, process)
    suspects.push(input)
    if (alone > MAX_STALL_MS) culprits.push(blocked(input.name, alone, input.bytes))
  }
  if (culprits.length > 0 || suspects.length === 0) return culprits
  if ((await stallOfAll(suspects, process)) <= MAX_STALL_MS) return [] // It was a garbage collection, or code that ran for the first time.
  const names = suspects.map(({ name }) => name).join(', ')
  return [blocked(`only together: ${names}`, busyMs, suspects[0]?.bytes ?? Buffer.alloc(0))]
}

const stallOf = (input: FuzzInput, process: FuzzedProcess) => stallOfAll([input], process)

/** The longest stall while the requests are sent at the same time. */
async function stallOfAll(inputs: readonly FuzzInput[], { port, probe }: FuzzedProcess): Promise<number> {
  const from = probe.mark()
  await Promise.all(
    inputs.map(async (input) => {
      using connection = await Connection.open(port)
      await send(input, connection)
    }),
  )
  await sleep(REPORT_MS)
  return Math.max(0, ...probe.stalls(from).map(({ busyMs }) => busyMs))
}

function blocked(name: string, ms: number, bytes: Buffer): Finding {
  return { name, problems: [`the event loop was blocked for ${ms.toFixed(0)} ms`], bytes }
}

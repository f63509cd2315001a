import { setTimeout as sleep } from 'node:timers/promises'
import type { LoopProbe, Stall } from '../harness/loop-probe.ts'
import { Connection } from './connection.ts'
import type { Finding } from './finding.ts'
import type { Played } from './play.ts'
import { fire, type Shot } from './shot.ts'

/** Longer than this the event loop must not be held up (design §7, 10). */
export const MAX_STALL_MS = 250

/** For the process to tell of the stall. */
const TELL_MS = 60
const MAX_SUSPECTS = 20

export type Witness = { port: number; insider: LoopProbe }

/** Who held the event loop up: those who were under way are asked once more, one by one. */
export async function findCulprits(played: Played, stalls: readonly Stall[], witness: Witness): Promise<Finding[]> {
  const findings = new Map<string, Finding>()
  for (const stall of stalls) {
    if (stall.busyMs <= MAX_STALL_MS) continue
    for (const finding of await explain(stall, played, witness)) findings.set(finding.name, finding)
  }
  return [...findings.values()]
}

async function explain({ busyMs, ms, until }: Stall, { shots, spans }: Played, witness: Witness): Promise<Finding[]> {
  const near = spans.filter(({ from, to }) => from < until && to > until - ms).slice(0, MAX_SUSPECTS)
  const suspects: Shot[] = []
  const culprits: Finding[] = []
  for (const { index } of near) {
    const shot = await shots.at(index)
    const alone = await stallOf(shot, witness)
    suspects.push(shot)
    if (alone > MAX_STALL_MS) culprits.push(heldUp(shot.name, alone, shot.bytes))
  }
  if (culprits.length > 0 || suspects.length === 0) return culprits
  const names = suspects.map(({ name }) => name).join(', ')
  return [heldUp(`together, none alone: ${names}`, busyMs, suspects[0]?.bytes ?? Buffer.alloc(0))]
}

async function stallOf(shot: Shot, { port, insider }: Witness): Promise<number> {
  const from = insider.mark()
  using connection = await Connection.open(port)
  await fire(shot, connection)
  await sleep(TELL_MS)
  return Math.max(0, ...insider.stalls(from).map(({ busyMs }) => busyMs))
}

function heldUp(name: string, ms: number, bytes: Buffer): Finding {
  return { name, problems: [`the event loop was held up for ${ms.toFixed(0)} ms`], bytes }
}

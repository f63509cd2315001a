import { parentPort, workerData } from 'node:worker_threads'
import { planOf } from './plan.ts'
import { PLANTED, plant } from './planted.ts'
import type { Outcome } from './simulation.ts'

/** The share of one thread: every `step`th seed until one fails. `bug` is the number of the one that is planted. */
export type Job = { first: number; count: number; step: number; isKeptGoing: boolean; bug: number | undefined }
/** `moved`: the stories in which a run went on at another worker. */
export type Report = { count: number; turns: number; moved: number; failed: readonly Outcome[] }

const job = workerData as Job
const bug = job.bug === undefined ? undefined : PLANTED[job.bug]
if (bug) plant(bug)
const { simulate } = await import('./simulation.ts') // After the bug is planted.
const report = await carryOut(job)
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- This is a thread's port, not a window.
parentPort?.postMessage(report)

async function carryOut({ first, count, step, isKeptGoing }: Job): Promise<Report> {
  const failed: Outcome[] = []
  let [turns, moved] = [0, 0]
  for (let done = 0; done < count; done++) {
    const outcome = await simulate(planOf(first + done * step))
    turns += outcome.turns
    if (outcome.hasMovedRun) moved++
    if (outcome.violation) failed.push(outcome)
    if (outcome.violation && !isKeptGoing) return { count: done + 1, turns, moved, failed }
  }
  return { count, turns, moved, failed }
}

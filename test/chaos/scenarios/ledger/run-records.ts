import { setTimeout as sleep } from 'node:timers/promises'
import type { RunPage, RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import { allOf, type Guarantee, noneOf } from '../../../harness/guarantee.ts'
import { describeEnd } from '../../load.ts'
import type { CustomerRun } from './customer-load.ts'

/** Longer than it takes until the runs of a dead process are recorded as lost. */
const RECORDED_WITHIN_MS = 75_000
const LOOK_EVERY_MS = 1_000
const CALL_MS = 10_000

type Recorded = { runs: readonly CustomerRun[]; killsAlone: readonly number[] }

/**
 * Reads what `GET /runs` lists, until all of these runs have ended there or the time is over. With `killsAlone` records of runs may be
 * lost: then until none of the listed ones goes on, at two looks one after the other.
 */
export async function readRecords(url: string, { runs, killsAlone }: Recorded): Promise<RunSummary[]> {
  const wanted = named(runs)
  let looksAtRest = 0
  for (const until = performance.now() + RECORDED_WITHIN_MS; ; await sleep(LOOK_EVERY_MS)) {
    const listed = await listAll(url)
    const ended = new Set(listed.filter(({ ended_at }) => ended_at !== null).map(({ run_id }) => run_id))
    looksAtRest = ended.size === listed.length ? looksAtRest + 1 : 0
    const isComplete = wanted.every(({ stream }) => ended.has(stream.run)) || (killsAlone.length > 0 && looksAtRest > 1)
    if (performance.now() > until || isComplete) return listed
  }
}

/** Ends that the only process has delivered in the last 50 ms before a kill are lost with it: at 200 a second about five, and ten at most. */
const MAX_WRONG_PER_KILL = 10
/** An end that was delivered so long before a kill is on the disk on any machine. */
const WRITTEN_WITHIN_MS = 1_500
/** A client may read the last frames after the kill. */
const READ_WITHIN_MS = 500

type Listed = { runs: readonly CustomerRun[]; listed: readonly RunSummary[]; killsAlone: readonly number[] }

/** Whether each run is listed once, and as its client has seen it end. `killsAlone`: when a process was killed that alone knew how its runs ended. */
export function recordGuarantees(title: string, { runs, listed, killsAlone }: Listed): Guarantee[] {
  const byId = Map.groupBy(listed, ({ run_id }) => run_id)
  const wanted = named(runs).filter(({ ended }) => killsAlone.length === 0 || ended.terminal !== undefined)
  const recordOf = ({ stream }: CustomerRun) => byId.get(stream.run)?.[0]
  const isWrong = (run: CustomerRun) => !isTrue(run, recordOf(run))
  const wrong = wanted.filter(isWrong).map((run) => describe(run, recordOf(run)))
  const twice = wanted.filter(({ stream }) => (byId.get(stream.run)?.length ?? 0) > 1).map(({ stream }) => stream.run)
  const right = allOf(`${title}: runs whose record says how they ended`, wanted.length - wrong.length, wanted.length)
  const missing = noneOf(`${title}: records that are missing or say something else`, wrong)
  const old = wanted.filter((run) => isWrong(run) && !isJustBefore(run, killsAlone))
  const lost = [
    { ...missing, unit: ' runs', goal: { atMost: killsAlone.length * MAX_WRONG_PER_KILL } }, // More at a busy moment.
    noneOf(
      `${title}: of them ended ${WRITTEN_WITHIN_MS} ms and more before a kill`,
      old.map((run) => describe(run, recordOf(run))),
    ),
  ]
  return [...(killsAlone.length > 0 ? lost : [right, missing]), noneOf(`${title}: runs that are listed twice`, twice)]
}

const isJustBefore = ({ ended: { terminal } }: CustomerRun, kills: readonly number[]): boolean =>
  terminal !== undefined && kills.some((t) => t - WRITTEN_WITHIN_MS < terminal.t && terminal.t <= t + READ_WITHIN_MS)

/** The runs whose id the client has. */
const named = (runs: readonly CustomerRun[]): CustomerRun[] => runs.filter(({ stream }) => stream.run !== '')

/** Ends of the client's own stream, after which the run may have gone on. */
const OWN_ENDS: ReadonlySet<string> = new Set([
  'relay_unavailable',
  'stream_gap',
  'worker_draining',
  'left',
  'ended',
  'broken',
])

function isTrue({ ended }: CustomerRun, record: RunSummary | undefined): boolean {
  if (!record || record.ended_at === null) return false
  const end = describeEnd(ended)
  if (end === 'done') return record.status === 'done' && record.code === 'ok'
  // A worker may die after it has recorded the end, and before the last frame is at the gateway.
  if (end === 'worker_lost' && record.code === 'ok') return record.status === 'done'
  if (end === 'plan_queued' || ended.terminal === undefined || OWN_ENDS.has(end)) return true
  return record.code === end
}

const describe = ({ stream, ended }: CustomerRun, record: RunSummary | undefined): string =>
  `${stream.run}: ${describeEnd(ended)} is ${record ? `${record.status} ${record.code}` : 'not listed'}`

async function listAll(url: string): Promise<RunSummary[]> {
  const runs: RunSummary[] = []
  let cursor: string | null = null
  do {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`
    const response: Response = await fetch(`${url}/runs?limit=200${query}`, { signal: AbortSignal.timeout(CALL_MS) })
    if (!response.ok) throw new Error(`the list of runs was refused with ${response.status}`)
    const page = (await response.json()) as RunPage
    runs.push(...page.runs)
    cursor = page.next_cursor
  } while (cursor !== null)
  return runs
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { RunPage, RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import { allOf, type Guarantee, noneOf } from '../../../harness/guarantee.ts'
import { describeEnd } from '../../load.ts'
import type { CustomerRun } from './customer-load.ts'

/** Longer than it takes until the runs of a dead process are recorded as lost. */
const RECORDED_WITHIN_MS = 75_000
const LOOK_EVERY_MS = 1_000
const CALL_MS = 10_000

/** Reads what `GET /runs` lists, until all of these runs have ended there or the time is over. */
export async function readRecords(url: string, runs: readonly CustomerRun[]): Promise<RunSummary[]> {
  const wanted = named(runs)
  for (const until = performance.now() + RECORDED_WITHIN_MS; ; await sleep(LOOK_EVERY_MS)) {
    const listed = await listAll(url)
    const ended = new Set(listed.filter(({ ended_at }) => ended_at !== null).map(({ run_id }) => run_id))
    if (performance.now() > until || wanted.every(({ stream }) => ended.has(stream.run))) return listed
  }
}

/** Ends that the only process has delivered in the last 50 ms before a kill are lost with it: at 200 a second about five, and ten at most. */
const MAX_WRONG_PER_KILL = 10

type Listed = { runs: readonly CustomerRun[]; listed: readonly RunSummary[]; killsAlone: number }

/** Whether each run is listed once, and as its client has seen it end. `killsAlone`: how often a process was killed that alone knew how its runs ended. */
export function recordGuarantees(title: string, { runs, listed, killsAlone }: Listed): Guarantee[] {
  const byId = Map.groupBy(listed, ({ run_id }) => run_id)
  const wanted = named(runs).filter(({ ended }) => killsAlone === 0 || ended.terminal !== undefined)
  const recordOf = ({ stream }: CustomerRun) => byId.get(stream.run)?.[0]
  const wrong = wanted.filter((run) => !isTrue(run, recordOf(run))).map((run) => describe(run, recordOf(run)))
  const twice = wanted.filter(({ stream }) => (byId.get(stream.run)?.length ?? 0) > 1).map(({ stream }) => stream.run)
  const right = allOf(`${title}: runs whose record says how they ended`, wanted.length - wrong.length, wanted.length)
  const missing = noneOf(`${title}: records that are missing or say something else`, wrong)
  return [
    ...(killsAlone > 0 ? [{ ...missing, goal: { atMost: killsAlone * MAX_WRONG_PER_KILL } }] : [right, missing]),
    noneOf(`${title}: runs that are listed twice`, twice),
  ]
}

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

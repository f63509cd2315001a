import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { RunSummary } from '../../../shared/cluster/commands/runs.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { ApiType } from '../../../shared/platform/api/api-type.ts'

/** The time in which a run, or one call of it, may have changed files, or the one file of this path. */
export type Work = {
  fromMs: number
  toMs: number
  path?: string | undefined
  by: NonNullable<ApiType<'WorkspaceFile'>['changed_by']>
}

type Folder = { scopeId: string; run: RunSummary | undefined }

/** The clock of a file system goes on in steps of some milliseconds: a time of it may be older than the call that has made it. */
const STEP_MS = 10
/** The runs of a session that are looked at, the newest ones. */
const MAX_RUNS = 20
/** The built-in tools that change no file themselves. */
const HARMLESS = new Set([
  'Read',
  'Glob',
  'Grep',
  'WebFetch',
  'TodoWrite',
  'ExitPlanMode',
  'Deliver',
  'Agent',
  'Team',
  'Skill',
  'Dream',
])

/** The tools that change the file of their path alone. */
const CHANGE_ONE = new Set(['Write', 'Edit'])

/** What was at work in a folder, or of it one run alone: calls before runs, those that began last first (D50.3a). */
export async function worksOf(
  broker: Pick<Broker, 'getRun' | 'listRuns'>,
  tenant: TenantId,
  { scopeId, run }: Folder,
): Promise<Work[]> {
  const runs = run ? [run] : await runsOf(broker, tenant, scopeId)
  const newestFirst = (a: Work, b: Work) => b.fromMs - a.fromMs
  return [...runs.flatMap(callsOf).toSorted(newestFirst), ...runs.map(workOf).toSorted(newestFirst)]
}

async function runsOf(
  broker: Pick<Broker, 'getRun' | 'listRuns'>,
  tenant: TenantId,
  sessionId: string,
): Promise<RunSummary[]> {
  const { runs } = await broker.listRuns(tenant, { limit: MAX_RUNS, session_id: sessionId })
  const own = runs.filter(({ session_id: id }) => id === sessionId)
  const found = await Promise.allSettled(own.map(({ run_id: id }) => broker.getRun(tenant, id))) // One may be forgotten meanwhile.
  return found.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
}

const startOf = ({ started_at: at }: RunSummary): number => Date.parse(at)

const workOf = (run: RunSummary): Work => ({
  fromMs: startOf(run),
  toMs: run.ended_at === null ? Infinity : Date.parse(run.ended_at),
  by: { run_id: run.run_id },
})

const callsOf = (run: RunSummary): Work[] =>
  (run.phases ?? []).flatMap(({ kind, name, started_ms, ended_ms, tool_use_id: call, path }): Work[] => {
    if (kind !== 'tool' || call === undefined || HARMLESS.has(name)) return []
    const start = startOf(run)
    const time = { fromMs: start + started_ms - STEP_MS, toMs: ended_ms === null ? Infinity : start + ended_ms + 1 }
    return [{ ...time, path: CHANGE_ONE.has(name) ? path : undefined, by: { run_id: run.run_id, tool_use_id: call } }]
  })

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

/** The clocks of a file system and of a run are not the same, and both are read late. Of a call that names its file that does no harm. */
const SLACK_MS = { named: 100, other: 10 }
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
    const file = CHANGE_ONE.has(name) ? path : undefined
    const slack = file === undefined ? SLACK_MS.other : SLACK_MS.named
    const toMs = ended_ms === null ? Infinity : start + ended_ms + slack
    return [{ fromMs: start + started_ms - slack, toMs, path: file, by: { run_id: run.run_id, tool_use_id: call } }]
  })

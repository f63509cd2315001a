import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { RunSummary } from '../../../shared/cluster/commands/runs.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { ApiType } from '../../../shared/platform/api/api-type.ts'

/** The time in which a run, or one of its calls, may have changed files; with a path, only that file. */
export type Work = {
  fromMs: number
  toMs: number
  path?: string | undefined
  by: NonNullable<ApiType<'WorkspaceFile'>['changed_by']>
}

type Folder = { scopeId: string; run: RunSummary | undefined }

/** The clocks of the file system and of a run differ, and both are read late. A call that names its file may have more slack. */
const SLACK_MS = { named: 100, other: 10 }
/** Only the newest runs of a session are searched, at most this many. */
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

/** The tools that change only the file that they name. */
const CHANGE_ONE = new Set(['Write', 'Edit'])

/**
 * Returns what may have changed files in a folder, or what a single run may have changed: calls before runs, and the
 * latest first (D50.3a).
 */
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
  const found = await Promise.allSettled(own.map(({ run_id: id }) => broker.getRun(tenant, id))) // A run may be forgotten meanwhile.
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

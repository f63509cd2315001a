import type { Schema } from '../../../../shared/client/api.ts'
import { isOfProvider } from '../../parts/run/causes.ts'

type Run = Schema<'Run'>

/** Failed runs with the same cause, the newest first. */
export type Failures = { code: string; runs: readonly Run[] }

/**
 * Failures that need attention, grouped by cause, the newest cause first. A plan has its own entry, which includes its steps; a message is left
 * out if a later message of its conversation succeeded.
 */
export function failuresOf(failed: readonly Run[], done: readonly Run[]): Failures[] {
  const wentOn = (run: Run) =>
    done.some((each) => each.session_id === run.session_id && each.started_at > run.started_at)
  const open = failed.filter(
    (run) => run.kind !== 'plan' && run.kind !== 'step' && !(run.session_id !== undefined && wentOn(run)),
  )
  const groups = Map.groupBy(open.toSorted(newestFirst), ({ code }) => code ?? 'internal')
  return [...groups].map(([code, runs]) => ({ code, runs }))
}

/** The newest failures of a model that its provider has caused. */
export type Trouble = { model: string; runs: readonly Run[] }

/** What failed longer ago is no news. */
const RECENT_MS = 3_600_000

/** The models with a run that failed because of the provider within the last hour. */
export function troublesOf(failed: readonly Run[], nowMs: number): Trouble[] {
  const caused = failed.filter(({ code, kind }) => isOfProvider(code) && kind !== 'plan').toSorted(newestFirst)
  const isNew = ([newest]: readonly Run[]) => newest !== undefined && nowMs - Date.parse(endOf(newest)) <= RECENT_MS
  return [...Map.groupBy(caused, ({ model }) => model ?? '')]
    .map(([model, runs]) => ({ model, runs }))
    .filter(({ runs }) => isNew(runs))
}

/** The time since which no run has succeeded: that of the first failure after the newest successful run. `undefined` if there is no such failure. */
export function lasting(
  { runs }: Trouble,
  well: Run | undefined,
): { code: string; since: string; count: number } | undefined {
  const behind = runs.filter((run) => !well || endOf(run) > endOf(well))
  const [newest, oldest] = [behind[0], behind.at(-1)]
  return newest && oldest && { code: newest.code ?? '', since: endOf(oldest), count: behind.length }
}

const endOf = ({ ended_at, started_at }: Run): string => ended_at ?? started_at

const newestFirst = (one: Run, other: Run): number => endOf(other).localeCompare(endOf(one))

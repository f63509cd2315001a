import type { Schema } from '../../../../shared/client/api.ts'
import { isOfProvider } from '../../parts/run/causes.ts'

type Run = Schema<'Run'>

/** Failed runs of one cause, the newest first. */
export type Failures = { code: string; runs: readonly Run[] }

/**
 * What has failed and needs somebody, by its cause, the newest cause first. A plan has an entry of its own, and its steps belong to it; a message
 * is left out where its conversation went on well.
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

/** A model whose provider lets runs fail. */
export type Trouble = { code: string; model: string; since: string; runs: readonly Run[] }

/** What failed longer ago is no news. */
const RECENT_MS = 3_600_000

/** The models that fail now: their newest runs have failed by their providers, within the last hour, and none has ended well since. */
export function troublesOf(failed: readonly Run[], done: readonly Run[], nowMs: number): Trouble[] {
  const caused = failed.filter(({ code, kind }) => isOfProvider(code) && kind !== 'plan').toSorted(newestFirst)
  return [...Map.groupBy(caused, ({ model }) => model ?? '')].flatMap(([model, runs]) => {
    const well = done.reduce((last, run) => (run.model === model && endOf(run) > last ? endOf(run) : last), '')
    const since = runs.filter((run) => endOf(run) > well)
    const [newest, oldest] = [since[0], since.at(-1)]
    if (!newest || !oldest || nowMs - Date.parse(endOf(newest)) > RECENT_MS) return []
    return { code: newest.code ?? '', model, since: endOf(oldest), runs: since }
  })
}

const endOf = ({ ended_at, started_at }: Run): string => ended_at ?? started_at

const newestFirst = (one: Run, other: Run): number => endOf(other).localeCompare(endOf(one))

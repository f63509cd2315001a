import type { FlowFailure, Verdict } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import { type ShownFailure, shownFailure } from '../execute/outcome.ts'

/** One execution of a version of a flow. */
export type Measured = {
  trace_id: string | null
  /** `null` when the execution failed. */
  verdict: Verdict | null
  output: unknown
  cost_usd: number
  duration_ms: number
  error: FlowFailure | null
}

/** The draft's execution beside the recorded one for the same input. */
export type EvaluatedRun = {
  trace_id: string
  evaluation_trace_id: string | null
  verdict: Verdict | null
  published_verdict: Verdict | null
  differences: Difference[]
  cost_usd: number
  published_cost_usd: number
  duration_ms: number
  published_duration_ms: number
  error: ShownFailure | null
}

/** `POST /flows/{name}/evaluate`. Rates are from 0 to 1: the share of the runs whose verdict is `ok`. Costs are sums. */
export type EvaluationReport = {
  flow_id: string
  version: number
  published_version: number | null
  pass_rate: number
  published_pass_rate: number
  cost_usd: number
  published_cost_usd: number
  latency_ms_p50: number
  published_latency_ms_p50: number
  runs: EvaluatedRun[]
}

export function compare(draft: Measured, published: Measured & { trace_id: string }): EvaluatedRun {
  return {
    trace_id: published.trace_id,
    evaluation_trace_id: draft.trace_id,
    verdict: draft.verdict,
    published_verdict: published.verdict,
    differences: differencesOf(draft.output, published.output),
    cost_usd: draft.cost_usd,
    published_cost_usd: published.cost_usd,
    duration_ms: draft.duration_ms,
    published_duration_ms: published.duration_ms,
    error: draft.error && shownFailure(draft.error),
  }
}

/** `runs` holds at least one. */
export function summarize(
  flow: { name: string; version: number; published_version: number | null },
  runs: EvaluatedRun[],
): EvaluationReport {
  return {
    flow_id: flow.name,
    version: flow.version,
    published_version: flow.published_version,
    pass_rate: shareOf(runs, ({ verdict }) => verdict === 'ok'),
    published_pass_rate: shareOf(runs, ({ published_verdict: verdict }) => verdict === 'ok'),
    cost_usd: sumOf(runs, (run) => run.cost_usd),
    published_cost_usd: sumOf(runs, (run) => run.published_cost_usd),
    latency_ms_p50: medianOf(runs.map((run) => run.duration_ms)),
    published_latency_ms_p50: medianOf(runs.map((run) => run.published_duration_ms)),
    runs,
  }
}

const shareOf = <T>(items: readonly T[], holds: (item: T) => boolean): number =>
  items.filter(holds).length / items.length

const sumOf = <T>(items: readonly T[], valueOf: (item: T) => number): number =>
  items.reduce((sum, item) => sum + valueOf(item), 0)

/** The lower one of the two middle values. */
const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0

/** A place where two outputs differ; `path` is a JSON pointer, an absent value is `null`. */
type Difference = { path: string; draft: unknown; published: unknown }

const MAX_DIFFERENCES = 50

/** The first 50 places where two JSON values differ, in the order of the draft's fields. */
export function differencesOf(draft: unknown, published: unknown): Difference[] {
  const found: Difference[] = []
  collect({ path: '', draft, published }, found)
  return found
}

function collect({ path, draft, published }: Difference, found: Difference[]): void {
  if (found.length >= MAX_DIFFERENCES || draft === published) return
  const [a, b] = [entriesOf(draft), entriesOf(published)]
  if (!a || !b || Array.isArray(draft) !== Array.isArray(published)) {
    found.push({ path, draft: draft ?? null, published: published ?? null })
    return
  }
  for (const key of new Set([...a.keys(), ...b.keys()])) {
    collect({ path: `${path}/${escape(key)}`, draft: a.get(key), published: b.get(key) }, found)
  }
}

/** The fields of an object or the items of an array; `undefined` for other values. */
function entriesOf(value: unknown): Map<string, unknown> | undefined {
  return isJsonObject(value) || Array.isArray(value) ? new Map(Object.entries(value)) : undefined
}

const escape = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1')

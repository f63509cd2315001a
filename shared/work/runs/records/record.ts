import type { RunSummary } from '../../../cluster/commands/runs.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { truncate } from '../../../kernel/text.ts'
import type { RunFigures } from '../run-figures.ts'

/** The facts of a run that are known when it begins to exist. */
export type RunFacts = {
  tenant: TenantId
  run_id: string
  kind: NonNullable<RunSummary['kind']>
  started_at: string
  session_id?: string | undefined
  customer_id?: string | undefined
  plan_id?: string | undefined
  step_id?: string | undefined
  flow?: string | undefined
  trace_id?: string | undefined
  request_id?: string | undefined
  subject?: string | undefined
  title?: string | undefined
}

export type EndedStatus = Extract<RunSummary['status'], 'done' | 'failed' | 'cancelled'>

/** The record of a run that has ended (D20). */
export type RunRecord = RunSummary & { status: EndedStatus; ended_at: string }

/** Code points of a title. */
const TITLE_CHARS = 120

/** The beginning of a prompt, in one line. Of a long prompt only the beginning is read. */
export const titleOf = (prompt: string): string =>
  truncate(oneLine(prompt.trimStart().slice(0, 4 * TITLE_CHARS)), TITLE_CHARS, '')

const oneLine = (text: string): string => text.replace(HALF_PAIR, '').replaceAll(/\s+/g, ' ').trim()

/** The first half of a surrogate pair whose second half was cut off. */
const HALF_PAIR = /[\ud800-\udbff]$/

type Base = 'run_id' | 'status' | 'started_at' | 'ended_at' | 'event_count'
type Details = Omit<RunSummary, Base>

/** The fields of a run that tell what it is and what it has spent by now. */
export function describeRun(
  { tenant: _tenant, run_id: _id, started_at: _start, customer_id, ...facts }: RunFacts,
  figures: RunFigures,
): Details {
  const { code, model, firstEventMs, firstTokenMs, turns, toolCalls, permissions, cacheReadTokens, spent } = figures
  return withoutUndefined({
    code,
    ...facts,
    customer_id: knownCustomer(customer_id),
    model,
    queued_ms: rounded(firstEventMs),
    first_token_ms: rounded(firstTokenMs),
    turns,
    tool_calls: toolCalls,
    permissions,
    ...spent,
    cache_read_tokens: cacheReadTokens,
  })
}

type End = { status: EndedStatus; endedAt: string; eventCount: number }

export const recordOf = (facts: RunFacts, figures: RunFigures, { status, endedAt, eventCount }: End): RunRecord => ({
  run_id: facts.run_id,
  status,
  started_at: facts.started_at,
  ended_at: endedAt,
  event_count: eventCount,
  ...describeRun(facts, figures),
})

/** The record of a run whose process died: nobody knows how far it had come. */
export const lostRecord = ({ tenant: _tenant, customer_id, ...facts }: RunFacts, endedAt: string): RunRecord => ({
  ...withoutUndefined({ ...facts, customer_id: knownCustomer(customer_id) }),
  status: 'failed',
  code: 'worker_lost',
  ended_at: endedAt,
  event_count: 0,
})

/** An empty id means no customer. */
const knownCustomer = (id: string | undefined): string | undefined => id || undefined

const rounded = (ms: number | undefined) => (ms === undefined ? undefined : Math.round(ms))

/** As JSON has it: without the fields that are `undefined`. */
type Defined<T> = { [Field in keyof T]: Exclude<T[Field], undefined> }

function withoutUndefined<T extends object>(fields: T): Defined<T> {
  const defined: Partial<T> = {}
  for (const field in fields) if (fields[field] !== undefined) defined[field] = fields[field]
  return defined as Defined<T>
}

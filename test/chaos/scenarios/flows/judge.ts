import { isDeepStrictEqual } from 'node:util'
import { allOf, type Guarantee, noneOf, slowest } from '../../../harness/guarantee.ts'
import type { Fault } from '../fault.ts'
import type { FlowAnswer } from './call.ts'
import type { FlowLoad } from './load.ts'
import type { EchoModel } from './model.ts'
import type { FlowRecord } from './records.ts'

/** The answers that a load got, and the records that are stored after it. */
export type FlowEvidence = {
  load: Pick<FlowLoad, 'answers' | 'unserved' | 'differences' | 'replays'>
  records: readonly FlowRecord[]
  model: Pick<EchoModel, 'countOf'>
  /** Those that end executions. */
  faults: readonly Fault[]
  /** Whether the process that was to answer was killed in this time. */
  isKilled(gateway: string, from: number, to: number): boolean
}

/** From a fault to the answers of the executions that it has cut off: 4 s until the executor is evicted, the takeover, and the answer. */
const LOST_WITHIN_MS = 8_000
const STATUSES = new Set([200, 502, 503])
/** Streams that the gateway ends itself, while the execution goes on. */
const OF_GATEWAY = new Set(['relay_unavailable', 'stream_gap', 'worker_draining'])

/** The promises to the callers of flows, whatever dies. */
export function flowGuarantees({ load, records, model, faults, isKilled }: FlowEvidence): Guarantee[] {
  const { answers } = load
  const unanswered = answers.filter(({ status, gateway, from, to }) => status === 0 && !isKilled(gateway, from, to))
  const keyed = new Set(answers.flatMap(({ key }) => key ?? []))
  const served = new Set(answers.flatMap(({ key, status }) => (key !== undefined && status === 200 ? [key] : [])))
  const given = answers.filter(({ status }) => status !== 0)
  return [
    noneOf(`calls of ${answers.length} that a living gateway did not answer`, unanswered.map(describe)),
    noneOf('answers other than 200, 502 and 503', given.filter(({ status }) => !STATUSES.has(status)).map(describe)),
    noneOf('failures without a trace id', given.filter(({ traceId }) => traceId === '').map(describe)),
    noneOf(
      'malformed streams',
      answers.flatMap((answer) => answer.problems.map((each) => `${describe(answer)}: ${each}`)),
    ),
    noneOf('answers that differ from the record', differences(given, records)),
    noneOf(
      `executions of ${records.length} that did not end`,
      records.filter(isOpen).map(({ trace_id, status }) => `${trace_id}: ${status}`),
    ),
    noneOf('keys that two executions served', servedTwice(records)),
    noneOf('prompts sent more often than they were executed', sentTooOften(records, model)),
    noneOf('calls with a key that were lost with one fault', lostAtOnce(given, faults).map(describe)),
    allOf('calls with a key that were served in the end', served.size, keyed.size),
    noneOf('calls with a key that failed for a minute', load.unserved),
    noneOf(`answers of ${load.replays} repeated calls that differ`, load.differences),
    slowest(
      'from a fault to the answers of executions that it cut off',
      lostAfter(given, faults, model),
      LOST_WITHIN_MS,
    ),
  ]
}

const describe = ({ gateway, input, key, isStream, status, code, traceId, from, to }: FlowAnswer): string =>
  [
    gateway,
    input.token,
    key ? 'keyed' : '',
    isStream ? 'stream' : '',
    status,
    code,
    traceId,
    `${Math.round(to - from)} ms`,
  ].join(' ')

const isOpen = ({ status }: FlowRecord): boolean => status === 'queued' || status === 'running'

/** Each answer must be that of the record which it names. */
function differences(answers: readonly FlowAnswer[], records: readonly FlowRecord[]): string[] {
  const byTrace = new Map(records.map((record) => [record.trace_id, record]))
  return answers.flatMap((answer) => {
    if (answer.traceId === '' || (answer.isStream && OF_GATEWAY.has(answer.code ?? ''))) return []
    const record = byTrace.get(answer.traceId)
    if (record && agree(answer, record)) return []
    return [`${describe(answer)}, but the record says ${record?.status} ${JSON.stringify(record?.error ?? null)}`]
  })
}

const TYPES: Record<number, string> = { 502: 'upstream_error', 503: 'unavailable_error' }

function agree({ status, message, output, input }: FlowAnswer, record: FlowRecord): boolean {
  if (record.input.token !== input.token) return false
  if (record.status !== 'ok') return record.error?.type === TYPES[status] && record.error?.message === message
  return status === 200 && isDeepStrictEqual(output, { token: input.token }) && isDeepStrictEqual(output, record.output)
}

/** The keys for which more than one execution was successful. */
export function servedTwice(records: readonly FlowRecord[]): string[] {
  const served = records.filter(({ status, idempotency_key: key }) => status === 'ok' && key !== null)
  const byKey = Map.groupBy(served, ({ idempotency_key: key }) => key ?? '')
  return [...byKey].flatMap(([key, { length }]) => (length > 1 ? [`${key}: ${length} times`] : []))
}

/** How often an execution sends its prompt: not at all when it was refused, and twice when it has a key and began anew (D34.2). */
const mostSent = ({ status, idempotency_key: key }: FlowRecord): number =>
  status === 'rejected' ? 0 : key === null ? 1 : 2

export function sentTooOften(records: readonly FlowRecord[], model: FlowEvidence['model']): string[] {
  const byToken = Map.groupBy(records, ({ input }) => input.token)
  return [...byToken].flatMap(([token, executions]) => {
    const allowed = executions.reduce((sum, execution) => sum + mostSent(execution), 0)
    const sent = model.countOf(token)
    return sent > allowed ? [`${token}: sent ${sent} times by ${allowed} executions`] : []
  })
}

/** The flow only reads, so a run with a key begins anew at another executor when its first one is lost, and is lost only with its second (D34.2). */
function lostAtOnce(answers: readonly FlowAnswer[], faults: readonly Fault[]): FlowAnswer[] {
  const begun = new Map<string, number>()
  for (const { traceId, from } of answers) begun.set(traceId, Math.min(from, begun.get(traceId) ?? from))
  return answers.filter(({ key, code, traceId, to }) => {
    const since = begun.get(traceId) ?? 0
    const hit = faults.filter(({ from }) => from >= since && from <= to)
    return key !== undefined && code === 'worker_lost' && hit.length < 2
  })
}

/**
 * The answers of executions that were lost, and of those that began anew: their prompt was sent again, for which the model took its time. Nobody is
 * evicted, and no job is handed out, before Redis is back.
 */
function lostAfter(answers: readonly FlowAnswer[], faults: readonly Fault[], model: FlowEvidence['model']): number[] {
  return answers.flatMap(({ status, code, from, to, isReplayed, input: { token, ms } }) => {
    const isAnew = status === 200 && model.countOf(token) > 1
    if ((code !== 'worker_lost' && !isAnew) || isReplayed) return []
    const fault = faults.findLast((each) => each.from <= to)
    return fault ? [to - Math.max(from, fault.until) - (isAnew ? ms : 0)] : []
  })
}

/** One line for the progress output: `412 x 200, 8 x 502 worker_lost`. */
export function tallyAnswers(answers: readonly FlowAnswer[]): string {
  const counts = Map.groupBy(answers, ({ status, code }) => [status, code].filter(Boolean).join(' ') || 'no answer')
  const slow = Math.max(0, ...answers.map(({ from, to }) => to - from))
  return `${[...counts].map(([what, { length }]) => `${length} x ${what}`).join(', ')}; longest ${Math.round(slow)} ms`
}

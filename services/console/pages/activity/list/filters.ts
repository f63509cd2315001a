import type { Schema } from '../../../../../shared/client/api.ts'
import { serverNow } from '../../../base/clock.ts'
import { absolute, duration, money } from '../../../base/format.ts'
import { CODES } from '../../../parts/run/causes.ts'

/** A filter of `GET /runs`, by the name of its parameter. The console's address uses the same name. */
export type Filter = {
  label: string
  form: 'choice' | 'text' | 'number' | 'time'
  choices?: readonly string[]
  /** The factor from the typed unit to the parameter's unit, such as 1,000 from seconds to milliseconds. */
  factor?: number
  /** The value in words. */
  show?(value: string): string
}

const STATUSES: readonly Schema<'RunStatus'>[] = ['running', 'waiting', 'done', 'failed', 'cancelled']
const KINDS: readonly Schema<'RunKind'>[] = ['run', 'message', 'flow', 'plan', 'step']
const SPANS_MS: Readonly<Record<string, number>> = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 }

const took = (value: string) => duration(Number(value))

export const FILTERS: Readonly<Record<string, Filter>> = {
  status: { label: 'State', form: 'choice', choices: STATUSES },
  kind: { label: 'Kind', form: 'choice', choices: KINDS },
  code: { label: 'Ended as', form: 'choice', choices: CODES },
  flow: { label: 'Flow', form: 'text' },
  model: { label: 'Model', form: 'text' },
  subject: { label: 'Started by', form: 'text' },
  customer_id: { label: 'Customer', form: 'text' },
  session_id: { label: 'Session', form: 'text' },
  min_cost: { label: 'Cost at least ($)', form: 'number', show: (value) => money(Number(value)) },
  min_ms: { label: 'Took at least (s)', form: 'number', factor: 1_000, show: took },
  max_ms: { label: 'Took at most (s)', form: 'number', factor: 1_000, show: took },
  span: { label: 'Started in the last', form: 'choice', choices: Object.keys(SPANS_MS) },
  since: { label: 'Started since', form: 'time', show: absolute },
  until: { label: 'Started before', form: 'time', show: absolute },
}

/** The prefix of the parameters for metadata: each key is a parameter of its own. */
export const METADATA = 'metadata.'

/** A filter that the address has. */
export type Active = { param: string; label: string; value: string }

export function activeIn(query: URLSearchParams): readonly Active[] {
  const known = Object.entries(FILTERS).flatMap(([param, { label }]) => {
    const value = query.get(param)
    return value ? [{ param, label: label.replace(/ \(.*/, ''), value }] : []
  })
  const pairs = [...query].filter(([param]) => param.startsWith(METADATA))
  return [...known, ...pairs.map(([param, value]) => ({ param, label: param.slice(METADATA.length), value }))]
}

/**
 * The value of a filter in words. An invalid value, for example one that was typed into the address, stays unchanged;
 * the server reports the error.
 */
export function shown({ param, value }: Active): string {
  try {
    const text = FILTERS[param]?.show?.(value)
    return text === undefined || text.includes('NaN') ? value : text
  } catch {
    return value
  }
}

/** The filters of the address, translated for the API. Time spans begin at a full minute, so that the list is not read again all the time. */
export function queryOf(query: URLSearchParams): Readonly<Record<string, string>> {
  const { span = '', ...given } = Object.fromEntries(activeIn(query).map(({ param, value }) => [param, value]))
  const q = query.get('q')
  const since = SPANS_MS[span] && new Date(Math.floor((serverNow() - SPANS_MS[span]) / 60_000) * 60_000).toISOString()
  return { ...given, ...(since && { since }), ...(q && { q }) }
}

/** The address for a search text: the run or the session with this id, otherwise the list of runs whose names contain the text. */
export function searchFor(text: string): { run: string } | { filters: Record<string, string | undefined> } {
  if (/^(run|trace)_[0-9a-f]{32}$/.test(text)) return { run: text.replace(/^trace_/, 'run_') }
  return { filters: text.startsWith('sess_') ? { session_id: text, q: undefined } : { q: text } }
}

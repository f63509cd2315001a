import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import type { Dispatch, DispatchOutput } from '../port.ts'

/** Filters without an index in the store. All given ones must match. */
export type RecordFilter = {
  model?: string | undefined
  /** The instance that the request named, or the one that answered. */
  instance?: string | undefined
  subject?: string | undefined
  /** The Idempotency-Key. */
  key?: string | undefined
  /** The execution has ended, and took at least this long. */
  minMs?: number | undefined
}

export type Payloads = { input: JsonObject | undefined; output: DispatchOutput | undefined }

/** Whether a record passes; `undefined` filters are not given. */
export function fits(dispatch: Dispatch, { model, instance, subject, key, minMs }: RecordFilter): boolean {
  const { provider_instance, served_instance, duration_ms } = dispatch
  return (
    (model === undefined || dispatch.model === model) &&
    (instance === undefined || provider_instance === instance || served_instance === instance) &&
    (subject === undefined || dispatch.subject === subject) &&
    (key === undefined || dispatch.idempotency_key === key) &&
    (minMs === undefined || (duration_ms !== null && duration_ms >= minMs))
  )
}

/** Whether the record itself contains a text, which must be in lower case. */
export const recordHolds = ({ flow, error }: Dispatch, text: string): boolean =>
  findText([flow.name, error?.message], text).isFound

/** The same for the execution's input and output. */
export const searchPayloads = ({ input, output }: Payloads, text: string): TextSearch =>
  findText([input, output?.raw_output, output?.output], text)

/** `chars`: how many characters were searched. */
export type TextSearch = { isFound: boolean; chars: number }

/** Searches a text in the strings, numbers and field names of a JSON value, ignoring case. */
function findText(root: unknown, text: string): TextSearch {
  const waiting: unknown[] = [root]
  let chars = 0
  const holds = (part: string) => {
    chars += part.length
    return part.toLowerCase().includes(text)
  }
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (isJsonObject(value) && Object.keys(value).some(holds)) return { isFound: true, chars }
    if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) waiting.push(inner)
    else if (typeof value === 'string' ? holds(value) : isPlain(value) && holds(`${value}`))
      return { isFound: true, chars }
  }
  return { isFound: false, chars }
}

const isPlain = (value: unknown): value is number | boolean => typeof value === 'number' || typeof value === 'boolean'

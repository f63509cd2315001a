import type { Bodies } from '../../../shared/platform/api/bodies.ts'
import type { Decoded } from '../../../shared/platform/api/decode.ts'

/** The schema of the bodies that may also come as lines, each of which is one of its `items`. */
export const LINES_SCHEMA = 'FlowBatchRequest'

const JSON_LINES = /^application\/(x-)?(jsonl|ndjson|json-lines) *(; *charset="?utf-8"? *)?$/i
export const isJsonLines = (contentType = ''): boolean => JSON_LINES.test(contentType)

/** The other fields of such a body, by whether they are numbers. */
const FIELDS = {
  ...{ provider_instance: false, model: false, fallback_instance: false, fallback_model: false },
  ...{ version: true, deadline_hours: true },
}
const NUMBER = /^\d{1,10}(\.\d{1,10})?$/

/** The most items of such a body. */
export const MAX_ITEMS = 10_000

/** Decodes lines of JSON and the fields beside them as if they were one body. Empty lines count for nothing. */
export function decodeLines(bodies: Bodies, bytes: Uint8Array<ArrayBuffer>, given: object): Promise<Decoded> {
  const fields = Object.fromEntries(Object.entries(given).flatMap(([name, value]) => fieldOf(name, value)))
  return bodies.decode(LINES_SCHEMA, bytes, { fields, most: MAX_ITEMS + 1 })
}

function fieldOf(name: string, value: unknown): [string, unknown][] {
  if (!Object.hasOwn(FIELDS, name)) return []
  const isNumber = FIELDS[name as keyof typeof FIELDS] && typeof value === 'string' && NUMBER.test(value)
  return [[name, isNumber ? Number(value) : value]]
}

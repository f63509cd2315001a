import type { JsonObject } from '../../../shared/kernel/events.ts'
import type { Bodies } from '../../../shared/platform/api/bodies.ts'
import type { Decoded } from '../../../shared/platform/api/decode.ts'
import { IgnoredFields } from '../../../shared/platform/api/ignored-fields.ts'

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
export async function decodeLines(bodies: Bodies, bytes: Uint8Array<ArrayBuffer>, given: object): Promise<Decoded> {
  const [fields, unread] = [{} as JsonObject, new IgnoredFields()]
  for (const [name, value] of Object.entries(given)) {
    if (Object.hasOwn(FIELDS, name)) fields[name] = valueOf(name as keyof typeof FIELDS, value)
    else unread.add(name)
  }
  const { ignored = [], ...decoded } = await bodies.decode(LINES_SCHEMA, bytes, { fields, most: MAX_ITEMS + 1 })
  return { ...decoded, ignored: [...unread.pointers, ...ignored] }
}

const valueOf = (name: keyof typeof FIELDS, value: unknown): unknown =>
  FIELDS[name] && typeof value === 'string' && NUMBER.test(value) ? Number(value) : value

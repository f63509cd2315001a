import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../../shared/kernel/json.ts'
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

/** Decodes lines of JSON and the fields beside them as if they were one body. Empty lines count for nothing. */
export async function decodeLines(bodies: Bodies, bytes: Uint8Array, given: object): Promise<Decoded> {
  if (!isUtf8(bytes)) return { refusal: { message: 'the lines are not valid UTF-8' } }
  const all = new TextDecoder().decode(bytes).split('\n')
  const lines = all.filter((line) => line.trim() !== '')
  const fields = Object.entries(given).flatMap(([name, value]) => fieldOf(name, value))
  const text = `{${[...fields, `"items":[${lines.join(',')}]`].join(',')}}`
  const decoded = await bodies.decode(LINES_SCHEMA, new TextEncoder().encode(text))
  const isWhole = 'value' in decoded && (decoded.value['items'] as unknown[]).length === lines.length
  if (isWhole || ('refusal' in decoded && decoded.refusal.param !== undefined)) return decoded
  const wrong = all.findIndex((line) => line.trim() !== '' && parseJson(line) === undefined)
  return wrong < 0
    ? decoded
    : { refusal: { message: `line ${wrong + 1} is not one JSON object: each line is an item` } }
}

function fieldOf(name: string, value: unknown): string[] {
  if (!Object.hasOwn(FIELDS, name)) return []
  const isNumber = FIELDS[name as keyof typeof FIELDS] && typeof value === 'string' && NUMBER.test(value)
  return [`${JSON.stringify(name)}:${JSON.stringify(isNumber ? Number(value) : value)}`]
}

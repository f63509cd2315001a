import type { JsonObject } from '../../../kernel/events.ts'

/** The schema of a text or number; `name` is that of its property, `index` that of its item. */
export type Shape = { schema: JsonObject; name: string; index: number }

const MAX_CHARS = 1_000

const two = (index: number) => String((index % 28) + 1).padStart(2, '0')

/** A value for each format, different for each index. */
const FORMATS: Record<string, (index: number) => string> = {
  date: (index) => (index === 0 ? '2026-01-31' : `2026-02-${two(index - 1)}`),
  time: (index) => `12:00:${two(index)}Z`,
  'date-time': (index) => `2026-01-31T12:00:${two(index)}Z`,
  duration: (index) => `P${index + 1}D`,
  email: (index) => `demo${index || ''}@example.com`,
  hostname: (index) => `demo${index || ''}.example.com`,
  ipv4: (index) => `192.0.2.${(index % 254) + 1}`,
  ipv6: (index) => `2001:db8::${((index % 9_999) + 1).toString(16)}`,
  uri: (index) => `https://example.com/demo${index || ''}`,
  'uri-reference': (index) => `/demo${index || ''}`,
  uuid: (index) => `00000000-0000-4000-8000-${String(index + 1).padStart(12, '0')}`,
  regex: () => '.*',
  'json-pointer': (index) => `/demo${index || ''}`,
}

/** `undefined` when no text has the required length, or only useless ones have. */
export function sampleText({ schema, name, index }: Shape): string | undefined {
  const { format, minLength, maxLength } = schema
  const made = typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format]?.(index) : undefined
  if (made !== undefined) return made
  const least = limit(minLength, 0)
  const most = limit(maxLength, MAX_CHARS)
  if (least > most || least > MAX_CHARS) return undefined
  const plain = `demo ${name}${index === 0 ? '' : ` ${index + 1}`}`
  const chars = Array.from(plain.toWellFormed())
  const repeated = Array.from({ length: Math.max(chars.length, least) }, (_, at) => chars[at % chars.length] ?? '')
  // The end of the text distinguishes the items.
  return repeated.length > most ? repeated.slice(repeated.length - most).join('') : repeated.join('')
}

/** A small number within the limits of the schema, different for each index if the limits allow it; `undefined` if there is none. */
export function sampleNumber({ schema, index }: Shape, isInteger: boolean): number | undefined {
  const step = limit(schema['multipleOf'], isInteger ? 1 : 0)
  const low = Math.max(limit(schema['minimum'], -Infinity), limit(schema['exclusiveMinimum'], -Infinity))
  const high = Math.min(limit(schema['maximum'], Infinity), limit(schema['exclusiveMaximum'], Infinity))
  const isOpenLow = schema['exclusiveMinimum'] === low
  const isOpenHigh = schema['exclusiveMaximum'] === high
  const fits = (value: number) =>
    (isOpenLow ? value > low : value >= low) && (isOpenHigh ? value < high : value <= high) && isMultiple(value, step)
  const unit = step || 1
  const onGrid = [Math.ceil(low / unit) * unit, (Math.floor(low / unit) + 1) * unit, Math.floor(high / unit) * unit]
  const starts = [1, 0, low, high, ...onGrid, (Math.ceil(high / unit) - 1) * unit, (low + high) / 2]
  const start = starts.find((value) => Number.isFinite(value) && fits(value) && (!isInteger || Number.isInteger(value)))
  if (start === undefined) return undefined
  return [start + index * unit, start - index * unit].find(fits) ?? start
}

const isMultiple = (value: number, step: number) => step === 0 || Number.isInteger(value / step)

const limit = (value: unknown, otherwise: number): number => (typeof value === 'number' ? value : otherwise)

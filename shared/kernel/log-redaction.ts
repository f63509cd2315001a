export type Plain = (message: string, fields: object, budget: number) => PlainEntry
export type PlainEntry = { msg: string; rest: Record<string, unknown>; isCut: boolean }

/**
 * Creates the function that copies a message and its fields into plain JSON data: at most about `budget` characters, including
 * names and punctuation, without cycles, and with every occurrence of a secret replaced by `[redacted]`.
 */
export function createRedactedCopy(secrets: readonly string[]): Plain {
  const redaction = createRedaction(secrets)
  return (message, fields, budget) => {
    const copy: Copy = { left: budget, parents: [], redaction, isCut: false }
    const msg = copyText(message, copy)
    const rest = copyFields(fields, copy)
    return { msg, rest, isCut: copy.isCut }
  }
}

type Copy = { left: number; parents: object[]; redaction: Redaction; isCut: boolean }

const MAX_DEPTH = 8

function copyValue(value: unknown, copy: Copy): unknown {
  copy.left -= 6 // Roughly the size of a number, or of quotes and a comma.
  if (typeof value === 'string') return copyText(value, copy)
  if (typeof value === 'number' || typeof value === 'bigint') return copyNumber(value, copy)
  if (typeof value !== 'object' || value === null) return typeof value === 'symbol' ? String(value) : value
  if (copy.parents.includes(value)) return '[circular]'
  if (copy.parents.length >= MAX_DEPTH) return '[too deep]'
  copy.parents.push(value)
  const result = copyReadable(value, copy)
  copy.parents.pop()
  return result
}

const UNREADABLE = '[unreadable]'

/** A `toJSON` of an unknown object may throw. */
function copyReadable(value: object, copy: Copy): unknown {
  try {
    return copyObject(value, copy)
  } catch {
    return UNREADABLE
  }
}

/** A getter of an unknown object may throw. */
function copyField(fields: object, name: string, copy: Copy): unknown {
  try {
    return copyValue(Reflect.get(fields, name), copy)
  } catch {
    return UNREADABLE
  }
}

function copyObject(value: object, copy: Copy): unknown {
  if (value instanceof Error) return copyFields(errorFields(value), copy)
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (value instanceof Map || value instanceof Set) return `[${value.size} entries]`
  if ('toJSON' in value && typeof value.toJSON === 'function') return copyValue(value.toJSON(), copy)
  return Array.isArray(value) ? copyArray(value, copy) : copyFields(value, copy)
}

/** Only these fields of an error are logged: libraries add others that contain request bodies and headers. */
function errorFields(error: Error) {
  const { name, message, stack, cause } = error
  const code = 'code' in error ? error.code : undefined
  const errors = error instanceof AggregateError ? error.errors : undefined
  return { name, message, code, stack, cause, errors }
}

function copyArray(values: readonly unknown[], copy: Copy): unknown[] {
  const result: unknown[] = []
  for (const value of values) {
    if (isSpent(copy)) break
    result.push(copyValue(value, copy))
  }
  return result
}

function copyFields(fields: object, copy: Copy): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const name of Object.keys(fields)) {
    if (isSpent(copy)) break
    const value = copyField(fields, name, copy)
    if (value !== undefined) result[copyText(name, copy)] = value
  }
  return result
}

function isSpent(copy: Copy): boolean {
  copy.isCut ||= copy.left <= 0
  return copy.left <= 0
}

function copyNumber(value: number | bigint, { redaction }: Copy): unknown {
  const text = String(value)
  return typeof value === 'number' && redaction.apply(text) === text ? value : redaction.apply(text)
}

/** Redacts before it truncates, so that the first half of a secret never remains at the cut. */
function copyText(text: string, copy: Copy): string {
  const { redaction, left } = copy
  const max = Math.max(left, 0)
  copy.left -= text.length
  if (text.length <= max) return redaction.apply(text)
  copy.isCut = true
  const redacted = redaction.apply(text.slice(0, max + redaction.longest))
  return `${redacted.slice(0, Math.max(redacted.length - redaction.longest, 0)).slice(0, max)}…`
}

type Redaction = { apply: (text: string) => string; longest: number }

function createRedaction(secrets: readonly string[]): Redaction {
  const spellings = [...new Set(secrets.flatMap(spellingsOf))].toSorted((a, b) => b.length - a.length)
  const shortest = spellings.at(-1)?.length ?? Infinity // Most names and numbers of a line are shorter than every secret.
  const apply = (text: string) =>
    text.length < shortest ? text : spellings.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text)
  return { apply, longest: spellings[0]?.length ?? 0 }
}

/** The forms of a secret: as it is, percent-encoded in an address, and escaped in a JSON text. */
function spellingsOf(secret: string): string[] {
  return [secret, encodeURIComponent(secret.toWellFormed()), JSON.stringify(secret).slice(1, -1)]
}

export type Plain = (message: string, fields: object, budget: number) => PlainLine
export type PlainLine = { msg: string; rest: Record<string, unknown>; isCut: boolean }

/**
 * Makes the function that copies a line's message and fields into plain JSON data: at most `budget` characters of it
 * (names and punctuation included), without cycles, with every occurrence of a secret blotted out.
 */
export function createPlain(secrets: readonly string[]): Plain {
  const blot = createBlot(secrets)
  return (message, fields, budget) => {
    const copy: Copy = { left: budget, parents: [], blot, isCut: false }
    const msg = copyText(message, copy)
    const rest = copyFields(fields, copy)
    return { msg, rest, isCut: copy.isCut }
  }
}

type Copy = { left: number; parents: object[]; blot: Blot; isCut: boolean }

const MAX_DEPTH = 8

function copyValue(value: unknown, copy: Copy): unknown {
  copy.left -= 6 // About what a number, a comma and quotes take.
  if (typeof value === 'string') return copyText(value, copy)
  if (typeof value === 'number' || typeof value === 'bigint') return copyNumber(value, copy)
  if (typeof value !== 'object' || value === null) return typeof value === 'symbol' ? String(value) : value
  if (copy.parents.includes(value)) return '[circular]'
  if (copy.parents.length >= MAX_DEPTH) return '[too deep]'
  copy.parents.push(value)
  const result = attempt(() => copyObject(value, copy))
  copy.parents.pop()
  return result
}

/** A getter or a `toJSON` of someone else's object may throw. */
function attempt(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return '[unreadable]'
  }
}

function copyObject(value: object, copy: Copy): unknown {
  if (value instanceof Error) return copyFields(errorFields(value), copy)
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (value instanceof Map || value instanceof Set) return `[${value.size} entries]`
  if ('toJSON' in value && typeof value.toJSON === 'function') return copyValue(value.toJSON(), copy)
  return Array.isArray(value) ? copyArray(value, copy) : copyFields(value, copy)
}

/** Other fields of foreign errors are left out: they hold request bodies and headers. */
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
    const value = attempt(() => copyValue(Reflect.get(fields, name), copy))
    if (value !== undefined) result[copyText(name, copy)] = value
  }
  return result
}

function isSpent(copy: Copy): boolean {
  copy.isCut ||= copy.left <= 0
  return copy.left <= 0
}

function copyNumber(value: number | bigint, { blot }: Copy): unknown {
  const text = String(value)
  return typeof value === 'number' && blot.apply(text) === text ? value : blot.apply(text)
}

/** Blots before it cuts, so that no cut leaves the first half of a secret standing. */
function copyText(text: string, copy: Copy): string {
  const { blot, left } = copy
  const max = Math.max(left, 0)
  copy.left -= text.length
  if (text.length <= max) return blot.apply(text)
  copy.isCut = true
  const blotted = blot.apply(text.slice(0, max + blot.longest))
  return `${blotted.slice(0, Math.max(blotted.length - blot.longest, 0)).slice(0, max)}…`
}

type Blot = { apply: (text: string) => string; longest: number }

function createBlot(secrets: readonly string[]): Blot {
  const spellings = [...new Set(secrets.flatMap(spellingsOf))].toSorted((a, b) => b.length - a.length)
  const apply = (text: string) => spellings.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text)
  return { apply, longest: spellings[0]?.length ?? 0 }
}

/** A secret may stand in an address or in a JSON text. */
function spellingsOf(secret: string): string[] {
  return [secret, encodeURIComponent(secret.toWellFormed()), JSON.stringify(secret).slice(1, -1)]
}

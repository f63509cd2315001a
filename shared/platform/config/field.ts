import { unescape } from 'node:querystring'
import { parseJson } from '../../kernel/json.ts'
import type { Parse } from './values.ts'

/** `standalone` is one process on one machine, `cluster` is several processes over Redis and MongoDB. */
export type Form = 'standalone' | 'cluster'

/** How the text of a variable is converted to a value. */
type Reading<T> = {
  parse: Parse<T>
  /** The default in the variable's own notation, parsed like a given value. Without one the value is `undefined`. */
  fallback?: string | Record<Form, string>
  /** Only for a secret: the parts of its text that must not appear in a log line or a message. */
  secrets?: (raw: string) => string[]
  /** Whether a wrong value of a secret setting may be shown, without user name and query. */
  isShown?: boolean
}

/** One environment variable. `meaning` is printed by `scripts/start --help` and `scripts/cluster --help`. */
export type Field<T> = Reading<T> & { name: string; meaning: string }

/** The values of a table of fields, each with the type that its parser returns. */
export type ValuesOf<Table> = { [K in keyof Table]: Table[K] extends Field<infer T> ? T : never }

export function field<T>(name: string, reading: Reading<T>, meaning: string): Field<T> {
  return { name, meaning, ...reading }
}

export function or<T>(parse: Parse<T>, fallback: string | Record<Form, string>): Reading<T> {
  return { parse, fallback }
}

export function optional<T>(parse: Parse<T>): Reading<T | undefined> {
  return { parse }
}

export function secret<T>(parse: Parse<T>, secrets = (raw: string) => [raw]): Reading<T | undefined> {
  return { parse, secrets }
}

/** The values of extra headers, which may be keys. */
export function headerValues(raw: string): string[] {
  const { headers } = (parseJson(raw) ?? {}) as { headers?: unknown }
  if (typeof headers !== 'object' || headers === null) return []
  return Object.values(headers).filter((value): value is string => typeof value === 'string' && value !== '')
}

/** The password of `scheme://user:password@host`, percent-encoded and decoded. */
export function urlPassword(raw: string): string[] {
  const encoded = /^[a-z+]+:\/\/[^:@/]*:([^@]+)@/.exec(raw)?.[1]
  return encoded === undefined ? [] : [encoded, unescape(encoded)]
}

const MIN_QUERY_SECRET_CHARS = 8

/** The values in the query of an address, percent-encoded and decoded: one may be a key. Short values are versions and the like, and are left out. */
export function queryValues(raw: string): string[] {
  const [, query = ''] = /\?([^#]*)/.exec(raw) ?? []
  const encoded = query.split('&').map((pair) => pair.slice(pair.indexOf('=') + 1))
  return [...new Set(encoded.flatMap((value) => [value, unescape(value)]))].filter(
    ({ length }) => length >= MIN_QUERY_SECRET_CHARS,
  )
}

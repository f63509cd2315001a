import { isIP } from 'node:net'
import { resolve } from 'node:path'

/** What a parser returns instead of a value: the sentence after "wanted". */
export class InvalidValue {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Reads one variable's text, which is never empty. */
export type Parse<T> = (raw: string) => T | InvalidValue

/** `setTimeout` fires at once from 2^31 ms on. */
const MAX_SECS = Math.floor((2 ** 31 - 1) / 1000)

export function integer(min: number, max: number): Parse<number> {
  return (raw) => {
    const value = /^-?\d{1,15}$/.test(raw) ? Number(raw) : Number.NaN
    return value >= min && value <= max ? value : new InvalidValue(`a whole number from ${min} to ${max}`)
  }
}

export const port = integer(0, 65_535)

/** Seconds as they are written, milliseconds as they are used. */
export function seconds(min: number): Parse<number> {
  const parse = integer(min, MAX_SECS)
  return (raw) => {
    const value = parse(raw)
    return typeof value === 'number' ? value * 1000 : value
  }
}

export const flag: Parse<boolean> = (raw) =>
  raw === 'true' || (raw === 'false' ? false : new InvalidValue('`true` or `false`'))

export function oneOf<const T extends string>(...names: T[]): Parse<T> {
  return (raw) => names.find((name) => name === raw) ?? new InvalidValue(`one of ${names.join(', ')}`)
}

export function matching(pattern: RegExp, wanted: string): Parse<string> {
  return (raw) => (pattern.test(raw) ? raw : new InvalidValue(wanted))
}

/** A comma-separated list; blanks round an entry and empty entries do not count. */
export function listOf<T>(parse: Parse<T>): Parse<readonly T[]> {
  return (raw) => {
    const values: T[] = []
    for (const entry of raw.split(',').map((part) => part.trim())) {
      if (entry === '') continue
      const value = parse(entry)
      if (value instanceof InvalidValue) return new InvalidValue(`a comma-separated list, each entry ${value.text}`)
      values.push(value)
    }
    return Object.freeze(values)
  }
}

export const path: Parse<string> = (raw) => resolve(raw)

/** A credential that fits an HTTP header: a line break or a blank in it is a mistake in pasting. */
export const token = matching(/^[\x21-\x7e]+$/, 'printable ASCII characters without blanks')

export const hostName = matching(/^[A-Za-z0-9_.:-]+$/, 'a host name or an IP address, without brackets or port')

export const modelName = matching(/^(?! )[^\p{Cc}]{1,256}(?<! )$/u, "the model's id, 1 to 256 characters")

/** `fetch` refuses addresses that carry a user name, so the start does too. */
export const httpUrl: Parse<string> = (raw) => {
  const url = /^https?:\/\//i.test(raw) ? URL.parse(raw) : null
  const isPlain = url !== null && url.username === '' && url.password === ''
  return isPlain ? raw : new InvalidValue('an http:// or https:// address without a user name')
}

/** As the issuer spells itself in its tokens, letter by letter (OpenID Connect Discovery 1.0: no query, no fragment). */
export const issuer: Parse<string> = (raw) =>
  httpUrl(raw) === raw && !/[?#]/.test(raw)
    ? raw
    : new InvalidValue('the http:// or https:// address that tokens name as `iss`')

/** An origin as browsers send it (RFC 6454), or `*`. */
export const origin: Parse<string> = (raw) => {
  const url = /^https?:\/\/[^/?#@\s]+$/i.test(raw) ? URL.parse(raw) : null
  return raw === '*'
    ? raw
    : (url?.origin ?? new InvalidValue('`*` or an origin such as https://app.example, without a path'))
}

/** As the `Host` header shows it, so an IPv6 address gets its brackets. */
export const allowedHost: Parse<string> = (raw) => {
  const bare = raw.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  if (isIP(bare) === 6) return `[${bare}]`
  return /^[a-z0-9_.-]+$/.test(raw.toLowerCase()) ? bare : new InvalidValue('a host name without a port')
}

const NAMED_RANGES = ['loopback', 'linklocal', 'uniquelocal']

const proxyRange: Parse<string> = (raw) => {
  if (NAMED_RANGES.includes(raw)) return raw
  const [address = '', bits, ...more] = raw.split('/')
  const width = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0
  const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= width)
  return width > 0 && isRange && more.length === 0 ? raw : new InvalidValue('an IP address or a CIDR range')
}

/** Express's values for `trust proxy` without `true`, which would let any client choose its own address. */
export const trustProxy: Parse<false | number | readonly string[]> = (raw) => {
  if (raw === 'false') return false
  if (/^\d{1,3}$/.test(raw)) return Number(raw)
  const ranges = listOf(proxyRange)(raw)
  return ranges instanceof InvalidValue
    ? new InvalidValue('`false`, a number of hops or a list of CIDR ranges')
    : ranges
}

/** 256 bits for AES-256-GCM (D8.3). */
export const masterKey: Parse<Uint8Array> = (raw) => {
  const key = Buffer.from(raw, 'base64')
  const isWhole = key.length === 32 && key.toString('base64') === raw
  return isWhole ? key : new InvalidValue('32 bytes as base64, such as `openssl rand -base64 32` prints')
}

/** A JSON object as a map, so that a model named `constructor` finds nothing. */
export function jsonMap<T>(isFit: (value: unknown) => value is T, wanted: string): Parse<ReadonlyMap<string, T>> {
  return (raw) => {
    const object = parseJson(raw)
    if (!isObject(object)) return new InvalidValue(wanted)
    const values = new Map<string, T>()
    for (const [name, value] of Object.entries(object)) {
      if (!isFit(value)) return new InvalidValue(`${wanted}, which the entry ${JSON.stringify(name)} is not`)
      values.set(name, value)
    }
    return values
  }
}

function parseJson(raw: string): unknown {
  try {
    return JSON.parse(raw)
  } catch {
    return undefined // No JSON and no object are the same mistake here.
  }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

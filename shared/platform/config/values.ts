import { isIP } from 'node:net'
import { resolve } from 'node:path'
import type { RedisNode, Sentinels } from './redis-place.ts'

/** A parser's result for a value that it does not accept. `text` completes the sentence "wanted …". */
export class InvalidValue {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Parses the text of one variable, which is never empty. */
export type Parse<T> = (raw: string) => T | InvalidValue

/** `setTimeout` fires immediately when its delay is 2^31 ms or more. */
const MAX_SECS = Math.floor((2 ** 31 - 1) / 1000)

export function integer(min: number, max: number): Parse<number> {
  return (raw) => {
    const value = /^-?\d{1,15}$/.test(raw) ? Number(raw) : Number.NaN
    return value >= min && value <= max ? value : new InvalidValue(`a whole number from ${min} to ${max}`)
  }
}

export const port = integer(0, 65_535)

/** Parses whole megabytes and returns bytes (D2.2). */
export function megabytes(min: number, max: number): Parse<number> {
  const parse = integer(min, max)
  return (raw) => {
    const value = parse(raw)
    return typeof value === 'number' ? value * 1_048_576 : value
  }
}

/** Parses whole seconds and returns milliseconds. */
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

/** Parses a comma-separated list. Blanks around an entry and empty entries are ignored. */
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

/** A credential that fits into an HTTP header. A blank or a line break in it comes from careless pasting. */
export const token = matching(/^[\x21-\x7e]+$/, 'printable ASCII characters without blanks')

export const hostName = matching(/^[A-Za-z0-9_.:-]+$/, 'a host name or an IP address, without brackets or port')

export const modelName = matching(/^(?! )[^\p{Cc}]{1,256}(?<! )$/u, "the model's id, 1 to 256 characters")

/** User names in the address are refused because `fetch` refuses them too. */
export const httpUrl: Parse<string> = (raw) => {
  const url = /^https?:\/\//i.test(raw) ? URL.parse(raw) : null
  const isPlain = url !== null && url.username === '' && url.password === ''
  return isPlain ? raw : new InvalidValue('an http:// or https:// address without a user name')
}

/**
 * Must equal the `iss` of tokens character by character, so it is not normalized (OpenID Connect Discovery 1.0: no query, no
 * fragment).
 */
export const issuer: Parse<string> = (raw) =>
  httpUrl(raw) === raw && !/[?#]/.test(raw)
    ? raw
    : new InvalidValue('the http:// or https:// address that tokens name as `iss`')

/** An address that paths are appended to, without slashes at its end. */
export const baseUrl: Parse<string> = (raw) =>
  httpUrl(raw) === raw && !/[?#]/.test(raw)
    ? raw.replace(/\/+$/, '')
    : new InvalidValue('an http:// or https:// address without a user name, a query and a fragment')

/** An origin in the form that browsers send (RFC 6454), or `*`. */
export const origin: Parse<string> = (raw) => {
  const url = /^https?:\/\/[^/?#@\s]+$/i.test(raw) ? URL.parse(raw) : null
  return raw === '*'
    ? raw
    : (url?.origin ?? new InvalidValue('`*` or an origin such as https://app.example, without a path'))
}

/** A host in the form of the `Host` header: lower case, an IPv6 address in brackets. */
export const allowedHost: Parse<string> = (raw) => {
  const bare = raw.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  if (isIP(bare) === 6) return `[${bare}]`
  return /^[a-z0-9_.-]+$/.test(raw.toLowerCase()) ? bare : new InvalidValue('a host name without a port')
}

export const clusterName = matching(/^[a-z0-9-]{1,32}$/, '1 to 32 lower-case letters, digits and -')

/** Parses `host:port,…/name of the primary`. */
export const sentinels: Parse<Sentinels> = (raw) => {
  const [, list = '', primary = ''] = /^([^/]+)\/([A-Za-z0-9._-]+)$/.exec(raw) ?? []
  const hosts = nodesIn(list)
  return hosts && primary !== ''
    ? { hosts, primary }
    : new InvalidValue("sentinels and the primary's name, such as 10.0.0.1:26379,10.0.0.2:26379/mymaster")
}

/** Parses `host:port,…`. */
export const redisNodes: Parse<readonly RedisNode[]> = (raw) =>
  nodesIn(raw) ?? new InvalidValue('nodes of a Redis Cluster, such as 10.0.0.1:6379,10.0.0.2:6379')

/** An IPv6 address stands in brackets. `undefined` when an entry is wrong. */
function nodesIn(list: string): RedisNode[] | undefined {
  const found = list
    .split(',')
    .map((entry) => /^(?:\[([0-9a-fA-F:]+)\]|([A-Za-z0-9_.-]+)):(\d{1,5})$/.exec(entry.trim()))
  const nodes = found.flatMap((each) => (each ? [{ host: each[1] ?? each[2] ?? '', port: Number(each[3]) }] : []))
  return nodes.length === found.length && nodes.every(({ port: each }) => each < 65_536) ? nodes : undefined
}

/** A bucket, and the prefix of our objects' keys in it: empty, or with `/` at its end. */
export type BucketPlace = { bucket: string; prefix: string }

/** Parses `s3://bucket/prefix`. */
export const bucketPlace: Parse<BucketPlace> = (raw) => {
  const [, bucket, rest = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]*))?$/.exec(raw) ?? []
  const names = rest.split('/').filter((name) => name !== '')
  if (bucket === undefined || names.some((name) => name === '.' || name === '..'))
    return new InvalidValue('a bucket, such as s3://bucket or s3://bucket/prefix')
  return { bucket, prefix: names.map((name) => `${name}/`).join('') }
}

const NAMED_RANGES = ['loopback', 'linklocal', 'uniquelocal']

const proxyRange: Parse<string> = (raw) => {
  if (NAMED_RANGES.includes(raw)) return raw
  const [address = '', bits, ...more] = raw.split('/')
  const width = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0
  const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= width)
  return width > 0 && isRange && more.length === 0 ? raw : new InvalidValue('an IP address or a CIDR range')
}

/** Express's values for `trust proxy`, except `true`, with which any client could choose its own address. */
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

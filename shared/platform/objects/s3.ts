import { AwsV4Signer } from 'aws4fetch'
import { retryUntil } from '../../kernel/async/retry.ts'
import { AppError } from '../../kernel/errors.ts'
import type { Egress, EgressRequest, EgressResponse } from '../net/port.ts'
import { readAll, sha256Of } from './content.ts'
import {
  away,
  type ByteRange,
  type FoundObject,
  type ListedObject,
  type ObjectContent,
  type Objects,
  type WriteCondition,
} from './port.ts'

/** A bucket of S3, or of a server with the same protocol. */
export type S3Place = {
  bucket: string
  /** The prefix of every key; empty, or with `/` at its end. */
  prefix: string
  region: string
  /** The address of a compatible server, whose objects are at `/bucket/key`; left out: Amazon's, `bucket.s3.REGION.amazonaws.com`. */
  endpoint?: string | undefined
  accessKey: string
  secretKey: string
}

export type S3Options = {
  egress: Pick<Egress, 'request' | 'close'>
  /** How long a request is repeated while the store does not answer. */
  waitMs?: number
  /** The number of keys in one page of a list. */
  pageKeys?: number
}

const WAIT_MS = 10_000
const PAGE_KEYS = 1_000
const PAUSES = [50, 1_000] as const
/** The longest request, in addition to the time that its bytes take at the slowest rate. */
const REQUEST_MS = 10_000
const LEAST_BYTES_PER_MS = 64
/** The longest time for reading an object. */
const READ_MS = 600_000
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

type Call = {
  method: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  key?: string
  query?: Record<string, string>
  headers?: Record<string, string>
  content?: ObjectContent
}

/** Opens the objects of a bucket. */
export function openS3(place: S3Place, { egress, waitMs = WAIT_MS, pageKeys = PAGE_KEYS }: S3Options): Objects {
  const closing = new AbortController()
  const { signal } = closing
  const send = createSender(place, egress, signal)
  const repeat = <T>(attempt: () => Promise<T>): Promise<T> =>
    retryUntil(attempt, { pauses: PAUSES, until: performance.now() + waitMs, mayPass: isPassing, signal })
  return {
    has: (key) => repeat(() => has(send, key)),
    find: (key, range) => repeat(() => find(send, key, range)),
    write: (key, content, when) => repeat(() => write(send, { key, content, when })),
    delete: (key) => repeat(() => remove(send, key)),
    list: (prefix) => list((call) => repeat(() => textOf(send, call)), { start: place.prefix, prefix, pageKeys }),
    close() {
      closing.abort(away('closed'))
      return egress.close()
    },
  }
}

type Send = (call: Call) => Promise<EgressResponse>

/** Signs each request. Its answer has no status above 299, except those that `EXPECTED` names. */
function createSender(place: S3Place, egress: Pick<Egress, 'request'>, signal: AbortSignal): Send {
  const cache = new Map<string, ArrayBuffer>()
  return async ({ method, key, query = {}, headers = {}, content }) => {
    const url = new URL(addressOf(place, key === undefined ? '' : `${place.prefix}${key}`))
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const sha256 = content?.sha256 ?? EMPTY_SHA256
    const { region, accessKey: accessKeyId, secretKey: secretAccessKey } = place
    const signer = new AwsV4Signer({
      ...{ method, url: url.href, region, accessKeyId, secretAccessKey, service: 's3', cache },
      headers: { ...headers, 'x-amz-content-sha256': sha256 },
    })
    const signed = await signer.sign()
    const request: EgressRequest = {
      method,
      headers: {
        ...Object.fromEntries(signed.headers),
        ...(content && { 'content-length': String(content.bytes) }),
      },
      ...(content && { body: content.open() }),
      signal,
      maxBytes: Infinity,
      timeoutMs: method === 'GET' ? READ_MS : REQUEST_MS + Math.ceil((content?.bytes ?? 0) / LEAST_BYTES_PER_MS),
    }
    return accept(await egress.request(signed.url.href, request).catch(refuse))
  }
}

const EMPTY_SHA256 = sha256Of('')

const addressOf = ({ endpoint, bucket, region }: S3Place, path: string): string =>
  endpoint === undefined ? `https://${bucket}.s3.${region}.amazonaws.com/${path}` : `${endpoint}/${bucket}/${path}`

/** No such object, or a condition that does not hold. 409: another write of the key was running. */
const [NOT_FOUND, CONFLICT, PRECONDITION_FAILED] = [404, 409, 412]
const EXPECTED = new Set([NOT_FOUND, CONFLICT, PRECONDITION_FAILED])

async function accept(response: EgressResponse): Promise<EgressResponse> {
  if (response.status < 300) return response
  const text = (await readAll(response.body, MAX_ANSWER_BYTES)).toString()
  const code = /<Code>([A-Za-z0-9]+)<\/Code>/.exec(text)?.[1] ?? 'no code'
  if (EXPECTED.has(response.status) && code !== 'NoSuchBucket') return { ...response, body: NOTHING }
  throw away(new S3Refusal(response.status, code))
}

const NOTHING: AsyncIterable<Uint8Array> = (async function* () {})()

class S3Refusal extends Error {
  readonly status: number

  constructor(status: number, code: string) {
    super(`the store answered ${status} ${code}`)
    this.status = status
  }
}

const refuse = (cause: unknown): never => {
  throw away(cause)
}

/** Whether a failure may pass. A refusal that is our own fault does not. */
function isPassing(failure: unknown): boolean {
  if (!(failure instanceof AppError) || failure.kind !== 'unavailable') return false
  const { cause } = failure
  if (cause instanceof S3Refusal) return cause.status >= 500 || cause.status === 408 || cause.status === 429
  return !(cause instanceof AppError && cause.code === 'egress_refused')
}

async function has(send: Send, key: string): Promise<boolean> {
  const response = await send({ method: 'HEAD', key })
  response.discard()
  return response.status !== NOT_FOUND
}

async function find(send: Send, key: string, range?: ByteRange): Promise<FoundObject | undefined> {
  const part = range && { headers: { range: `bytes=${range.from}-${range.to}` } }
  const { status, headers, body } = await send({ method: 'GET', key, ...part })
  if (status === NOT_FOUND) return undefined
  return { tag: tagOf(headers), body: guarded(body) }
}

async function* guarded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (cause) {
    throw away(cause)
  }
}

type Write = { key: string; content: ObjectContent; when: WriteCondition | undefined }

async function write(send: Send, { key, content, when }: Write): Promise<string | undefined> {
  const response = await send({ method: 'PUT', key, content, headers: conditionOf(when) })
  response.discard()
  if (response.status < 300) return tagOf(response.headers)
  if (response.status === CONFLICT) throw away(new S3Refusal(503, 'another write is under way'))
  return undefined
}

function conditionOf(when: WriteCondition | undefined): Record<string, string> {
  if (when === undefined) return {}
  return when === 'absent' ? { 'if-none-match': '*' } : { 'if-match': when.tag }
}

async function remove(send: Send, key: string): Promise<void> {
  ;(await send({ method: 'DELETE', key })).discard()
}

const tagOf = ({ etag }: EgressResponse['headers']): string => String(etag)

type Page = { text: string; nowMs: number }

async function textOf(send: Send, call: Call): Promise<Page> {
  const { headers, body } = await send(call)
  const nowMs = Date.parse(String(headers['date']))
  return { text: (await readAll(guarded(body), MAX_ANSWER_BYTES)).toString(), nowMs: nowMs || Date.now() }
}

/** Reads the pages of ListObjectsV2. Keys have only characters that XML does not escape. */
async function* list(
  get: (call: Call) => Promise<Page>,
  { start, prefix, pageKeys }: { start: string; prefix: string; pageKeys: number },
): AsyncGenerator<ListedObject, void, undefined> {
  for (let token: string | undefined, isFirst = true; isFirst || token !== undefined; isFirst = false) {
    const query = {
      'list-type': '2',
      'max-keys': String(pageKeys),
      prefix: `${start}${prefix}`,
      ...(token !== undefined && { 'continuation-token': token }),
    }
    const { text, nowMs } = await get({ method: 'GET', query })
    for (const [, entry = ''] of text.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
      const key = /<Key>(.*?)<\/Key>/s.exec(entry)?.[1] ?? ''
      const writtenMs = Date.parse(/<LastModified>(.*?)<\/LastModified>/s.exec(entry)?.[1] ?? '')
      if (key.startsWith(start)) yield { key: key.slice(start.length), ageMs: nowMs - writtenMs }
    }
    const next = /<NextContinuationToken>(.*?)<\/NextContinuationToken>/s.exec(text)?.[1]
    token = /<IsTruncated>true</.test(text) ? next && unescapeXml(next) : undefined
  }
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", '#34': '"', '#39': "'" }
const unescapeXml = (text: string): string => text.replaceAll(/&([a-z]+|#\d+);/g, (all, name) => ENTITIES[name] ?? all)

import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { AppError, type ErrorKind } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject, parseJson } from '../../../kernel/json.ts'
import type { ProviderType } from '../../../kernel/provider-types.ts'
import { apiBase, endpointOf } from '../base-url.ts'
import type { Send } from '../port.ts'
import type { BatchAnswer, VendorBatches } from './port.ts'

type Access = {
  type: ProviderType
  baseUrl: string | undefined
  apiKey: string
  headers: Record<string, string>
  send: Send
}

/** The vendors whose batch endpoints are used. A server that copies a format is not one of them: few have such endpoints. */
const VENDORS: Partial<Record<ProviderType, (http: Http) => VendorBatches>> = {
  openai: openaiBatches,
  anthropic: anthropicBatches,
  google: googleBatches,
}

/** Opens the batch endpoints of an instance; `undefined` for a type without any. */
export const openVendorBatches = (access: Access): VendorBatches | undefined =>
  VENDORS[access.type]?.(createHttp(access))

const AUTHORIZATION: Partial<Record<ProviderType, (key: string) => Record<string, string>>> = {
  anthropic: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
  google: (key) => ({ 'x-goog-api-key': key }),
}

const TIMEOUT_MS = 60_000
const PAGE = '100'
const MAX_PAGES = 50

type Http = {
  get(path: string, query?: Record<string, string>): Promise<JsonObject>
  /** The parsed lines of a JSONL answer, without unreadable ones. */
  lines(path: string): Promise<JsonObject[]>
  post(path: string, body?: object): Promise<JsonObject>
}

function createHttp({ type: provider, baseUrl, apiKey, headers: own, send }: Access): Http {
  const base = apiBase(provider, baseUrl)
  const bearer = { authorization: `Bearer ${apiKey}` }
  const headers = { ...(AUTHORIZATION[provider]?.(apiKey) ?? bearer), 'accept-encoding': 'identity', ...own }
  const ask = async (method: 'GET' | 'POST', url: string, body: Body = NOTHING): Promise<string> => {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const sent = { ...headers, ...(body.type !== '' && { 'content-type': body.type }) }
    const response = await send(url, { method, headers: sent, body: body.bytes, signal })
    const answer = await text(Readable.from(response.body))
    if (response.status >= 200 && response.status <= 299) return answer
    const kind = KINDS[response.status] ?? (response.status < 500 ? 'upstream' : 'unavailable')
    throw new AppError(kind, `the batch endpoint answered ${response.status}`)
  }
  return {
    get: async (path, query) => objectOf(await ask('GET', endpointOf(base, path, query))),
    async lines(path) {
      const all = (await ask('GET', endpointOf(base, path))).split('\n')
      const last = all.pop() ?? '' // A last line without a line end may be cut off.
      return [...all.map(parseJson).filter(isJsonObject), ...(last.trim() === '' ? [] : [objectOf(last)])]
    },
    async post(path, body) {
      const form = body instanceof FormData ? new Response(body) : undefined
      const type = form?.headers.get('content-type') ?? 'application/json'
      const bytes = form ? new Uint8Array(await form.arrayBuffer()) : JSON.stringify(body ?? {})
      return objectOf(await ask('POST', endpointOf(base, path), { type, bytes }))
    },
  }
}

const KINDS: Partial<Record<number, ErrorKind>> = {
  400: 'invalid_request',
  413: 'invalid_request',
  422: 'invalid_request',
  404: 'not_found',
  410: 'not_found',
  408: 'unavailable',
  429: 'rate_limit',
}

type Body = { type: string; bytes: string | Uint8Array }
const NOTHING: Body = { type: '', bytes: '' }

function objectOf(json: string): JsonObject {
  const value = parseJson(json)
  if (isJsonObject(value)) return value
  throw new Error('the batch endpoint has not answered with JSON')
}

const fieldsOf = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})
const listOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.map(fieldsOf) : [])
const idOf = (value: unknown): string => {
  if (typeof value === 'string' && value !== '') return value
  throw new Error('the batch endpoint has not named its batch')
}

type Listed = { batches: JsonObject[]; next: string | undefined }

/** The newest batches of an account, among which a lost one is searched. */
async function* newest(read: (after: string | undefined) => Promise<Listed>): AsyncGenerator<JsonObject> {
  let after: string | undefined
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const { batches, next } = await read(after)
    yield* batches
    if (next === undefined) return
    after = next
  }
}

/** A page of a list whose next page begins after the last entry's id. */
const pageOf = ({ data, has_more: hasMore }: JsonObject): Listed => {
  const batches = listOf(data)
  return { batches, next: hasMore === true ? idOf(batches.at(-1)?.['id']) : undefined }
}

/** OpenAI Batch: the calls are a file, and `metadata` keeps the mark. */
function openaiBatches({ get, lines, post }: Http): VendorBatches {
  const ENDED = new Set(['completed', 'failed', 'expired', 'cancelled'])
  const hasNoRoom = (errors: unknown) =>
    listOf(fieldsOf(errors)['data']).some(({ code }) => code === 'token_limit_exceeded')
  const answersOf = (all: readonly JsonObject[]) =>
    all.flatMap(({ custom_id, response }): [string, BatchAnswer][] => {
      const { status_code, body } = fieldsOf(response)
      return typeof status_code === 'number' ? [[String(custom_id), { status: status_code, body: fieldsOf(body) }]] : []
    })
  return {
    async submit(calls, mark) {
      const [{ path } = { path: '' }] = calls
      const url = `/v1${path}`
      const file = calls.map(({ id, body }) => `${JSON.stringify({ custom_id: id, method: 'POST', url, body })}\n`)
      const form = new FormData()
      form.set('purpose', 'batch')
      form.set('file', new Blob(file, { type: 'application/jsonl' }), `${mark}.jsonl`)
      const { id: input_file_id } = await post('/files', form)
      const wanted = { input_file_id, endpoint: url, completion_window: '24h', metadata: { agent_engine: mark } }
      return idOf((await post('/batches', wanted))['id'])
    },
    async find({ mark }) {
      const read = async (after?: string) => pageOf(await get('/batches', { limit: PAGE, ...(after && { after }) }))
      for await (const { id, metadata } of newest(read))
        if (fieldsOf(metadata)['agent_engine'] === mark) return { id: idOf(id) }
      return undefined
    },
    async read(id) {
      const { status, output_file_id, error_file_id, errors } = await get(`/batches/${id}`)
      if (!ENDED.has(String(status))) return undefined
      if (status === 'failed' && hasNoRoom(errors)) return 'refused'
      const files = [output_file_id, error_file_id].filter((each) => typeof each === 'string' && each !== '')
      const all = await Promise.all(files.map((each) => lines(`/files/${String(each)}/content`)))
      return new Map(answersOf(all.flat()))
    },
    cancel: async (id) => void (await post(`/batches/${id}/cancel`)),
  }
}

/** The most difference between our clock and the vendor's, including the time of a submission. */
const CLOCKS_MS = 300_000
const sizeOf = (counts: unknown) => Object.values(fieldsOf(counts)).reduce((sum: number, each) => sum + Number(each), 0)

/** Anthropic Message Batches: they keep no mark, and only the results at the end show the ids of our calls. */
function anthropicBatches({ get, lines, post }: Http): VendorBatches {
  const resultsOf = (id: string) => lines(`/messages/batches/${id}/results`)
  const STATUS: Record<string, number> = { invalid_request_error: 400, overloaded_error: 529, rate_limit_error: 429 }
  const answerOf = ({ type, message, error }: JsonObject): BatchAnswer | undefined => {
    if (type === 'succeeded') return { status: 200, body: fieldsOf(message) }
    const { error: inner } = fieldsOf(error)
    const body = { type: 'error', error: isJsonObject(inner) ? inner : fieldsOf(error) }
    return type === 'errored' ? { status: STATUS[String(body.error['type'])] ?? 500, body } : undefined
  }
  return {
    async submit(calls) {
      const requests = calls.map(({ id, body }) => ({ custom_id: id, params: body }))
      return idOf((await post('/messages/batches', { requests }))['id'])
    },
    async find({ count, first, at_ms }) {
      const read = async (after_id?: string) =>
        pageOf(await get('/messages/batches', { limit: PAGE, ...(after_id && { after_id }) }))
      let isUnsure = false
      for await (const { id, created_at, request_counts, processing_status } of newest(read)) {
        const fromMs = Date.parse(String(created_at)) - at_ms
        if (fromMs < -CLOCKS_MS) break
        if (fromMs > CLOCKS_MS || sizeOf(request_counts) !== count) continue
        if (processing_status !== 'ended') isUnsure = true
        else if ((await resultsOf(idOf(id))).some(({ custom_id }) => custom_id === first)) return { id: idOf(id) }
      }
      return isUnsure ? 'unsure' : undefined
    },
    async read(id) {
      const { processing_status } = await get(`/messages/batches/${id}`)
      if (processing_status !== 'ended') return undefined
      return new Map(
        (await resultsOf(id)).flatMap(({ custom_id, result }): [string, BatchAnswer][] => {
          const answer = answerOf(fieldsOf(result))
          return answer ? [[String(custom_id), answer]] : []
        }),
      )
    },
    cancel: async (id) => void (await post(`/messages/batches/${id}/cancel`)),
  }
}

/** Gemini Batch: the calls of one model, in the request itself, and `displayName` keeps the mark. */
function googleBatches({ get, post }: Http): VendorBatches {
  const ENDED = /SUCCEEDED|FAILED|CANCELLED|EXPIRED/
  return {
    async submit(calls, mark) {
      const [{ path } = { path: '' }] = calls
      const requests = calls.map(({ id, body }) => ({ request: body, metadata: { key: id } }))
      const batch = { display_name: mark, input_config: { requests: { requests } } }
      return idOf((await post(path.replace(/:\w+$/, ':batchGenerateContent'), { batch }))['name'])
    },
    async find({ mark }) {
      const read = async (pageToken?: string): Promise<Listed> => {
        const { operations, nextPageToken: next } = await get('/batches', {
          pageSize: PAGE,
          ...(pageToken && { pageToken }),
        })
        return { batches: listOf(operations), next: typeof next === 'string' && next !== '' ? next : undefined }
      }
      for await (const { name, metadata } of newest(read))
        if (fieldsOf(metadata)['displayName'] === mark) return { id: idOf(name) }
      return undefined
    },
    async read(name) {
      const { metadata, response, done } = await get(`/${name}`)
      if (done !== true && !ENDED.test(String(fieldsOf(metadata)['state']))) return undefined
      const { inlinedResponses } = fieldsOf(fieldsOf(response)['inlinedResponses'])
      return new Map(
        listOf(inlinedResponses).flatMap(({ metadata: own, response: body, error }): [string, BatchAnswer][] => {
          const key = String(fieldsOf(own)['key'])
          if (isJsonObject(body)) return [[key, { status: 200, body }]]
          return isJsonObject(error)
            ? [[key, { status: Number(error['code']) === 3 ? 400 : 500, body: { error } }]]
            : []
        }),
      )
    },
    cancel: async (name) => void (await post(`/${name}:cancel`)),
  }
}

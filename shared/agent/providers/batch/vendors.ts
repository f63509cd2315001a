import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { AppError } from '../../../kernel/errors.ts'
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
const PAGE = 100
/** The newest batches of an account among which a lost one is looked for. */
const MAX_PAGES = 50

type Http = {
  get(path: string, query?: Record<string, string>): Promise<JsonObject>
  /** The lines of an answer that is JSONL. */
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
    const isRefused = response.status < 500 && response.status !== 429 && response.status !== 408
    throw new AppError(isRefused ? 'upstream' : 'unavailable', `the batch endpoint answered ${response.status}`)
  }
  return {
    get: async (path, query) => objectOf(await ask('GET', endpointOf(base, path, query))),
    lines: async (path) =>
      (await ask('GET', endpointOf(base, path)))
        .split('\n')
        .filter((line) => line !== '')
        .map(objectOf),
    async post(path, body) {
      const form = body instanceof FormData ? new Response(body) : undefined
      const type = form?.headers.get('content-type') ?? 'application/json'
      const bytes = form ? new Uint8Array(await form.arrayBuffer()) : JSON.stringify(body ?? {})
      return objectOf(await ask('POST', endpointOf(base, path), { type, bytes }))
    },
  }
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

/** OpenAI Batch: the calls are a file, and `metadata` keeps the mark. */
function openaiBatches({ get, lines, post }: Http): VendorBatches {
  const OPEN = new Set(['validating', 'in_progress', 'finalizing', 'cancelling'])
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
    async find(mark) {
      for (let after: Record<string, string> = {}, pages = 0; pages < MAX_PAGES; pages++) {
        const { data, has_more: hasMore } = await get('/batches', { limit: String(PAGE), ...after })
        const found = listOf(data).find(({ metadata }) => fieldsOf(metadata)['agent_engine'] === mark)
        if (found) return { id: idOf(found['id']) }
        if (hasMore !== true) break
        after = { after: idOf(listOf(data).at(-1)?.['id']) }
      }
      return undefined
    },
    async read(id) {
      const { status, output_file_id, error_file_id } = await get(`/batches/${id}`)
      if (OPEN.has(String(status))) return undefined
      const files = [output_file_id, error_file_id].filter((each) => typeof each === 'string' && each !== '')
      const all = await Promise.all(files.map((each) => lines(`/files/${String(each)}/content`)))
      return new Map(answersOf(all.flat()))
    },
    cancel: async (id) => void (await post(`/batches/${id}/cancel`)),
  }
}

/** Anthropic Message Batches keep nothing of ours beside the calls, which only the results name. */
function anthropicBatches({ get, lines, post }: Http): VendorBatches {
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
    find: async () => 'unknown',
    async read(id) {
      const { processing_status } = await get(`/messages/batches/${id}`)
      if (processing_status !== 'ended') return undefined
      const all = await lines(`/messages/batches/${id}/results`)
      return new Map(
        all.flatMap(({ custom_id, result }): [string, BatchAnswer][] => {
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
  const OPEN = /PENDING|RUNNING/
  return {
    async submit(calls, mark) {
      const [{ path } = { path: '' }] = calls
      const requests = calls.map(({ id, body }) => ({ request: body, metadata: { key: id } }))
      const batch = { display_name: mark, input_config: { requests: { requests } } }
      return idOf((await post(path.replace(/:\w+$/, ':batchGenerateContent'), { batch }))['name'])
    },
    async find(mark) {
      for (let after: Record<string, string> = {}, pages = 0; pages < MAX_PAGES; pages++) {
        const { operations, nextPageToken } = await get('/batches', { pageSize: String(PAGE), ...after })
        const found = listOf(operations).find(({ metadata }) => fieldsOf(metadata)['displayName'] === mark)
        if (found) return { id: idOf(found['name']) }
        if (typeof nextPageToken !== 'string' || nextPageToken === '') break
        after = { pageToken: nextPageToken }
      }
      return undefined
    },
    async read(name) {
      const { metadata, response } = await get(`/${name}`)
      if (OPEN.test(String(fieldsOf(metadata)['state']))) return undefined
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

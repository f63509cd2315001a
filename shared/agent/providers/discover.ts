import { AppError } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject, parseJson } from '../../kernel/json.ts'
import { type Dialect, PROVIDER_TYPES, type ProviderType } from '../../kernel/provider-types.ts'
import type { Egress, EgressResponse } from '../../platform/net/port.ts'
import { apiBase, endpointOf } from './base-url.ts'

/** A model in a provider's list; its other fields in the list are kept. */
export type DiscoveredModel = { id: string } & JsonObject

export type DiscoverTarget = {
  type: ProviderType
  /** Absent: the provider's own address. */
  url: string | undefined
  key: string | undefined
  headers: Readonly<Record<string, string>>
}

/** api.md "Limits". */
const TIMEOUT_MS = 15_000
const MAX_BYTES = 8 * 1024 * 1024
const MAX_MODELS = 1_000
const MAX_MODEL_CHARS = 2_000

/**
 * Asks a provider for its models, at most 1,000. Throws `upstream` within 15 s when it does not answer with a list of models, and
 * `invalid_request` when its address may not be called.
 */
export async function discoverModels(
  target: DiscoverTarget,
  { request, signal, timeoutMs = TIMEOUT_MS }: Pick<Egress, 'request'> & { signal: AbortSignal; timeoutMs?: number },
): Promise<DiscoveredModel[]> {
  const { dialect } = PROVIDER_TYPES[target.type]
  if (dialect === 'demo') return [{ id: 'demo' }]
  const { query, headers, read } = LISTS[dialect]
  const address = endpointOf(apiBase(target.type, target.url), '/models', query)
  const response = await request(address, {
    headers: { ...target.headers, ...headers(target.key), accept: 'application/json' },
    signal,
    maxBytes: MAX_BYTES,
    timeoutMs,
  })
  const text = await textOf(response)
  if (response.status !== 200) throw refusedBy(target, response.status, address)
  const models = read(parseJson(text))
  if (!models) throw noList(target)
  return models.slice(0, MAX_MODELS).map(shortened)
}

type ModelList = {
  query?: Record<string, string>
  headers(key: string | undefined): Record<string, string>
  read(body: unknown): DiscoveredModel[] | undefined
}

const bearer = (key: string | undefined): Record<string, string> =>
  key === undefined ? {} : { authorization: `Bearer ${key}` }

const OPENAI: ModelList = { headers: bearer, read: (body) => withIds(asArray(asObject(body)['data'])) }

const LISTS: Record<Exclude<Dialect, 'demo'>, ModelList> = {
  'openai-chat': OPENAI,
  'openai-responses': OPENAI,
  anthropic: {
    query: { limit: '1000' },
    headers: (key) => ({ 'anthropic-version': '2023-06-01', ...(key !== undefined && { 'x-api-key': key }) }),
    read: OPENAI.read,
  },
  google: {
    query: { pageSize: '1000' },
    headers: (key) => (key === undefined ? {} : { 'x-goog-api-key': key }),
    read: (body) => withIds(asArray(asObject(body)['models'])?.map(named)),
  },
}

/** Google lists a model as `models/<id>`. */
function named(model: unknown): unknown {
  const { name } = asObject(model)
  return typeof name === 'string' ? { ...asObject(model), id: name.replace(/^models\//, '') } : model
}

function withIds(models: unknown[] | undefined): DiscoveredModel[] | undefined {
  return models?.map(asObject).filter((model): model is DiscoveredModel => typeof model['id'] === 'string')
}

/** Shortens long texts, which some servers list with each model. */
function shortened(model: DiscoveredModel): DiscoveredModel {
  return JSON.stringify(model).length <= MAX_MODEL_CHARS ? model : { id: model.id.slice(0, MAX_MODEL_CHARS) }
}

async function textOf({ body }: EgressResponse): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

function refusedBy({ type }: DiscoverTarget, status: number, address: string): AppError {
  if (status === 401 || status === 403) {
    return new AppError('upstream', `${type} refused the key (HTTP ${status}): store a valid key for this instance`)
  }
  const { host, pathname } = new URL(address)
  const where = status === 404 ? ` at ${host}${pathname}` : ''
  return new AppError(
    'upstream',
    `${type} did not list its models${where} (HTTP ${status}): check the url of this instance`,
  )
}

const noList = ({ type }: DiscoverTarget) =>
  new AppError('upstream', `${type} answered with something that is no list of models: check the url of this instance`)

const asObject = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})

const asArray = (value: unknown): unknown[] | undefined => (Array.isArray(value) ? value : undefined)

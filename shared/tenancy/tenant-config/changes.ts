import type { InstanceLimits } from '../../agent/providers/port.ts'
import { conflict, invalidRequest, notFound } from '../../kernel/errors.ts'
import { findOptionsProblem, type ModelOptions } from '../../kernel/model-options.ts'
import type { Sealed } from '../secrets/seal.ts'
import {
  type Audit,
  type FileRules,
  type InstanceMaterial,
  type InstancePrices,
  type InstanceType,
  maskKey,
  type Role,
  type RoleRoute,
  type Routing,
  type StoredInstance,
  type StoredSecret,
  type TenantConfig,
} from './config.ts'

/** Every change is a function from the tenant's configuration to the next one; a refused change throws and changes nothing. */
export type Change = (config: TenantConfig) => TenantConfig

const MAX_INSTANCES = 100
const MAX_SECRETS = 100

/** Body of `PUT /config/engine`: what is absent stays. */
export type EngineBody = { routing?: Routing; audit?: Partial<Audit>; files?: Partial<FileRules> }

/** Replaces routing, audit, the rules of files, or some of them. Throws `invalid_request` for a route whose instance does not exist, or half a fallback. */
export const putEngine =
  ({ routing, audit, files }: EngineBody): Change =>
  (config) => {
    for (const [role, route] of Object.entries(routing ?? {})) checkRoute(role as Role, route, config)
    return {
      ...config,
      routing: routing ?? config.routing,
      audit: { ...config.audit, ...audit },
      files: { ...config.files, ...files },
    }
  }

function checkRoute(role: Role, route: RoleRoute, { instances }: TenantConfig): void {
  const { instance, fallback_instance: fallback, fallback_model: fallbackModel, strategy = 'order' } = route
  const param = `/routing/${role}`
  if ((fallback === undefined) !== (fallbackModel === undefined)) {
    throw invalidRequest('fallback_instance and fallback_model must be given together', {
      param: `${param}/${fallback === undefined ? 'fallback_instance' : 'fallback_model'}`,
    })
  }
  if (role === 'transcription') {
    const extra = (['strategy', 'hedge'] as const).find((field) => route[field] !== undefined)
    if (extra)
      throw invalidRequest(`a transcription is no model call: leave out ${extra}`, { param: `${param}/${extra}` })
  }
  if (strategy !== 'order' && fallback === undefined) {
    throw invalidRequest(`${strategy} chooses between two models: give fallback_instance and fallback_model, too`, {
      param: `${param}/strategy`,
    })
  }
  const names = { instance, ...(fallback !== undefined && { fallback_instance: fallback }) }
  for (const [field, name] of Object.entries(names)) {
    if (!instances.some((each) => each.name === name)) {
      throw invalidRequest(`no instance is named ${name}: create it with PUT /config/instances/${name}`, {
        param: `${param}/${field}`,
      })
    }
  }
}

/** Stores a secret, sealed by the caller, in place of one of the same name. */
export const putSecret =
  (secret: StoredSecret): Change =>
  (config) => {
    const others = config.secrets.filter(({ name }) => name !== secret.name)
    if (others.length >= MAX_SECRETS) throw conflict(`a tenant has at most ${MAX_SECRETS} secrets; delete one first`)
    return { ...config, secrets: sorted([...others, secret]) }
  }

export const deleteSecret =
  (name: string): Change =>
  (config) => {
    if (!config.secrets.some((secret) => secret.name === name)) throw noSecret(name)
    return { ...config, secrets: config.secrets.filter((secret) => secret.name !== name) }
  }

/** Body of `PUT /config/instances/{name}` (D8.2); `url` is normalised and checked already. An absent field keeps its value; `null` deletes it. */
export type InstanceBody = {
  type: InstanceType
  url?: string
  secret?: string
  key?: string | null
  options?: ModelOptions | null
  prices?: InstancePrices | null
  limits?: InstanceLimits | null
}

export type InstanceChange = {
  name: string
  body: InstanceBody
  revision: string
  now: string
  /** Decrypts the sealed part of the present instance. */
  unseal(sealed: Sealed): InstanceMaterial
  seal(material: InstanceMaterial): Sealed
}

/**
 * Creates or replaces an instance. The key and the options, which may hold headers with keys, belong to the address: if they are left
 * out they stay as long as type and URL are the same, and are dropped otherwise. Prices and limits that are left out stay.
 */
export const putInstance =
  ({ name, body, revision, now, unseal, seal }: InstanceChange): Change =>
  (config) => {
    checkInstance(body, config)
    const before = config.instances.find((instance) => instance.name === name)
    const others = config.instances.filter((instance) => instance !== before)
    if (others.length >= MAX_INSTANCES)
      throw conflict(`a tenant has at most ${MAX_INSTANCES} instances; delete one first`)
    const credential = credentialOf(body, before, unseal)
    const { options, headers } = optionsOf(body, before, unseal)
    const prices = body.prices === undefined && body.type !== 'demo' ? before?.prices : body.prices
    const limits = body.limits === undefined && body.type !== 'demo' ? before?.limits : body.limits
    const material: InstanceMaterial = {
      ...(credential.key !== undefined && { key: credential.key }),
      ...(headers && { headers }),
    }
    const instance: StoredInstance = {
      name,
      type: body.type,
      ...(body.url !== undefined && { url: body.url }),
      ...(credential.secret !== undefined && { secret: credential.secret }),
      ...(credential.key !== undefined && { key: maskKey(credential.key) }),
      ...(options && { options }),
      ...(prices && { prices }),
      ...(limits && { limits }),
      ...(Object.keys(material).length > 0 && { sealed: seal(material) }),
      revision,
      created_at: before?.created_at ?? now,
      updated_at: now,
    }
    return { ...config, instances: sorted([...others, instance]) }
  }

function checkInstance(body: InstanceBody, { secrets }: TenantConfig): void {
  const { type, url, secret, key, options } = body
  if (type === 'demo') return checkDemo(body)
  if (type === 'openai-compatible' && url === undefined)
    throw invalidRequest('an openai-compatible instance needs the url of its API', { param: '/url' })
  if (secret !== undefined && key !== undefined && key !== null)
    throw invalidRequest('give key or secret, not both', { param: '/secret' })
  if (secret !== undefined && !secrets.some(({ name }) => name === secret))
    throw invalidRequest(`no secret is named ${secret}: store it with PUT /config/secrets/${secret}`, {
      param: '/secret',
    })
  const problem = options && findOptionsProblem(options)
  if (problem) {
    const pointer = `/options${problem.pointer}`
    throw invalidRequest(`${pointer} must be ${problem.expected}`, { param: pointer })
  }
  if (options?.flex !== undefined && type !== 'openai')
    throw invalidRequest('only OpenAI has a flex tier: leave flex out', { param: '/options/flex' })
}

/** Refuses fields that would have no effect. */
function checkDemo({ type, ...fields }: InstanceBody): void {
  const [extra] = Object.entries(fields).find(([, value]) => value !== undefined) ?? []
  if (extra === undefined) return
  throw invalidRequest(`an instance of type ${type} calls nobody: leave out ${extra}`, { param: `/${extra}` })
}

type Credential = { secret?: string; key?: string | undefined }

function credentialOf(
  { type, url, secret, key }: InstanceBody,
  before: StoredInstance | undefined,
  unseal: InstanceChange['unseal'],
): Credential {
  if (secret !== undefined) return { secret }
  if (key === null) return {}
  if (key !== undefined) return { key }
  if (!before || before.type !== type || before.url !== url) return {}
  if (before.secret !== undefined) return { secret: before.secret }
  return before.key !== undefined && before.sealed ? { key: unseal(before.sealed).key } : {}
}

type SplitOptions = { options?: ModelOptions; headers?: Record<string, string> }

function optionsOf(
  { type, url, options }: InstanceBody,
  before: StoredInstance | undefined,
  unseal: InstanceChange['unseal'],
): SplitOptions {
  if (options !== undefined) return splitOptions(options)
  if (!before?.options || before.type !== type || before.url !== url) return {}
  const { headers: masked, ...rest } = before.options
  if (!masked || !before.sealed) return { options: rest }
  const headers = openedHeaders(before.sealed, unseal)
  if (headers) return { options: before.options, headers }
  return Object.keys(rest).length > 0 ? { options: rest } : {}
}

/** `undefined` for headers that can no longer be opened: they would keep the instance from being replaced. */
function openedHeaders(sealed: Sealed, unseal: InstanceChange['unseal']): Record<string, string> | undefined {
  try {
    return unseal(sealed).headers
  } catch {
    return undefined
  }
}

/** The options as they are shown, and the header values that are sealed. */
function splitOptions(options: ModelOptions | null): SplitOptions {
  if (!options?.headers) return options ? { options } : {}
  const masked = Object.entries(options.headers).map(([name, value]) => [name, maskKey(value)])
  return { options: { ...options, headers: Object.fromEntries(masked) }, headers: options.headers }
}

/** Throws `conflict` while a route uses the instance. */
export const deleteInstance =
  (name: string): Change =>
  (config) => {
    if (!config.instances.some((instance) => instance.name === name)) throw noInstance(name)
    const user = Object.entries(config.routing).find(
      ([, route]) => route.instance === name || route.fallback_instance === name,
    )
    if (user)
      throw conflict(`the route of role ${user[0]} uses instance ${name}; change it with PUT /config/engine first`)
    return { ...config, instances: config.instances.filter((instance) => instance.name !== name) }
  }

export const noInstance = (name: string) =>
  notFound(`no instance is named ${name}: create it with PUT /config/instances/${name}`)

export const noSecret = (name: string) =>
  notFound(`no secret is named ${name}: store it with PUT /config/secrets/${name}`)

// Sorts by name; names are unique.
const sorted = <T extends { name: string }>(items: T[]): T[] => items.toSorted((a, b) => (a.name < b.name ? -1 : 1))

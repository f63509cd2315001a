import type { InstanceLimits } from '../../agent/providers/port.ts'
import { AppError, invalidRequest } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import type { ModelOptions } from '../../kernel/model-options.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Keyring } from '../secrets/keyring.ts'
import { type SealContext, type Sealed, seal, unseal } from '../secrets/seal.ts'
import {
  deleteInstance,
  deleteSecret,
  type EngineBody,
  type InstanceBody,
  noInstance,
  noSecret,
  putEngine,
  putInstance,
  putSecret,
} from './changes.ts'
import {
  type Audit,
  type FileRules,
  type InstanceMaterial,
  type InstancePrices,
  type InstanceType,
  maskKey,
  type Routing,
  type StoredInstance,
  type StoredSecret,
  type TenantConfig,
} from './config.ts'
import type { LiveConfigs } from './live-configs.ts'

/** An instance in the form in which the API shows it (D8.1); `key` is masked, `secret` names the secret that holds the key instead. */
export type InstanceView = {
  name: string
  type: InstanceType
  url: string | null
  key: string | null
  secret?: string
  options?: ModelOptions
  prices?: InstancePrices
  limits?: InstanceLimits
  created_at: string
  updated_at: string
}

/** A secret in the form in which the API shows it: the key is masked. */
export type SecretView = { name: string; key: string; updated_at: string }

/** `GET /config/engine` (D8.1). */
export type EngineView = {
  routing: Routing
  audit: Audit
  files: FileRules
  instances: Pick<InstanceView, 'name' | 'type' | 'url' | 'key'>[]
  secrets: Pick<SecretView, 'name' | 'key'>[]
}

export type SettingsDeps = {
  configs: LiveConfigs
  keyring: Keyring
  /** The normalised form of a provider's address. Throws `invalid_request` for an address that may not be called. */
  checkUrl(url: string): string
  /** Instances of type `demo` are only allowed in the standalone form. */
  hasDemo: boolean
  now?: () => Date
}

/**
 * Reads and changes a tenant's runtime configuration (api.md "Runtime configuration", D8). Answers are masked; a change is stored
 * before it returns.
 */
export class TenantSettings {
  readonly #configs: LiveConfigs
  readonly #keyring: Keyring
  readonly #checkUrl: (url: string) => string
  readonly #hasDemo: boolean
  readonly #now: () => Date

  constructor({ configs, keyring, checkUrl, hasDemo, now = () => new Date() }: SettingsDeps) {
    this.#configs = configs
    this.#keyring = keyring
    this.#checkUrl = checkUrl
    this.#hasDemo = hasDemo
    this.#now = now
  }

  async engine(tenant: TenantId): Promise<EngineView> {
    return toEngineView(await this.#configs.stored(tenant))
  }

  async putEngine(tenant: TenantId, body: EngineBody): Promise<EngineView> {
    return toEngineView(await this.#configs.update(tenant, putEngine(body)))
  }

  async secrets(tenant: TenantId): Promise<SecretView[]> {
    return (await this.#configs.stored(tenant)).secrets.map(toSecretView)
  }

  /** Throws `not_found`. */
  async secret(tenant: TenantId, name: string): Promise<SecretView> {
    const found = (await this.#configs.stored(tenant)).secrets.find((secret) => secret.name === name)
    if (!found) throw noSecret(name)
    return toSecretView(found)
  }

  async putSecret(tenant: TenantId, name: string, value: string): Promise<SecretView> {
    const sealed = seal(value, { tenant, kind: 'secret', name }, this.#keyring)
    const secret: StoredSecret = { name, key: maskKey(value), sealed, updated_at: this.#now().toISOString() }
    await this.#configs.update(tenant, putSecret(secret))
    return toSecretView(secret)
  }

  async deleteSecret(tenant: TenantId, name: string): Promise<void> {
    await this.#configs.update(tenant, deleteSecret(name))
  }

  async instances(tenant: TenantId): Promise<InstanceView[]> {
    return (await this.#configs.stored(tenant)).instances.map(toInstanceView)
  }

  /** Throws `not_found`. */
  async instance(tenant: TenantId, name: string): Promise<InstanceView> {
    return toInstanceView(findInstance(await this.#configs.stored(tenant), name))
  }

  async putInstance(tenant: TenantId, name: string, body: InstanceBody): Promise<InstanceView> {
    if (body.type === 'demo' && !this.#hasDemo) throw noDemo()
    const context: SealContext = { tenant, kind: 'instance', name }
    const change = putInstance({
      name,
      body: body.url === undefined ? body : { ...body, url: normalUrl(body.url, this.#checkUrl) },
      revision: newId('rev'),
      now: this.#now().toISOString(),
      unseal: (sealed) => openMaterial(sealed, context, this.#keyring),
      seal: (material) => seal(JSON.stringify(material), context, this.#keyring),
    })
    return toInstanceView(findInstance(await this.#configs.update(tenant, change), name))
  }

  async deleteInstance(tenant: TenantId, name: string): Promise<void> {
    await this.#configs.update(tenant, deleteInstance(name))
  }
}

const noDemo = () =>
  invalidRequest('instances of type demo are for the standalone form only: create one of a real provider', {
    param: '/type',
  })

/** The normalised form of the address in a body's `url`. Throws `invalid_request` for an address that may not be called. */
export function normalUrl(url: string, checkUrl: (url: string) => string): string {
  try {
    return checkUrl(url)
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause
    throw invalidRequest(cause.message, { param: '/url', ...(cause.code !== undefined && { code: cause.code }) })
  }
}

/** Throws `not_found`. */
export function findInstance({ instances }: TenantConfig, name: string): StoredInstance {
  const found = instances.find((instance) => instance.name === name)
  if (!found) throw noInstance(name)
  return found
}

/** Decrypts the sealed part of an instance. Throws `unavailable` when it cannot be opened. */
export const openMaterial = (sealed: Sealed, context: SealContext, keyring: Keyring): InstanceMaterial =>
  JSON.parse(unseal(sealed, context, keyring)) as InstanceMaterial

const toSecretView = ({ name, key, updated_at }: StoredSecret): SecretView => ({ name, key, updated_at })

function toInstanceView({
  name,
  type,
  url,
  secret,
  key,
  options,
  prices,
  limits,
  created_at,
  updated_at,
}: StoredInstance): InstanceView {
  return {
    name,
    type,
    url: url ?? null,
    key: key ?? null,
    ...(secret !== undefined && { secret }),
    ...(options && { options }),
    ...(prices && { prices }),
    ...(limits && { limits }),
    created_at,
    updated_at,
  }
}

function toEngineView({ routing, audit, files, instances, secrets }: TenantConfig): EngineView {
  return {
    routing,
    audit,
    files,
    instances: instances.map(toInstanceView).map(({ name, type, url, key }) => ({ name, type, url, key })),
    secrets: secrets.map(({ name, key }) => ({ name, key })),
  }
}

import { AppError, conflict, invalidRequest, notFound } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { Keyring } from '../secrets/keyring.ts'
import { type SealContext, seal, unseal } from '../secrets/seal.ts'
import type { Change } from '../tenant-config/changes.ts'
import type { StoredWebhook, TenantConfig, WebhookMaterial } from '../tenant-config/config.ts'
import type { LiveConfigs } from '../tenant-config/live-configs.ts'
import { normalUrl } from '../tenant-config/settings.ts'

/** Body of `PUT /config/webhooks/{name}`. */
export type WebhookBody = ApiType<'WebhookRequest'>

/** A webhook in the form in which the API shows it: without its secret. */
export type WebhookView = Omit<StoredWebhook, 'id' | 'sealed'>

export type WebhookSettingsDeps = {
  configs: Pick<LiveConfigs, 'stored' | 'update'>
  keyring: Keyring
  /** The normalised form of a receiver's address. Throws `invalid_request` for one that may not be called. */
  checkUrl(url: string): string
  isSecret(text: string): boolean
  now?: () => Date
}

const MAX_WEBHOOKS = 20
/** How long messages are also signed with the previous secret, so that receivers have time to change theirs. */
const OVERLAP_MS = 24 * 3_600_000

/** Reads and changes the webhooks of a tenant. A change is stored before it returns. */
export class WebhookSettings {
  readonly #deps: WebhookSettingsDeps
  readonly #now: () => Date
  readonly #materials = new WeakMap<StoredWebhook, WebhookMaterial>()

  constructor(deps: WebhookSettingsDeps) {
    this.#deps = deps
    this.#now = deps.now ?? (() => new Date())
  }

  async list(tenant: TenantId): Promise<WebhookView[]> {
    return (await this.#deps.configs.stored(tenant)).webhooks.map(toView)
  }

  /** Throws `not_found`. */
  async get(tenant: TenantId, name: string): Promise<WebhookView> {
    return toView(findWebhook(await this.#deps.configs.stored(tenant), name))
  }

  /** Creates or replaces a webhook. Without a secret, it keeps the one that it has. Throws `invalid_request` and `conflict`. */
  async put(tenant: TenantId, name: string, body: WebhookBody): Promise<WebhookView> {
    const url = normalUrl(body.url, this.#deps.checkUrl)
    if (body.secret !== undefined && !this.#deps.isSecret(body.secret)) throw wrongSecret()
    const change: Change = (config) => {
      const before = config.webhooks.find((webhook) => webhook.name === name)
      const others = config.webhooks.filter((webhook) => webhook !== before)
      if (others.length >= MAX_WEBHOOKS)
        throw conflict(`a tenant has at most ${MAX_WEBHOOKS} webhooks; delete one first`)
      const webhook = this.#build(tenant, { ...body, name, url }, before)
      return { ...config, webhooks: [...others, webhook].toSorted((a, b) => (a.name < b.name ? -1 : 1)) }
    }
    return toView(findWebhook(await this.#deps.configs.update(tenant, change), name))
  }

  /** Pending deliveries are given up. Throws `not_found`. */
  async remove(tenant: TenantId, name: string): Promise<void> {
    await this.#deps.configs.update(tenant, (config) => {
      const removed = findWebhook(config, name)
      return { ...config, webhooks: config.webhooks.filter((webhook) => webhook !== removed) }
    })
  }

  /** The secrets to sign with now, the newest first. Throws `unavailable` when they cannot be decrypted. */
  secretsOf(tenant: TenantId, webhook: StoredWebhook): string[] {
    const { secret, previous } = this.#open(tenant, webhook)
    const isValid = previous !== undefined && Date.parse(previous.until) > this.#now().getTime()
    return isValid ? [secret, previous.secret] : [secret]
  }

  #build(
    tenant: TenantId,
    { name, url, events, enabled = true, secret }: WebhookBody & { name: string },
    before: StoredWebhook | undefined,
  ): StoredWebhook {
    const at = this.#now().toISOString()
    return {
      id: before?.id ?? newId('hook'),
      name,
      url,
      events: [...new Set(events)],
      enabled,
      sealed: this.#seal(tenant, name, { secret, before }),
      created_at: before?.created_at ?? at,
      updated_at: at,
    }
  }

  #seal(
    tenant: TenantId,
    name: string,
    { secret, before }: { secret: string | undefined; before: StoredWebhook | undefined },
  ): StoredWebhook['sealed'] {
    if (before && secret === undefined) return before.sealed
    if (secret === undefined)
      throw invalidRequest('a new webhook needs the secret that signs its messages', { param: '/secret' })
    const old = this.#secretBefore(tenant, before)
    if (before && old === secret) return before.sealed // The sealed value also has the previous secret, which may still be used for signing.
    const until = new Date(this.#now().getTime() + OVERLAP_MS).toISOString()
    const material: WebhookMaterial = old === undefined ? { secret } : { secret, previous: { secret: old, until } }
    return seal(JSON.stringify(material), contextOf(tenant, name), this.#deps.keyring)
  }

  #open(tenant: TenantId, webhook: StoredWebhook): WebhookMaterial {
    const known = this.#materials.get(webhook)
    if (known) return known
    const text = unseal(webhook.sealed, contextOf(tenant, webhook.name), this.#deps.keyring)
    const material = JSON.parse(text) as WebhookMaterial
    this.#materials.set(webhook, material)
    return material
  }

  /** A secret that cannot be decrypted any more is replaced without an overlap. */
  #secretBefore(tenant: TenantId, before: StoredWebhook | undefined): string | undefined {
    try {
      return before && this.#open(tenant, before).secret
    } catch (cause) {
      if (cause instanceof AppError) return undefined
      throw cause
    }
  }
}

/** Throws `not_found`. */
export function findWebhook({ webhooks }: TenantConfig, name: string): StoredWebhook {
  const found = webhooks.find((webhook) => webhook.name === name)
  if (!found) throw notFound(`no webhook is named ${name}: create it with PUT /config/webhooks/${name}`)
  return found
}

const contextOf = (tenant: TenantId, name: string): SealContext => ({ tenant, kind: 'webhook', name })

const toView = ({ id: _id, sealed: _sealed, ...webhook }: StoredWebhook): WebhookView => webhook

const wrongSecret = () =>
  invalidRequest('secret must be whsec_ and 24 to 64 random bytes in base64', { param: '/secret' })

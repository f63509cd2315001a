import type { LRUCache } from 'lru-cache'
import type { Models, Route } from '../../agent/engine/resources.ts'
import type { Ability, ModelProvider, ModelRoute } from '../../agent/providers/port.ts'
import { createCache } from '../../kernel/cache.ts'
import { AppError } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Role, RoleRoute, StoredInstance, TenantConfig } from '../../tenancy/tenant-config/config.ts'
import type { CredentialReader, Credentials } from '../../tenancy/tenant-config/credentials.ts'
import type { LiveConfigs } from '../../tenancy/tenant-config/live-configs.ts'
import { findInstance } from '../../tenancy/tenant-config/settings.ts'
import type { ProbeResult } from '../../tenancy/tenant-config/store/instance-capabilities.ts'
import { type ModelSource, noModel, type RunPurpose, type ServerModels, withModel } from './models.ts'

export type TenantModelsOptions = {
  configs: LiveConfigs
  credentials: CredentialReader
  server: ServerModels
  createProvider(instance: StoredInstance, credentials: Credentials): Promise<ModelProvider>
  /** The result of the latest probe of an instance's model; `undefined` when there is none. Left out: no probes are known. */
  probed?(tenant: TenantId, model: string, instance?: string): Promise<ProbeResult['capabilities'] | undefined>
  log: Log
  maxTenants?: number
}

/** A tenant's routes by role, opened from one state of its configuration. */
type Opened = {
  config: TenantConfig
  routes: ReadonlyMap<Role, Route>
  /** Why the main route cannot be called, such as a key that cannot be decrypted. */
  failure: AppError | undefined
}

/** The roles with models that runs call. */
const RUN_ROLES = ['main', 'subagent', 'plan', 'compact'] as const satisfies readonly Role[]

const MAX_TENANTS = 10_000

/**
 * The models of tenants: their own routes if they have a main route, otherwise the server's models (D8.5). Routes are opened when a tenant's
 * configuration is first needed, and again as soon as it changes; a run reads the newest at the start of each turn.
 */
export class TenantModels implements ModelSource {
  readonly #options: TenantModelsOptions
  readonly #opened: LRUCache<TenantId, Opened>
  readonly #opening = new Map<TenantId, Promise<void>>()
  readonly #stopListening: () => void

  constructor(options: TenantModelsOptions) {
    this.#options = options
    this.#opened = createCache(options.maxTenants ?? MAX_TENANTS)
    this.#stopListening = options.configs.onChange((tenant) => {
      if (this.#opened.has(tenant)) this.#reopen(tenant)
    })
  }

  load(tenant: TenantId): Promise<void> | undefined {
    const opened = this.#opened.get(tenant)
    if (opened && this.#isCurrent(tenant, opened)) return this.#readAbilities(tenant, opened.routes)
    return this.#opening.get(tenant) ?? this.#open(tenant)
  }

  modelsFor(tenant: TenantId, model: string | undefined, purpose: RunPurpose = 'main'): Models {
    const { priceOf, windowOf } = this.#options.server
    const newest = this.#newestOf(tenant)
    const main = () => withModel(newest().routes.get(purpose) ?? this.#mainOf(newest()), model)
    const roleOf = (role: Role) => () => newest().routes.get(role) ?? this.#smallOf(main())
    const { failure } = newest()
    if (failure) throw failure
    main() // Throws when there is no model.
    return { main, subAgents: roleOf('subagent'), summaries: roleOf('compact'), priceOf, windowOf }
  }

  close(): void {
    this.#stopListening()
  }

  /** Returns the tenant's newest routes to a run; if this process has dropped them meanwhile, the last routes that the run has seen. */
  #newestOf(tenant: TenantId): () => Opened {
    let last = this.#opened.get(tenant)
    return () => {
      last = this.#opened.get(tenant) ?? last
      if (!last) throw new Error('the models of a tenant were asked for before they were loaded')
      if (!this.#isCurrent(tenant, last) && !this.#opening.has(tenant)) this.#reopen(tenant)
      return last
    }
  }

  #isCurrent(tenant: TenantId, { config }: Opened): boolean {
    return config === this.#options.configs.peek(tenant)
  }

  #mainOf({ routes }: Opened): Route {
    const { primary, fallback } = this.#options.server
    const own = routes.get('main')
    if (own) return own
    if (!primary) throw noModel('no model is configured for this tenant: set a main route with PUT /config/engine')
    return { primary, fallback }
  }

  /** SMALL_MODEL is a model of the server's own provider. */
  #smallOf(route: Route): Route {
    const { primary, smallModel } = this.#options.server
    return route.primary.provider === primary?.provider ? withModel(route, smallModel) : route
  }

  #reopen(tenant: TenantId): void {
    this.#open(tenant).catch((cause: unknown) => {
      this.#options.log.warn("a tenant's changed configuration could not be read; its runs use the one before", {
        cause,
      })
    })
  }

  /** Only the newest opening counts: an earlier one may have read a configuration that has changed since. */
  #open(tenant: TenantId): Promise<void> {
    const opening = this.#openRoutes(tenant).then(
      (opened) => {
        if (this.#opening.get(tenant) !== opening) return this.#opening.get(tenant)
        this.#opened.set(tenant, opened)
        this.#opening.delete(tenant)
      },
      (cause: unknown) => {
        if (this.#opening.get(tenant) === opening) this.#opening.delete(tenant)
        throw cause
      },
    )
    this.#opening.set(tenant, opening)
    return opening
  }

  async #openRoutes(tenant: TenantId): Promise<Opened> {
    const config = await this.#options.configs.get(tenant)
    const routes = new Map<Role, Route>()
    let failure: AppError | undefined
    for (const role of RUN_ROLES) {
      const route = config.routing[role]
      if (!route) continue
      const opened = await this.#openRoute(tenant, route, config)
      routes.set(role, opened.route)
      if (role === 'main') failure = opened.failure
    }
    await this.#readAbilities(tenant, routes)
    return { config, routes, failure }
  }

  /** Reads the probe results of models among which runs choose. While the store does not answer, the earlier results count. */
  #readAbilities(tenant: TenantId, routes: Opened['routes']): Promise<void> | undefined {
    const chosen = [...routes.values()].filter(({ strategy = 'order' }) => strategy !== 'order')
    if (chosen.length === 0) return undefined
    const targets = chosen.flatMap(({ primary, fallback }) => (fallback ? [primary, fallback] : []))
    const reading = targets.map(async (target) => {
      target.lacks = lacking(await this.#options.probed?.(tenant, target.model, target.provider.instance))
    })
    return Promise.all(reading).then(
      () => {},
      (cause: unknown) => this.#options.log.debug('the probes of models cannot be read', { cause }),
    )
  }

  async #openRoute(
    tenant: TenantId,
    { instance, model, fallback_instance: fallback, fallback_model: fallbackModel, strategy, hedge }: RoleRoute,
    config: TenantConfig,
  ): Promise<{ route: Route; failure: AppError | undefined }> {
    const [primary, failure] = await this.#openInstance(tenant, instance, config)
    const spare = fallback === undefined ? undefined : await this.#openInstance(tenant, fallback, config)
    const spareRoute: ModelRoute | undefined = spare && { provider: spare[0], model: fallbackModel ?? '' }
    return { route: { primary: { provider: primary, model }, fallback: spareRoute, strategy, hedge }, failure }
  }

  /** An instance that cannot be opened becomes a provider that fails each call with the reason. */
  async #openInstance(
    tenant: TenantId,
    name: string,
    config: TenantConfig,
  ): Promise<[provider: ModelProvider, failure?: AppError]> {
    const { credentials, createProvider } = this.#options
    const instance = findInstance(config, name)
    try {
      return [await createProvider(instance, credentials.read(tenant, instance, config))]
    } catch (cause) {
      if (!(cause instanceof AppError)) throw cause
      return [failingProvider(instance.type, cause.message), cause]
    }
  }
}

const lacking = (found: ProbeResult['capabilities'] | undefined): Ability[] | undefined =>
  found && [
    ...(found.tools ? [] : ['tools' as const]),
    ...(found.vision ? [] : ['images' as const]),
    ...(found.structured_output ? [] : ['schema' as const]),
  ]

const failingProvider = (type: string, message: string): ModelProvider => ({
  type,
  async *stream() {
    const fields = { code: 'provider_auth', reason: 'not_configured', isRetryable: false, isFailover: true } as const
    yield { type: 'failure', failure: { ...fields, message } }
  },
})

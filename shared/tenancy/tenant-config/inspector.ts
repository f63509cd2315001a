import { discoverModels } from '../../agent/providers/discover.ts'
import { type ProbedProviders, probeModel } from '../../agent/providers/probe.ts'
import { AppError } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { Egress } from '../../platform/net/port.ts'
import type { StoredInstance } from './config.ts'
import type { CredentialReader, Credentials } from './credentials.ts'
import type { LiveConfigs } from './live-configs.ts'
import { findInstance } from './settings.ts'
import type { Capabilities, CapabilityStore, Discovery, ProbeResult } from './store/instance-capabilities.ts'

export type RoomOfModel = ApiType<'Capabilities'>['room'][number]

export type InspectorDeps = {
  configs: Pick<LiveConfigs, 'stored'>
  credentials: CredentialReader
  capabilities: CapabilityStore
  egress: Pick<Egress, 'request'>
  /** How much of its provider's limits an instance uses. */
  roomOf(tenant: TenantId, instance: string): Promise<RoomOfModel[]>
  /** Throws `rate_limit` or `unavailable` when the tenant's budget allows no model call. */
  assertBudget(tenant: TenantId): Promise<void>
  /** Opens the providers that a probe calls. Their calls count against the tenant's limits. */
  openProviders(tenant: TenantId, instance: StoredInstance, credentials: Credentials): Promise<ProbedProviders>
  now?: () => Date
  probeTimeoutMs?: number
  discoverTimeoutMs?: number
}

/** api.md "Limits". */
const PROBE_MS = 90_000
const DISCOVER_MS = 15_000

/**
 * Asks a tenant's instances what they can do, and keeps the answers (D8.4). Every method throws `not_found` for an unknown instance;
 * `discover` and `probe` throw `upstream` when the provider fails, within their time limits. A probe calls the model, so it throws
 * `rate_limit` when the tenant's budget is used up, also during the probe.
 */
export class InstanceInspector {
  readonly #deps: InspectorDeps
  readonly #now: () => Date

  constructor(deps: InspectorDeps) {
    this.#deps = deps
    this.#now = deps.now ?? (() => new Date())
  }

  async discover(tenant: TenantId, name: string, signal: AbortSignal): Promise<Discovery> {
    const { egress, capabilities, discoverTimeoutMs = DISCOVER_MS } = this.#deps
    const { instance, credentials } = await this.#open(tenant, name)
    const models = await discoverModels(
      { type: instance.type, url: instance.url, ...credentials },
      { request: egress.request, signal, timeoutMs: discoverTimeoutMs },
    )
    const discovery: Discovery = { models, discovered_at: this.#now().toISOString() }
    if (await this.#isCurrent(tenant, instance)) await capabilities.saveDiscovery(tenant, instance, discovery)
    return discovery
  }

  async probe(
    tenant: TenantId,
    name: string,
    { model, signal }: { model: string; signal: AbortSignal },
  ): Promise<ProbeResult> {
    const { openProviders, capabilities, assertBudget, probeTimeoutMs = PROBE_MS } = this.#deps
    const { instance, credentials } = await this.#open(tenant, name)
    await assertBudget(tenant)
    const providers = await openProviders(tenant, instance, credentials)
    const deadline = AbortSignal.timeout(probeTimeoutMs)
    const probing = probeModel(providers, model, AbortSignal.any([signal, deadline]))
    const result = await probing.catch(async (cause: unknown) => {
      if (deadline.aborted) throw tooSlow(instance, probeTimeoutMs)
      await assertBudget(tenant)
      throw cause
    })
    const probe: ProbeResult = {
      model,
      capabilities: result.capabilities,
      latency_ms: result.latencyMs,
      probed_at: this.#now().toISOString(),
    }
    if (await this.#isCurrent(tenant, instance)) await capabilities.saveProbe(tenant, instance, probe)
    return probe
  }

  /** The stored results for the instance's present configuration, and its room. */
  async capabilities(tenant: TenantId, name: string): Promise<Capabilities & { room: RoomOfModel[] }> {
    const instance = findInstance(await this.#deps.configs.stored(tenant), name)
    const [stored, room] = await Promise.all([
      this.#deps.capabilities.read(tenant, instance),
      this.#deps.roomOf(tenant, name),
    ])
    return { ...stored, room }
  }

  async #open(tenant: TenantId, name: string): Promise<{ instance: StoredInstance; credentials: Credentials }> {
    const config = await this.#deps.configs.stored(tenant)
    const instance = findInstance(config, name)
    return { instance, credentials: this.#deps.credentials.read(tenant, instance, config) }
  }

  /**
   * Whether the instance is still as it was when it was asked; only then may the results be stored. Throws `not_found` when it was
   * deleted meanwhile.
   */
  async #isCurrent(tenant: TenantId, { name, revision }: StoredInstance): Promise<boolean> {
    return findInstance(await this.#deps.configs.stored(tenant), name).revision === revision
  }
}

const tooSlow = ({ name, type }: StoredInstance, timeoutMs: number) =>
  new AppError('upstream', `${type} did not answer the probe of instance ${name} within ${timeoutMs / 1000} s`)

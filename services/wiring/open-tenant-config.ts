import type { Transport } from '../../shared/agent/providers/batch/answered-calls.ts'
import type { VendorBatches } from '../../shared/agent/providers/batch/port.ts'
import { openVendorBatches } from '../../shared/agent/providers/batch/vendors.ts'
import { createHttpSend } from '../../shared/agent/providers/chat/transport.ts'
import { MODEL_LIMITS } from '../../shared/agent/providers/limits.ts'
import type { ModelProvider } from '../../shared/agent/providers/port.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { ConfigError } from '../../shared/platform/config/config.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { createConnectionGuard } from '../../shared/platform/net/address-policy.ts'
import type { Egress } from '../../shared/platform/net/port.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import type { BudgetHolds, RunPlaces } from '../../shared/tenancy/limits/port.ts'
import { pricesOf } from '../../shared/tenancy/limits/unpriced.ts'
import type { RateLimiter } from '../../shared/tenancy/rate/port.ts'
import type { Rooms } from '../../shared/tenancy/room/port.ts'
import type { StoredInstance } from '../../shared/tenancy/tenant-config/config.ts'
import { ConfigHistory } from '../../shared/tenancy/tenant-config/config-history.ts'
import { CredentialReader, type Credentials } from '../../shared/tenancy/tenant-config/credentials.ts'
import { type InspectorDeps, InstanceInspector } from '../../shared/tenancy/tenant-config/inspector.ts'
import {
  type ConfigNotice,
  type LiveConfigs,
  openLiveConfigs,
} from '../../shared/tenancy/tenant-config/live-configs.ts'
import { TenantSettings } from '../../shared/tenancy/tenant-config/settings.ts'
import type { CapabilityStore } from '../../shared/tenancy/tenant-config/store/instance-capabilities.ts'
import { WebhookOutbox } from '../../shared/tenancy/webhooks/outbox.ts'
import { WebhookSettings } from '../../shared/tenancy/webhooks/settings.ts'
import { isWebhookSecret } from '../../shared/tenancy/webhooks/signature.ts'
import { createProvider } from './models/create-provider.ts'
import { type OpenedLimits, openLimits } from './open-limits.ts'
import type { OpenedStore } from './open-store.ts'
import { loadKeyring } from './secrets/load-keyring.ts'

/** The runtime configuration of tenants, and guarded connections to the providers that it names. */
export type OpenedTenantConfig = {
  configs: LiveConfigs
  audit: ConfigHistory
  capabilities: CapabilityStore
  credentials: CredentialReader
  settings: TenantSettings
  inspector: InstanceInspector
  webhooks: WebhookSettings
  outbox: WebhookOutbox
  limits: OpenedLimits
  /** `transportOf` may wrap the instance's connections. */
  openInstance(
    instance: StoredInstance,
    credentials: Credentials,
    transportOf?: (live: Transport) => Transport,
  ): Promise<ModelProvider>
  /** The batch endpoints of an instance; `undefined` for a type without any, and when its key cannot be read; its live calls then report that. */
  openVendor(tenant: TenantId, instance: string): Promise<VendorBatches | undefined>
  egress: Pick<Egress, 'request'>
  close(): Promise<void>
}

type Parts = {
  form: Form
  store: OpenedStore | undefined
  notice: ConfigNotice
  events: EventSink
  places: RunPlaces
  holds: BudgetHolds
  rooms: Rooms
  limiter: RateLimiter
  metrics: Metrics
  log: Log
}

/** A provider or backend may think for an hour before its first byte (`timeout_secs`); each call has a limit of its own. */
const IDLE_MS = 3_600_000

/**
 * Opens the runtime configuration. `undefined` where it is disabled: without a store, or without a master key (D1.3 MASTER_KEY). Throws
 * `ConfigError` when the operator's limits cannot be enforced.
 */
export async function openTenantConfig(
  { allowsPrivateUrls: allowPrivate, consoleUrl, keys, limits: limitSettings }: Settings['tenants'],
  { form, store, notice, events, places, holds, rooms, limiter, metrics, log }: Parts,
): Promise<OpenedTenantConfig | undefined> {
  const keyring = store && (await loadKeyring(keys, form, log))
  if (!keyring) return disabled(limitSettings)
  const configs = await openLiveConfigs({ store: store.tenantConfigs, notice, events, log })
  const credentials = new CredentialReader(keyring)
  const outbox = new WebhookOutbox({ configs, store: store.deliveries, consoleUrl })
  const thresholds = { events, outbox }
  const limited = { configs, store, places, holds, rooms, thresholds, limiter, metrics, log }
  const limits = await openLimits(limitSettings, limited)
  const guard = createConnectionGuard({ allowPrivate })
  const checkUrl = (url: string) => guard.checkUrl(url).href
  const egress = openEgressLazily(allowPrivate)
  const transport = { send: createHttpSend({ ...MODEL_LIMITS, guard }), fetch: egress.fetch }
  const openInstance = createInstanceOpener(transport, (message) => log.warn(message))
  const inspected = { configs, credentials, capabilities: store.capabilities, egress, roomOf: limits.roomOf }
  return {
    configs,
    credentials,
    audit: new ConfigHistory(store.tenantConfigs),
    capabilities: store.capabilities,
    settings: new TenantSettings({ configs, keyring, checkUrl, hasDemo: form === 'standalone' }),
    webhooks: new WebhookSettings({ configs, keyring, checkUrl, isSecret: isWebhookSecret }),
    limits,
    outbox,
    inspector: new InstanceInspector({ ...inspected, ...probesOf(openInstance, limits) }),
    openInstance,
    openVendor: vendorsOf({ configs, credentials, send: transport.send }),
    egress,
    async close() {
      await limits.close()
      await configs.close()
      await egress.close()
    },
  }
}

/** Throws if TENANT_LIMITS is set: without runtime configuration it would have no effect. */
function disabled({ tenantLimits }: Settings['tenants']['limits']): undefined {
  if (tenantLimits === undefined) return
  throw new ConfigError([
    'TENANT_LIMITS needs MASTER_KEY, and in the cluster MONGODB_URL too: nothing limits tenants without',
  ])
}

type OpenInstance = OpenedTenantConfig['openInstance']

/** For probes, opens an instance as it is and once more with reasoning on; the tenant's budget counts and limits the calls of both. */
function probesOf(
  open: OpenInstance,
  { assertBudget, meter }: OpenedLimits,
): Pick<InspectorDeps, 'assertBudget' | 'openProviders'> {
  return {
    assertBudget,
    async openProviders(tenant, instance, keys) {
      const reasoning = { ...instance, options: { ...instance.options, reasoning_effort: 'low' as const } }
      const opened = async (each: StoredInstance) => meter.provider(tenant, await open(each, keys))
      return { plain: await opened(instance), reasoning: await opened(reasoning) }
    },
  }
}

const createInstanceOpener =
  (transport: Transport, onLeftOut: (message: string) => void): OpenInstance =>
  async ({ name, type, url, options, prices, limits }, { key, headers }, transportOf = (live) => live) => {
    const provider = await createProvider({
      type,
      baseUrl: url,
      apiKey: key,
      instance: name,
      options: { ...options, headers: { ...headers } },
      ...transportOf(transport),
      onLeftOut,
    })
    return { ...provider, ...(prices && { prices: pricesOf({ prices }) }), caps: limits }
  }

type VendorParts = { configs: Pick<LiveConfigs, 'get'>; credentials: CredentialReader; send: Transport['send'] }

const vendorsOf =
  ({ configs, credentials, send }: VendorParts): OpenedTenantConfig['openVendor'] =>
  async (tenant, name) => {
    const config = await configs.get(tenant)
    const instance = config.instances.find((each) => each.name === name)
    if (!instance) return undefined
    const { type, url: baseUrl } = instance
    try {
      const { key: apiKey = '', headers } = credentials.read(tenant, instance, config)
      return openVendorBatches({ type, baseUrl, apiKey, headers, send })
    } catch {
      return undefined
    }
  }

/** The egress is opened at the first request: its library is large, and most processes never send one. */
function openEgressLazily(allowPrivate: boolean): Egress {
  let opened: Promise<Egress> | undefined
  const open = () => {
    opened ??= import('../../shared/platform/net/egress.ts').then(({ createEgress }) =>
      createEgress({ allowPrivate, idleTimeoutMs: IDLE_MS }),
    )
    return opened
  }
  return {
    request: async (url, request) => (await open()).request(url, request),
    fetch: async (input, init) => (await open()).fetch(input, init),
    close: async () => (await opened)?.close(),
  }
}

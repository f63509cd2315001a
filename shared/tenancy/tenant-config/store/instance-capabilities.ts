import { createKeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { CollectionSpec, Store } from '../../../platform/store/port.ts'
import { replaceDoc } from '../../../platform/store/replace.ts'

export const INSTANCE_CAPABILITIES: CollectionSpec = { name: 'instance_capabilities', key: ['name'] }

/** `POST …/discover` (D8.4). */
export type Discovery = { models: ({ id: string } & JsonObject)[]; discovered_at: string }

/** `POST …/probe` (D8.4). */
export type ProbeResult = {
  model: string
  capabilities: Record<'streaming' | 'tools' | 'structured_output' | 'thinking' | 'vision', boolean>
  latency_ms: number
  probed_at: string
}

export type Capabilities = { discovery: Discovery | null; probes: ProbeResult[] }

/** Stores the results of discovery and probes, for the revision of the instance that they called. */
export interface CapabilityStore {
  /** Empty when nothing is stored for this revision. */
  read(tenant: TenantId, instance: InstanceRevision): Promise<Capabilities>
  /** Results of another revision are replaced. */
  saveDiscovery(tenant: TenantId, instance: InstanceRevision, discovery: Discovery): Promise<void>
  /** One result per model, the newest 50. */
  saveProbe(tenant: TenantId, instance: InstanceRevision, probe: ProbeResult): Promise<void>
}

export type InstanceRevision = { name: string; revision: string }

const MAX_PROBES = 50
const NOTHING: Capabilities = { discovery: null, probes: [] }

export function createCapabilityStore(store: Store): CapabilityStore {
  const documents = store.collection(INSTANCE_CAPABILITIES)
  const oneAtATime = createKeyedQueue()

  const update = (
    tenant: TenantId,
    { name, revision }: InstanceRevision,
    change: (now: Capabilities) => Capabilities,
  ) =>
    oneAtATime.run(`${tenant} ${name}`, async () => {
      await replaceDoc(documents, tenant, {
        key: { name },
        change: (doc) => ({ ...change(capabilitiesOf(doc, revision)), revision }),
      })
    })

  return {
    async read(tenant, { name, revision }) {
      return capabilitiesOf((await documents.get(tenant, { name }))?.doc, revision)
    },
    saveDiscovery: (tenant, instance, discovery) => update(tenant, instance, ({ probes }) => ({ discovery, probes })),
    saveProbe: (tenant, instance, probe) =>
      update(tenant, instance, ({ discovery, probes }) => {
        const others = probes.filter(({ model }) => model !== probe.model)
        return { discovery, probes: [probe, ...others].slice(0, MAX_PROBES) }
      }),
  }
}

function capabilitiesOf(doc: JsonObject | undefined, revision: string): Capabilities {
  if (doc?.['revision'] !== revision) return NOTHING
  const { discovery, probes } = doc as unknown as Capabilities
  return { discovery, probes }
}

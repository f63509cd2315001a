import type { JsonObject } from '../events.ts'
import { createKeyedQueue } from '../keyed-queue.ts'
import type { TenantId } from '../tenant.ts'
import type { CollectionSpec, Store } from './port.ts'
import { storeUnavailable } from './unavailable.ts'

export const INSTANCE_CAPABILITIES: CollectionSpec = { name: 'instance_capabilities', key: ['name'] }

/** `POST …/discover` (D8.4). */
export type Discovery = { models: ({ id: string } & JsonObject)[]; discovered_at: string }

/** `POST …/probe` (D8.4). */
export type Probe = {
  model: string
  capabilities: Record<'streaming' | 'tools' | 'structured_output' | 'thinking' | 'vision', boolean>
  latency_ms: number
  probed_at: string
}

export type Capabilities = { discovery: Discovery | null; probes: Probe[] }

/** What discovery and probes found out about an instance, for the revision of it that they asked. */
export interface CapabilityStore {
  /** Empty when nothing is stored for this revision. */
  read(tenant: TenantId, instance: InstanceRevision): Promise<Capabilities>
  /** Results of another revision are replaced. */
  saveDiscovery(tenant: TenantId, instance: InstanceRevision, discovery: Discovery): Promise<void>
  /** One result a model, the newest 50. */
  saveProbe(tenant: TenantId, instance: InstanceRevision, probe: Probe): Promise<void>
}

export type InstanceRevision = { name: string; revision: string }

const MAX_PROBES = 50
const MAX_TRIES = 20
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
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const found = await documents.get(tenant, { name })
        const doc = { ...change(capabilitiesOf(found?.doc, revision)), name, revision }
        const isStored = found
          ? await documents.replaceIfVersion(tenant, { doc, version: found.version })
          : await documents.insert(tenant, doc)
        if (isStored) return
      }
      throw storeUnavailable('too many writers')
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

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  type OpenedStore,
  openClusterStore,
  openStandaloneStore,
  SQLITE_FILE,
} from '../../services/wiring/open-store.ts'
import { createLog } from '../../shared/kernel/log.ts'
import { readKeptKey } from '../../shared/tenancy/secrets/kept-key.ts'
import { createKeyring } from '../../shared/tenancy/secrets/keyring.ts'
import type { Sealed } from '../../shared/tenancy/secrets/seal.ts'
import type { TenantConfig } from '../../shared/tenancy/tenant-config/config.ts'
import type { Check, Finding, Patient } from './finding.ts'

/** Whether every stored key of a tenant can be decrypted. Keys are not decrypted: each record names its master key. */
export const checkMasterKey: Check = async (patient) => {
  const { masterKeysPrevious } = patient.config
  const stored = await countSealed(patient)
  const needsKey = patient.isCluster || canBeRead(patient.config)
  const masterKey = patient.config.masterKey ?? (needsKey ? undefined : await readKeptKey(patient.config.dataDir))
  if (!masterKey && stored.size > 0) return [lost([...stored.values()].reduce((sum, count) => sum + count))]
  if (!masterKey) return needsKey ? [UNSET] : [] // The next start of the standalone form makes one.
  const keyring = createKeyring(masterKey, masterKeysPrevious)
  const count = (isSo: (id: string) => boolean) =>
    [...stored].reduce((sum, [id, records]) => sum + (isSo(id) ? records : 0), 0)
  const unreadable = count((id) => keyring.find(id) === undefined)
  const old = count((id) => id !== keyring.primary.id && keyring.find(id) !== undefined)
  return [
    ...(unreadable > 0 ? [lost(unreadable)] : []),
    ...(old > 0
      ? [{ problem: `${old} stored keys are still under a former master key`, cure: 'run scripts/rewrap-keys' }]
      : []),
  ]
}

/** The programs that tools start could read a kept key, so none is kept. */
const canBeRead = ({ isBashEnabled, mcpConfig }: Patient['config']) => isBashEnabled || mcpConfig !== undefined

const UNSET: Finding = {
  problem: 'MASTER_KEY is not set, so tenants cannot configure providers, and no flow can run',
  cure: 'set it to the output of `head -c 32 /dev/urandom | base64`, the same in every process',
}

const lost = (records: number): Finding => ({
  problem: `${records} stored keys were encrypted with a master key that is not configured, so their providers cannot be used`,
  cure: 'add the former key to MASTER_KEY_PREVIOUS, or have the tenants store their keys again',
})

/** The number of encrypted records under each master key's id. */
async function countSealed(patient: Patient): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  const store = await openStore(patient)
  if (!store) return counts
  try {
    for await (const { sealed } of sealedOf(store)) counts.set(sealed.kid, (counts.get(sealed.kid) ?? 0) + 1)
    return counts
  } catch {
    return counts // The store is away, which its own check reports.
  } finally {
    await store.close()
  }
}

async function openStore({ config, isCluster }: Patient): Promise<OpenedStore | undefined> {
  if (isCluster) return openClusterStore(config, createLog({ level: 'error', secrets: config.secrets }))
  return existsSync(join(config.dataDir, SQLITE_FILE)) ? openStandaloneStore(config) : undefined
}

async function* sealedOf({ tenantConfigs }: OpenedStore): AsyncGenerator<{ sealed: Sealed }> {
  let after: string | undefined
  for (;;) {
    const page = await tenantConfigs.tenants(after)
    for (const tenant of page) {
      const config = (await tenantConfigs.read(tenant)) as TenantConfig | undefined
      for (const { sealed } of [...(config?.secrets ?? []), ...(config?.instances ?? [])]) if (sealed) yield { sealed }
    }
    after = page.at(-1)
    if (after === undefined) return
  }
}

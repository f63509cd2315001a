import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { COLLECTIONS } from '../../../services/wiring/collections.ts'
import { createLocalParts } from '../../../services/wiring/config-notice.ts'
import { createDemoProvider } from '../../../shared/agent/providers/demo/demo.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { openSqliteStore } from '../../../shared/platform/store/sqlite/sqlite.ts'
import { NO_EVENTS } from '../../../shared/tenancy/events/port.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import { CredentialReader } from '../../../shared/tenancy/tenant-config/credentials.ts'
import { openLiveConfigs } from '../../../shared/tenancy/tenant-config/live-configs.ts'
import { TenantSettings } from '../../../shared/tenancy/tenant-config/settings.ts'
import { createTenantConfigStore } from '../../../shared/tenancy/tenant-config/store/tenant-configs.ts'
import { createServerModels, type ModelSource, type ServerModels } from '../../../shared/work/runs/models.ts'
import { TenantModels } from '../../../shared/work/runs/tenant-models.ts'
import type { Bench } from '../bench.ts'
import type { Figure, Measured } from '../figure.ts'
import { median } from '../statistics.ts'

/** Runs that are timed together: one alone is below the clock's resolution. */
const BATCH = 1_000

/** The time that a tenant's own route adds to a run, beside the server's models: the routes are known, and the key is decrypted. */
export const routing: Figure = {
  name: 'routing',
  title: "a tenant's own route, added to each run",
  goal: { atMost: 50 },
  unit: ' us',
  measure,
}

const SERVER: ServerModels = {
  primary: { provider: createDemoProvider(), model: 'demo' },
  fallback: undefined,
  priceOf: () => 0,
  windowOf: () => undefined,
}

async function measure(bench: Bench): Promise<Measured> {
  const dir = await mkdtemp(join(tmpdir(), 'agent-engine-bench-'))
  const store = await openSqliteStore({ file: join(dir, 'db'), collections: COLLECTIONS })
  const log = createLog({ level: 'error' })
  const configs = await openLiveConfigs({
    store: createTenantConfigStore(store),
    notice: createLocalParts().notice,
    events: NO_EVENTS,
    log,
  })
  const keyring = createKeyring(randomBytes(32))
  const settings = new TenantSettings({ configs, keyring, checkUrl: (url) => url, hasDemo: true })
  const models = new TenantModels({
    configs,
    credentials: new CredentialReader(keyring),
    server: SERVER,
    createProvider: async () => createDemoProvider(),
    log,
  })
  try {
    await settings.putInstance(TENANT, 'main', { type: 'openai', key: 'sk-bench-0123456789' })
    await settings.putEngine(TENANT, { routing: { main: { instance: 'main', model: 'm' } } })
    await models.load(TENANT)
    return compare(models, bench)
  } finally {
    models.close()
    await configs.close()
    await store.close()
    await rm(dir, { recursive: true })
  }
}

function compare(tenants: ModelSource, bench: Bench): Measured {
  const server = createServerModels(SERVER)
  const times: Record<'own' | 'server', number[]> = { own: [], server: [] }
  for (let round = 0; round < bench.pick(300, 100); round += 1) {
    times.own.push(timeOf(tenants))
    times.server.push(timeOf(server))
    bench.signal.throwIfAborted()
  }
  const [own, plain] = [median(times.own), median(times.server)]
  const detail = `${own.toFixed(2)} us a run with a tenant's route, ${plain.toFixed(2)} us with the server's models`
  return { value: own - plain, detail }
}

/** Microseconds a run, as the worker asks: is the tenant loaded, which models, and the route of the first turn. */
function timeOf(source: ModelSource): number {
  const startedAt = performance.now()
  for (let run = 0; run < BATCH; run += 1) {
    if (source.load(TENANT)) throw new Error('the tenant is not loaded')
    source.modelsFor(TENANT, undefined).main()
  }
  return ((performance.now() - startedAt) * 1_000) / BATCH
}

import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { createDemoProvider } from '../../../shared/agent/providers/demo/demo.ts'
import type { ModelPart } from '../../../shared/agent/providers/port.ts'
import { oneByOne } from '../../../shared/kernel/async/batch.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { DEFAULT_TENANT as TENANT, type TenantId } from '../../../shared/kernel/tenant.ts'
import { NO_EVENTS } from '../../../shared/tenancy/events/port.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import { CredentialReader } from '../../../shared/tenancy/tenant-config/credentials.ts'
import { type LiveConfigs, openLiveConfigs } from '../../../shared/tenancy/tenant-config/live-configs.ts'
import { TenantSettings } from '../../../shared/tenancy/tenant-config/settings.ts'
import type { ProbeResult } from '../../../shared/tenancy/tenant-config/store/instance-capabilities.ts'
import type { TenantConfigStore } from '../../../shared/tenancy/tenant-config/store/tenant-configs.ts'
import type { ServerModels } from '../../../shared/work/runs/models.ts'
import { TenantModels } from '../../../shared/work/runs/tenant-models.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { tenantId } from '../../support/tenant.ts'

const KEY = 'sk-canary-0123456789'
const OTHER = tenantId('other')

const SERVER: ServerModels = {
  primary: { provider: createDemoProvider(), model: 'server-model' },
  fallback: undefined,
  priceOf: () => 0,
  windowOf: () => undefined,
}

/** A store in memory whose reads can be held back. */
function memoryStore() {
  const docs = new Map<TenantId, JsonObject>()
  const held: (() => void)[] = []
  const store = {
    isHolding: false,
    /** The newest first, so that older reads end last. */
    release: () =>
      held
        .splice(0)
        .toReversed()
        .forEach((resume) => resume()),
    reads: 0,
    async read(tenant: TenantId) {
      store.reads += 1
      const doc = docs.get(tenant)
      if (store.isHolding) await new Promise<void>((resolve) => held.push(resolve))
      return doc
    },
    async update(tenant: TenantId, change: (doc: JsonObject | undefined) => JsonObject) {
      const doc = change(docs.get(tenant))
      docs.set(tenant, doc)
      return doc
    },
    audit: async () => [],
    changes: async () => [],
    tenants: async () => [],
  }
  return store satisfies TenantConfigStore
}

describe("a tenant's models", () => {
  const keyring = createKeyring(randomBytes(32))
  let store: ReturnType<typeof memoryStore>
  let configs: LiveConfigs
  let settings: TenantSettings
  let models: TenantModels
  let opened: string[]
  let probes: Map<string, ProbeResult['capabilities']>

  beforeEach(async () => {
    store = memoryStore()
    const log = SILENT_LOG
    configs = await openLiveConfigs({
      store,
      events: NO_EVENTS,
      notice: { send: () => {}, listen: async () => async () => {} },
      log,
      pollMs: 3_600_000,
    })
    settings = new TenantSettings({ configs, keyring, checkUrl: (url) => url, hasDemo: true })
    opened = []
    probes = new Map()
    models = new TenantModels({
      configs,
      credentials: new CredentialReader(keyring),
      server: { ...SERVER, smallModel: 'small-model' },
      async createProvider({ name }, { key }) {
        opened.push(`${name} ${key}`)
        return { ...createDemoProvider(), type: name, instance: name }
      },
      probed: async (_tenant, _model, name) => probes.get(name ?? ''),
      log,
    })
  })

  afterEach(async () => {
    models.close()
    await configs.close()
  })

  const put = (name: string, key: string | undefined = KEY) =>
    settings.putInstance(TENANT, name, { type: 'openai', ...(key !== undefined && { key }) })
  const route = (routing: object) => settings.putEngine(TENANT, { routing })
  const main = { instance: 'a', model: 'm-a' }

  it('D8.5: without a route they are the server’s, and the tenant is loaded once', async () => {
    await models.load(TENANT)
    expect(models.load(TENANT)).to.equal(undefined)
    expect(models.modelsFor(TENANT, undefined).main().primary.model).to.equal('server-model')
    expect(models.modelsFor(TENANT, 'other-model').main().primary.model).to.equal('other-model')
    expect(store.reads).to.equal(1)
  })

  it('D8.1: each role has its route, and roles without one follow the main route', async () => {
    await put('a')
    await put('b', 'sk-b-0123456789abcdef')
    await route({ main, subagent: { instance: 'b', model: 'm-b' } })
    await models.load(TENANT)
    const { main: ofMain, subAgents, summaries } = models.modelsFor(TENANT, undefined)
    expect(ofMain().primary).to.have.nested.property('provider.type', 'a')
    expect(subAgents().primary).to.deep.include({ model: 'm-b' })
    expect(summaries()).to.deep.equal(ofMain())
    expect(opened).to.deep.equal([`a ${KEY}`, 'b sk-b-0123456789abcdef'])
  })

  it('D1.3: SMALL_MODEL answers sub-agents and summaries where the server’s model is used, and tenants’ roles go first', async () => {
    await models.load(TENANT)
    const small = () => {
      const { subAgents, summaries, main: ofMain } = models.modelsFor(TENANT, 'other')
      return [ofMain(), subAgents(), summaries()].map(({ primary }) => primary.model)
    }
    expect(small()).to.deep.equal(['other', 'small-model', 'small-model'])
    await put('a')
    await route({ main })
    await models.load(TENANT)
    expect(small()).to.deep.equal(['other', 'other', 'other'])
  })

  it('a route without a fallback has none: a tenant’s prompts never go to the server’s own fallback', async () => {
    await put('a')
    await route({ main })
    await models.load(TENANT)
    expect(models.modelsFor(TENANT, undefined).main().fallback).to.equal(undefined)
  })

  it('D56: models between which runs choose have what the newest probes have found, unless the request names the model', async () => {
    await Promise.all([put('a'), put('b')])
    const chosen = { ...main, fallback_instance: 'b', fallback_model: 'm-b', strategy: 'cheapest', hedge: true }
    await route({ main: chosen })
    await models.load(TENANT)
    const found = () => models.modelsFor(TENANT, undefined).main()
    expect(found()).to.include({ strategy: 'cheapest', hedge: true })
    expect(found().primary.lacks).to.equal(undefined)
    probes.set('b', { streaming: true, tools: false, structured_output: false, thinking: false, vision: true })
    await models.load(TENANT)
    expect([found().primary.lacks, found().fallback?.lacks]).to.deep.equal([undefined, ['tools', 'schema']])
    expect(models.modelsFor(TENANT, 'm-own').main()).to.include({ strategy: 'order', hedge: true })
  })

  it('one tenant’s route is not another’s', async () => {
    await put('a')
    await route({ main })
    await Promise.all([models.load(TENANT), models.load(OTHER)])
    expect(models.modelsFor(OTHER, undefined).main().primary.model).to.equal('server-model')
  })

  it('D8.5: a run reads the newest route at each turn', async () => {
    await put('a')
    await models.load(TENANT)
    const ofRun = models.modelsFor(TENANT, undefined)
    expect(ofRun.main().primary.model).to.equal('server-model')
    await route({ main })
    await models.load(TENANT)
    expect(ofRun.main().primary.model).to.equal('m-a')
  })

  it('an older configuration that is read later does not replace a newer one', async () => {
    await put('a')
    await models.load(TENANT)
    store.isHolding = true
    const early = route({ main })
    await early
    const late = route({ main: { instance: 'a', model: 'm-late' } })
    await late
    store.isHolding = false
    const loaded = models.load(TENANT)
    store.release()
    await loaded
    expect(models.modelsFor(TENANT, undefined).main().primary.model).to.equal('m-late')
  })

  it('a key that cannot be opened refuses new runs, and fails each call of a run that is under way', async () => {
    await settings.putSecret(TENANT, 'team', KEY)
    await settings.putInstance(TENANT, 'a', { type: 'openai', secret: 'team' })
    await route({ main })
    await models.load(TENANT)
    const ofRun = models.modelsFor(TENANT, undefined)
    await settings.deleteSecret(TENANT, 'team')
    await models.load(TENANT)
    expect(() => models.modelsFor(TENANT, undefined)).to.throw(AppError, /names the secret team/)
    const parts: ModelPart[] = []
    const { provider, model } = ofRun.main().primary
    const request = { model, messages: [], tools: [], stopSequences: [] }
    for await (const part of oneByOne(provider.stream(request, new AbortController().signal))) parts.push(part)
    expect(parts).to.have.length(1)
    expect(parts[0]).to.have.nested.property('failure.code', 'provider_auth')
  })

  it('D1.4: without a route and without a model of the server a run is refused', async () => {
    const bare = new TenantModels({
      configs,
      credentials: new CredentialReader(keyring),
      server: { ...SERVER, primary: undefined },
      createProvider: async () => createDemoProvider(),
      log: createLog({ level: 'error' }),
    })
    await bare.load(TENANT)
    expect(() => bare.modelsFor(TENANT, undefined)).to.throw(AppError, /PUT \/config\/engine/)
    bare.close()
  })
})

import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { createDemoProvider } from '../../../shared/agent/providers/demo/demo.ts'
import type { ModelProvider } from '../../../shared/agent/providers/port.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { createEgress } from '../../../shared/platform/net/egress.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import type { Change } from '../../../shared/tenancy/tenant-config/changes.ts'
import { EMPTY_CONFIG, type TenantConfig } from '../../../shared/tenancy/tenant-config/config.ts'
import { CredentialReader } from '../../../shared/tenancy/tenant-config/credentials.ts'
import { type InspectorDeps, InstanceInspector } from '../../../shared/tenancy/tenant-config/inspector.ts'
import type { LiveConfigs } from '../../../shared/tenancy/tenant-config/live-configs.ts'
import { TenantSettings } from '../../../shared/tenancy/tenant-config/settings.ts'
import type { CapabilityStore } from '../../../shared/tenancy/tenant-config/store/instance-capabilities.ts'
import { useModelServer } from '../../support/model-server/model-server.ts'

const SIGNAL = new AbortController().signal

describe('the inspection of instances', () => {
  const egress = createEgress({ allowPrivate: true })
  const keyring = createKeyring(randomBytes(32))
  let settings: TenantSettings
  let configs: LiveConfigs
  let saved: string[]

  const server = useModelServer({ perTest: true })
  beforeEach(async () => {
    let config: TenantConfig = EMPTY_CONFIG
    configs = {
      get: async () => config,
      stored: async () => config,
      peek: () => config,
      update: async (_tenant, change: Change) => {
        config = change(config)
        return config
      },
      onChange: () => () => {},
      close: async () => {},
    }
    settings = new TenantSettings({ configs, keyring, checkUrl: (url) => url, hasDemo: true })
    saved = []
    await settings.putInstance(TENANT, 'a', { type: 'openai-compatible', url: server.url })
  })

  after(() => egress.close())

  const capabilities: CapabilityStore = {
    read: async () => ({ discovery: null, probes: [] }),
    saveDiscovery: async (_tenant, { name }) => void saved.push(`discovery ${name}`),
    saveProbe: async (_tenant, { name }, { model }) => void saved.push(`probe ${name} ${model}`),
  }

  const inspect = (deps: Partial<InspectorDeps> = {}) =>
    new InstanceInspector({
      configs,
      credentials: new CredentialReader(keyring),
      capabilities,
      egress,
      assertBudget: async () => {},
      roomOf: async () => [],
      openProviders: async () => ({ plain: createDemoProvider(), reasoning: createDemoProvider() }),
      ...deps,
    })

  const kindOf = (work: Promise<unknown>) =>
    work.then(
      () => 'no error',
      (cause: unknown) => (cause instanceof AppError ? cause.kind : String(cause)),
    )

  it('an unknown instance is not found by any method', async () => {
    const inspector = inspect()
    expect(await kindOf(inspector.discover(TENANT, 'b', SIGNAL))).to.equal('not_found')
    expect(await kindOf(inspector.probe(TENANT, 'b', { model: 'm', signal: SIGNAL }))).to.equal('not_found')
    expect(await kindOf(inspector.capabilities(TENANT, 'b'))).to.equal('not_found')
  })

  it('what was found about an instance that is deleted meanwhile is not stored', async () => {
    const answered = Promise.withResolvers<void>()
    const slow = {
      request: async (...args: Parameters<typeof egress.request>) => {
        const response = await egress.request(...args)
        await answered.promise
        return response
      },
    }
    const discovering = kindOf(inspect({ egress: slow }).discover(TENANT, 'a', SIGNAL))
    await server.nextRequest()
    await settings.deleteInstance(TENANT, 'a')
    answered.resolve()
    expect(await discovering).to.equal('not_found')
    expect(saved).to.deep.equal([])
  })

  it('what was found about an instance that is replaced meanwhile is answered, not stored', async () => {
    const replaced = Promise.withResolvers<void>()
    const slow = {
      request: async (...args: Parameters<typeof egress.request>) => {
        const response = await egress.request(...args)
        await replaced.promise
        return response
      },
    }
    const discovering = inspect({ egress: slow }).discover(TENANT, 'a', SIGNAL)
    await server.nextRequest()
    await settings.putInstance(TENANT, 'a', { type: 'openai-compatible', url: `${server.url}/other` })
    replaced.resolve()
    expect(await discovering).to.have.property('models')
    expect(saved).to.deep.equal([])
  })

  it('api.md Limits: a probe that takes too long is an upstream failure that says how long', async () => {
    const hanging: ModelProvider = {
      type: 'openai',
      // oxlint-disable-next-line require-yield
      async *stream(_request, signal) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      },
    }
    const inspector = inspect({
      openProviders: async () => ({ plain: hanging, reasoning: hanging }),
      probeTimeoutMs: 50,
    })
    const failure = await inspector.probe(TENANT, 'a', { model: 'm', signal: SIGNAL }).catch((cause: Error) => cause)
    expect(failure).to.be.instanceOf(AppError).with.property('kind', 'upstream')
    expect(String(failure)).to.contain('within 0.05 s')
    expect(saved).to.deep.equal([])
  })

  it('what a probe found about an instance that is replaced meanwhile is answered, not stored', async () => {
    const openProviders = async () => {
      await settings.putInstance(TENANT, 'a', { type: 'openai-compatible', url: `${server.url}/other` })
      return { plain: createDemoProvider(), reasoning: createDemoProvider() }
    }
    expect(await inspect({ openProviders }).probe(TENANT, 'a', { model: 'demo', signal: SIGNAL })).to.include({
      model: 'demo',
    })
    expect(saved).to.deep.equal([])
  })

  it('a probe that fails in time says why, or that the budget was used up meanwhile', async () => {
    const failing: ModelProvider = {
      type: 'openai',
      // oxlint-disable-next-line require-yield
      async *stream() {
        throw new AppError('upstream', 'no such model')
      },
    }
    const openProviders = async () => ({ plain: failing, reasoning: failing })
    const failureOf = (assertBudget: () => Promise<void>) =>
      inspect({ openProviders, assertBudget })
        .probe(TENANT, 'a', { model: 'm', signal: SIGNAL })
        .catch((cause: Error) => cause.message)
    expect(await failureOf(async () => {})).to.equal('no such model')
    let asked = 0
    const used = async () => {
      if (++asked > 1) throw new AppError('rate_limit', 'the budget is used up')
    }
    expect(await failureOf(used)).to.equal('the budget is used up')
  })

  it('a probe is stored with its model', async () => {
    await inspect().probe(TENANT, 'a', { model: 'demo', signal: SIGNAL })
    expect(saved).to.deep.equal(['probe a demo'])
  })
})

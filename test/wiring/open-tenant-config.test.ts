import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createLocalParts } from '../../services/wiring/config-notice.ts'
import { openTenantConfig } from '../../services/wiring/open-tenant-config.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { ConfigError } from '../../shared/platform/config/config.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'
import { failureOf } from '../support/failure-of.ts'
import { useOpening } from './opening.ts'

type Options = { hasStore?: boolean; form?: Form }

describe("the tenants' configuration of a process", () => {
  const opening = useOpening()

  async function open(env: Record<string, string> = {}, { hasStore = true, form = 'standalone' }: Options = {}) {
    const store = hasStore ? await opening.store() : undefined
    const parts = { metrics: NO_METRICS, ...createLocalParts(), form, store, events: NO_EVENTS, log: opening.log }
    const opened = await openTenantConfig(opening.settings(env, form).tenants, parts)
    opening.closing(() => opened?.close())
    return opened
  }
  const opened = async (env?: Record<string, string>) => (await open(env)) ?? expect.fail('it is disabled')
  it('D1.3 MASTER_KEY: is disabled without a store, and where no key may be kept', async () => {
    expect(await open({}, { hasStore: false })).to.equal(undefined)
    expect(await open({ ENABLE_BASH: 'true' })).to.equal(undefined)
  })

  it('TENANT_LIMITS: ceilings that nothing would enforce stop the start', async () => {
    const file = join(opening.dir, 'limits.json')
    await writeFile(file, '{}')
    const refused = await failureOf(open({ TENANT_LIMITS: file }, { hasStore: false }))
    expect(refused)
      .to.be.instanceOf(ConfigError)
      .and.have.property('message')
      .match(/TENANT_LIMITS needs MASTER_KEY/)
  })

  it('D1.3 ALLOW_PRIVATE_URLS: an instance at a private address is refused unless the operator allows it', async () => {
    const instance = { type: 'openai-compatible', url: 'http://127.0.0.1:9/v1' } as const
    const { settings } = await opened({ ALLOW_PRIVATE_URLS: 'false' })
    expect(await failureOf(settings.putInstance(TENANT, 'local', instance))).to.include({ status: 400, param: '/url' })
    const lax = await opened({ ALLOW_PRIVATE_URLS: 'true' })
    expect(await lax.settings.putInstance(TENANT, 'local', instance)).to.include({ name: 'local' })
  })

  it('D1.4: the demo is a provider of the standalone form, and of no other', async () => {
    const { settings } = await opened()
    expect(await settings.putInstance(TENANT, 'try', { type: 'demo' })).to.include({ type: 'demo' })
    const cluster = { MASTER_KEY: Buffer.alloc(32).toString('base64'), REDIS_URL: 'redis://127.0.0.1:1' }
    const other = (await open(cluster, { form: 'cluster' })) ?? expect.fail('it is disabled')
    expect(await failureOf(other.settings.putInstance(TENANT, 'try', { type: 'demo' }))).to.include({ status: 400 })
  })

  it('an instance has the prices that its tenant has set, and without them the known ones', async () => {
    const { settings, configs, credentials, openInstance } = await opened({ ALLOW_PRIVATE_URLS: 'true' })
    const instance = { type: 'openai-compatible', url: 'http://127.0.0.1:9/v1' } as const
    await settings.putInstance(TENANT, 'dear', { ...instance, prices: { m: { input: 1, output: 2 } } })
    await settings.putInstance(TENANT, 'usual', instance)
    const config = await configs.get(TENANT)
    const providers = await Promise.all(
      config.instances.map((each) => openInstance(each, credentials.read(TENANT, each, config))),
    )
    expect(providers.map(({ prices }) => prices !== undefined)).to.deep.equal([true, false])
  })
})

import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { AppError, invalidRequest } from '../../../shared/kernel/errors.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import { EMPTY_CONFIG, type TenantConfig } from '../../../shared/tenancy/tenant-config/config.ts'
import { CredentialReader, resolveInstance } from '../../../shared/tenancy/tenant-config/credentials.ts'
import type { LiveConfigs } from '../../../shared/tenancy/tenant-config/live-configs.ts'
import { TenantSettings } from '../../../shared/tenancy/tenant-config/settings.ts'
import { tenantId } from '../../support/tenant.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
const KEY = 'sk-canary-0123456789'
const AT = '2026-11-22T09:00:00.000Z'

describe("the settings of a tenant's providers", () => {
  const keyring = createKeyring(randomBytes(32))
  let configs: Map<TenantId, TenantConfig>
  let settings: TenantSettings
  let settingsWith: (hasDemo: boolean) => TenantSettings

  const stored = (tenant: TenantId) => configs.get(tenant) ?? EMPTY_CONFIG

  beforeEach(() => {
    configs = new Map()
    const live: Pick<LiveConfigs, 'stored' | 'update'> = {
      stored: async (tenant) => stored(tenant),
      async update(tenant, change) {
        const config = change(stored(tenant))
        configs.set(tenant, config)
        return config
      },
    }
    const checkUrl = (url: string) => {
      if (url.includes('10.0.0.1')) throw invalidRequest('a private address', { code: 'egress_refused' })
      if (url.includes('broken')) throw new TypeError('a bug')
      return `${url}/`
    }
    settingsWith = (hasDemo) =>
      new TenantSettings({ configs: live as LiveConfigs, keyring, checkUrl, hasDemo, now: () => new Date(AT) })
    settings = settingsWith(false)
  })

  const errorOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (cause: unknown) => cause,
    )
  const instanceOf = (name: string, tenant = TENANT) => {
    const found = stored(tenant).instances.find((each) => each.name === name)
    if (!found) throw new Error(`no instance ${name}`)
    return found
  }

  it('secrets are shown masked, one by one, in lists and in the engine, and are those of their tenant only', async () => {
    const masked = { name: 'team', key: 'sk-c…', updated_at: AT }
    expect(await settings.putSecret(TENANT, 'team', KEY)).to.deep.equal(masked)
    await settings.putSecret(TENANT, 'next', KEY)
    expect(await settings.secret(TENANT, 'team')).to.deep.equal(masked)
    expect(await settings.secrets(TENANT)).to.deep.equal([{ ...masked, name: 'next' }, masked])
    expect((await settings.engine(TENANT)).secrets).to.deep.equal([
      { name: 'next', key: 'sk-c…' },
      { name: 'team', key: 'sk-c…' },
    ])
    expect(await errorOf(settings.secret(OTHER, 'team'))).to.include({ kind: 'not_found' })
    await settings.deleteSecret(TENANT, 'next')
    expect(await settings.secrets(TENANT)).to.deep.equal([masked])
  })

  it('an instance is shown with its options and the name of its secret, and the engine shows where it is', async () => {
    await settings.putSecret(TENANT, 'team', KEY)
    const options = { temperature: 0 }
    const body = { type: 'openai', url: 'https://x.example', secret: 'team', options } as const
    const shown = { name: 'a', type: 'openai', url: 'https://x.example/', key: null, secret: 'team', options }
    const view = { ...shown, created_at: AT, updated_at: AT }
    expect(await settings.putInstance(TENANT, 'a', body)).to.deep.equal(view)
    expect(await settings.instance(TENANT, 'a')).to.deep.equal(view)
    expect(await settings.instances(TENANT)).to.deep.equal([view])
    const routing = { main: { instance: 'a', model: 'm' } }
    const engine = await settings.putEngine(TENANT, { routing })
    expect(engine.instances).to.deep.equal([{ name: 'a', type: 'openai', url: 'https://x.example/', key: null }])
    expect((await settings.engine(TENANT)).routing).to.deep.equal(routing)
    expect(await errorOf(settings.instance(OTHER, 'a'))).to.include({ kind: 'not_found' })
  })

  it('an instance of type demo is for the standalone form, and shows its prices like any other', async () => {
    const refused = await errorOf(settings.putInstance(TENANT, 'a', { type: 'demo' }))
    expect(refused).to.include({ kind: 'invalid_request', param: '/type' })
    expect(await settingsWith(true).putInstance(TENANT, 'a', { type: 'demo' })).to.include({ type: 'demo' })
    const prices = { m: { input: 1, output: 2 } }
    expect(await settings.putInstance(TENANT, 'b', { type: 'openai', prices })).to.deep.include({ prices })
    expect(await settings.instance(TENANT, 'a')).not.to.have.any.keys('prices', 'options', 'secret')
  })

  it('an address that may not be called is refused with its parameter and code, and a bug is not taken for that', async () => {
    const put = (url: string) => errorOf(settings.putInstance(TENANT, 'a', { type: 'openai', url }))
    const refused = { kind: 'invalid_request', message: 'a private address', param: '/url', code: 'egress_refused' }
    expect(await put('http://10.0.0.1')).to.include(refused)
    expect(await put('broken')).to.be.instanceOf(TypeError)
    expect(stored(TENANT).instances).to.deep.equal([])
  })

  it('the credentials of an instance are its own key and headers, or the key of the secret that it names', async () => {
    const credentials = new CredentialReader(keyring)
    const read = (name: string) => credentials.read(TENANT, instanceOf(name), stored(TENANT))
    await settings.putSecret(TENANT, 'other', 'sk-other-0123456789')
    await settings.putSecret(TENANT, 'team', KEY)
    const headers = { 'x-team': 'header-0123456789' }
    await settings.putInstance(TENANT, 'own', { type: 'openai', key: 'sk-own-0123456789', options: { headers } })
    await settings.putInstance(TENANT, 'named', { type: 'openai', secret: 'team' })
    await settings.putInstance(TENANT, 'bare', { type: 'openai' })
    for (let i = 0; i < 2; i++) {
      expect(read('own')).to.deep.equal({ key: 'sk-own-0123456789', headers })
      expect(read('named')).to.deep.equal({ key: KEY, headers: {} })
      expect(read('bare')).to.deep.equal({ key: undefined, headers: {} })
    }
    await settings.putSecret(TENANT, 'team', 'sk-new-0123456789')
    expect(read('named').key).to.equal('sk-new-0123456789')
    await settings.deleteSecret(TENANT, 'team')
    expect(() => read('named'))
      .to.throw(AppError, /names the secret team/)
      .that.includes({ kind: 'unavailable', code: 'secret_missing' })
  })

  it('credentials are decrypted once for as long as they are stored unchanged', async () => {
    let opened = 0
    const find = (id: string) => {
      opened++
      return keyring.find(id)
    }
    const credentials = new CredentialReader({ ...keyring, find })
    await settings.putSecret(TENANT, 'team', KEY)
    await settings.putInstance(TENANT, 'own', { type: 'openai', key: KEY })
    await settings.putInstance(TENANT, 'named', { type: 'openai', secret: 'team' })
    for (const name of ['own', 'named', 'own', 'named']) credentials.read(TENANT, instanceOf(name), stored(TENANT))
    expect(opened).to.equal(2)
    await settings.putInstance(TENANT, 'own', { type: 'openai', key: KEY })
    credentials.read(TENANT, instanceOf('own'), stored(TENANT))
    expect(opened).to.equal(3)
  })

  it('credentials that another tenant has stored, or that are moved to another name, are not decrypted', async () => {
    await settings.putInstance(TENANT, 'a', { type: 'openai', key: KEY })
    const credentials = new CredentialReader(keyring)
    const own = instanceOf('a')
    expect(() => credentials.read(OTHER, { ...own }, EMPTY_CONFIG)).to.throw(AppError)
    expect(() => credentials.read(TENANT, { ...own, name: 'b' }, EMPTY_CONFIG)).to.throw(AppError)
  })

  it('an instance is found by its name, or by its type where it is the only one of it', async () => {
    await settings.putInstance(TENANT, 'a', { type: 'openai', key: KEY })
    await settings.putInstance(TENANT, 'google', { type: 'anthropic', key: KEY })
    await settings.putInstance(TENANT, 'g', { type: 'google', key: KEY })
    const find = (name: string) => resolveInstance(stored(TENANT), name, '/provider_instance').name
    expect(['a', 'openai', 'google', 'anthropic'].map(find)).to.deep.equal(['a', 'a', 'google', 'google'])
    const param = '/provider_instance'
    expect(() => find('nobody'))
      .to.throw(AppError, /no instance is named nobody/)
      .that.includes({ param })
    await settings.putInstance(TENANT, 'b', { type: 'openai', key: KEY })
    expect(() => find('openai'))
      .to.throw(AppError, /several instances are of type openai/)
      .that.includes({ param })
  })
})

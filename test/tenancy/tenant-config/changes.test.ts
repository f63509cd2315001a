import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import { type SealContext, seal, unseal } from '../../../shared/tenancy/secrets/seal.ts'
import {
  deleteInstance,
  deleteSecret,
  type InstanceBody,
  putEngine,
  putInstance,
  putSecret,
} from '../../../shared/tenancy/tenant-config/changes.ts'
import {
  EMPTY_CONFIG,
  type InstanceMaterial,
  maskKey,
  type TenantConfig,
} from '../../../shared/tenancy/tenant-config/config.ts'

const ring = createKeyring(randomBytes(32))
const CONTEXT: SealContext = { tenant: 'acme', kind: 'instance', name: 'main' }
const KEY = 'sk-canary-0123456789'
const URL = 'https://models.example.com/v1'

let revisions = 0

const put = (config: TenantConfig, body: InstanceBody, name = 'main') =>
  putInstance({
    name,
    body,
    revision: `rev_${revisions++}`,
    now: '2026-11-22T09:00:00.000Z',
    unseal: (sealed) => JSON.parse(unseal(sealed, CONTEXT, ring)) as InstanceMaterial,
    seal: (material) => seal(JSON.stringify(material), CONTEXT, ring),
  })(config)

const secret = (name: string) =>
  putSecret({ name, key: 'sk…', sealed: seal(KEY, CONTEXT, ring), updated_at: '2026-11-22T09:00:00.000Z' })

const materialOf = (config: TenantConfig, name = 'main'): InstanceMaterial => {
  const sealed = config.instances.find((instance) => instance.name === name)?.sealed
  return sealed ? (JSON.parse(unseal(sealed, CONTEXT, ring)) as InstanceMaterial) : {}
}

const refusalOf = (act: () => unknown) => {
  try {
    act()
  } catch (error) {
    if (error instanceof AppError) return { kind: error.kind, param: error.param }
    throw error
  }
  return undefined
}

describe("changes of a tenant's configuration", () => {
  const base = put(EMPTY_CONFIG, { type: 'openai-compatible', url: URL, key: KEY })

  it('D8.2: an instance keeps its key sealed and shows only the masked form', () => {
    expect(materialOf(base)).to.deep.equal({ key: KEY })
    expect(base.instances[0]?.key).to.equal('sk-c…')
    expect(JSON.stringify(base)).not.to.contain(KEY)
  })

  it('the key stays when a PUT repeats type and URL without a key', () => {
    const next = put(base, { type: 'openai-compatible', url: URL, options: { temperature: 0 } })
    expect(materialOf(next)).to.deep.equal({ key: KEY })
    expect(next.instances[0]).to.include({ key: 'sk-c…', created_at: base.instances[0]?.created_at })
  })

  for (const [what, body] of [
    ['URL', { type: 'openai-compatible', url: 'https://elsewhere.example.com/v1' }],
    ['path of the URL', { type: 'openai-compatible', url: `${URL}/x` }],
    ['type', { type: 'openai', url: URL }],
  ] as const)
    it(`a new ${what} without a new key drops the key`, () => {
      const next = put(base, body)
      expect(materialOf(next)).to.deep.equal({})
      expect(next.instances[0]).not.to.have.any.keys('key', 'secret', 'sealed')
    })

  it('a new URL with a key takes that key', () => {
    const next = put(base, { type: 'openai', url: 'https://elsewhere.example.com', key: 'sk-other-0123456789' })
    expect(materialOf(next)).to.deep.equal({ key: 'sk-other-0123456789' })
  })

  it("a secret's name takes the place of a key of its own, and is dropped with the URL likewise", () => {
    const named = put(secret('team')(base), { type: 'openai-compatible', url: URL, secret: 'team' })
    expect(named.instances[0]).to.include({ secret: 'team' })
    expect(materialOf(named)).to.deep.equal({})
    expect(put(named, { type: 'openai-compatible', url: URL }).instances[0]).to.include({ secret: 'team' })
    expect(put(named, { type: 'openai-compatible', url: `${URL}/2` }).instances[0]).not.to.have.property('secret')
  })

  it('D8.2: what a PUT leaves out stays, null deletes it, and another address drops all but the prices', () => {
    const headers = { 'x-team-token': 'canary-header-value' }
    const prices = { 'model-1': { input: 1, output: 2 } }
    const body = { type: 'openai-compatible', url: URL } as const
    const full = put(base, { ...body, options: { temperature: 0, headers }, prices })
    const kept = put(full, { ...body, key: 'sk-next-0123456789' })
    expect(kept.instances[0]).to.deep.include({ prices, options: full.instances[0]?.options })
    expect(materialOf(kept)).to.deep.equal({ key: 'sk-next-0123456789', headers })
    const moved = put(full, { ...body, url: `${URL}/2` })
    expect(moved.instances[0]).to.deep.include({ prices }).and.not.have.any.keys('key', 'options', 'sealed')
    const emptied = put(full, { ...body, key: null, options: null, prices: null })
    expect(emptied.instances[0]).not.to.have.any.keys('key', 'options', 'prices', 'sealed')
  })

  it('values of extra headers are sealed with the key and shown masked', () => {
    const headers = { 'x-team-token': 'canary-header-value' }
    const next = put(base, { type: 'openai-compatible', url: URL, options: { headers } })
    expect(materialOf(next)).to.deep.equal({ key: KEY, headers })
    expect(next.instances[0]?.options).to.deep.equal({ headers: { 'x-team-token': 'cana…' } })
    expect(JSON.stringify(next)).not.to.contain('canary-header-value')
  })

  for (const [what, body, param] of [
    ['an openai-compatible instance without a URL', { type: 'openai-compatible' }, '/url'],
    ['an unknown secret', { type: 'openai', secret: 'nobody' }, '/secret'],
    ['an unknown option', { type: 'openai', options: { top_q: 1 } as object }, '/options/top_q'],
    ['an option out of bounds', { type: 'openai', options: { temperature: 3 } }, '/options/temperature'],
    ['a tier of another provider', { type: 'anthropic', options: { flex: true } }, '/options/flex'],
    ['a demo instance with a URL', { type: 'demo', url: URL }, '/url'],
    ['a demo instance with a key', { type: 'demo', key: KEY }, '/key'],
    ['a header of the connection', { type: 'openai', options: { headers: { Host: 'x' } } }, '/options/headers/Host'],
  ] as [string, InstanceBody, string][])
    it(`${what} is refused, and the parameter is named`, () => {
      expect(refusalOf(() => put(base, body, 'other'))).to.deep.equal({ kind: 'invalid_request', param })
    })

  it('key and secret together are refused, and so is an unknown secret beside a known one', () => {
    const known = secret('team')(base)
    const message = (body: InstanceBody) => () => put(known, body, 'other')
    expect(message({ type: 'openai', key: KEY, secret: 'team' }))
      .to.throw(AppError, /not both/)
      .that.includes({ kind: 'invalid_request', param: '/secret' })
    expect(refusalOf(message({ type: 'openai', secret: 'nobody' }))?.param).to.equal('/secret')
  })

  it('an instance without a key is replaced also when its headers can no longer be opened', () => {
    const headers = { 'x-team-token': 'canary-header-value' }
    const keyless = put(EMPTY_CONFIG, { type: 'openai', options: { headers } })
    const unopened = putInstance({
      name: 'main',
      body: { type: 'openai' },
      revision: 'rev_x',
      now: '2026-11-22T09:00:00.000Z',
      unseal: () => expect.fail('it was opened'),
      seal: (material) => seal(JSON.stringify(material), CONTEXT, ring),
    })
    expect(unopened(keyless).instances[0]).not.to.have.any.keys('key', 'sealed', 'options')
  })

  it('an instance that no route uses can be deleted beside one that a route uses', () => {
    const two = put(base, { type: 'openai', key: KEY }, 'spare')
    const routed = putEngine({ routing: { main: { instance: 'main', model: 'm' } } })(two)
    expect(deleteInstance('spare')(routed).instances.map(({ name }) => name)).to.deep.equal(['main'])
  })

  it('an instance of type demo has no other field, and prices are kept with every other', () => {
    expect(
      put(base, { type: 'demo', url: undefined } as object as InstanceBody, 'demo').instances.map(({ name }) => name),
    ).to.deep.equal(['demo', 'main'])
    const prices = { 'model-1': { input: 1, output: 2 } }
    const [priced] = put(EMPTY_CONFIG, { type: 'openai', prices }).instances
    expect(priced).to.deep.include({ prices }).and.not.have.any.keys('url', 'key', 'secret', 'options', 'sealed')
    expect(base.instances[0]).to.not.have.property('prices')
  })

  it('D8.1: a route names instances that exist, and a fallback both parts', () => {
    const route = (extra: object) => () =>
      putEngine({ routing: { main: { instance: 'main', model: 'm', ...extra } } })(base)
    expect(route({})().routing.main).to.deep.equal({ instance: 'main', model: 'm' })
    expect(refusalOf(route({ instance: 'nobody' }))?.param).to.equal('/routing/main/instance')
    expect(refusalOf(route({ fallback_instance: 'main' }))?.param).to.equal('/routing/main/fallback_model')
    expect(refusalOf(route({ fallback_model: 'm' }))?.param).to.equal('/routing/main/fallback_instance')
    expect(refusalOf(route({ fallback_instance: 'nobody', fallback_model: 'm' }))?.param).to.equal(
      '/routing/main/fallback_instance',
    )
  })

  it('PUT of routing leaves the audit settings, and the other way round', () => {
    const audited = putEngine({ audit: { store_payloads: false } })(base)
    expect(audited.audit).to.deep.equal({ store_payloads: false, retention_days: 30 })
    const routed = putEngine({ routing: { plan: { instance: 'main', model: 'm' } } })(audited)
    expect(routed.audit).to.deep.equal(audited.audit)
    expect(putEngine({ audit: { retention_days: 7 } })(routed).routing).to.deep.equal(routed.routing)
    expect(putEngine({ routing: {} })(routed).routing).to.deep.equal({})
  })

  it('D56: a strategy chooses between two models, and transcriptions have neither a strategy nor a second request', () => {
    const config = put(base, { type: 'openai' }, 'spare')
    const refusal = (role: string, part: object) =>
      refusalOf(() => putEngine({ routing: { [role]: { instance: 'main', model: 'm', ...part } } })(config))?.param
    expect(refusal('main', { strategy: 'cheapest' })).to.equal('/routing/main/strategy')
    expect(refusal('main', { strategy: 'order', hedge: true })).to.equal(undefined)
    const spare = { fallback_instance: 'spare', fallback_model: 'm' }
    expect(refusal('compact', { strategy: 'least_waiting', ...spare })).to.equal(undefined)
    expect(refusal('transcription', { strategy: 'order' })).to.equal('/routing/transcription/strategy')
    expect(refusal('transcription', { hedge: false })).to.equal('/routing/transcription/hedge')
  })

  it('D8.2: an instance that a route uses cannot be deleted, as its main or as its fallback', () => {
    const two = put(base, { type: 'openai', key: KEY }, 'spare')
    const main = { instance: 'main', model: 'm', fallback_instance: 'spare', fallback_model: 'm' }
    const routed = putEngine({ routing: { main } })(two)
    for (const name of ['main', 'spare'])
      expect(refusalOf(() => deleteInstance(name)(routed))?.kind).to.equal('conflict')
    const free = putEngine({ routing: {} })(routed)
    expect(deleteInstance('spare')(free).instances.map(({ name }) => name)).to.deep.equal(['main'])
    expect(refusalOf(() => deleteInstance('nobody')(free))?.kind).to.equal('not_found')
  })

  it('a secret is replaced, listed once in order of names, and deleted once', () => {
    const three = secret('b')(secret('a')(secret('b')(EMPTY_CONFIG)))
    expect(three.secrets.map(({ name }) => name)).to.deep.equal(['a', 'b'])
    expect(deleteSecret('a')(three).secrets.map(({ name }) => name)).to.deep.equal(['b'])
    expect(refusalOf(() => deleteSecret('a')(deleteSecret('a')(three)))?.kind).to.equal('not_found')
  })

  it('a tenant has at most 100 instances and 100 secrets; replacing one is always possible', () => {
    let full = base
    for (let i = 1; i < 100; i++) full = put(full, { type: 'openai' }, `i${i}`)
    expect(refusalOf(() => put(full, { type: 'openai' }, 'more'))?.kind).to.equal('conflict')
    expect(put(full, { type: 'openai' }, 'i7').instances).to.have.length(100)
    let secrets = EMPTY_CONFIG
    for (let i = 0; i < 100; i++) secrets = secret(`s${i}`)(secrets)
    expect(refusalOf(() => secret('more')(secrets))?.kind).to.equal('conflict')
    expect(secret('s7')(secrets).secrets).to.have.length(100)
  })

  for (const [key, masked] of [
    ['', '…'],
    ['abc', '…'],
    ['abcd', 'a…'],
    ['0123456789abcde', '012…'],
    ['0123456789abcdef', '0123…'],
    ['0123456789abcdef0123456789abcdef', '0123…'],
  ] as const)
    it(`D8.1: a key of ${key.length} characters is shown as ${masked}`, () => {
      expect(maskKey(key)).to.equal(masked)
    })
})

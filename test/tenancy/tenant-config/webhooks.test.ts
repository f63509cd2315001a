import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import { findWebhook, WebhookSettings } from '../../../shared/tenancy/webhooks/settings.ts'
import { tenantId } from '../../support/tenant.ts'
import { newSecret, TENANT, type TestWebhooks, useWebhooks } from '../webhooks/setup.ts'

const HOUR_MS = 3_600_000
const ring = createKeyring(randomBytes(32))

describe('the webhooks of a tenant', () => {
  let webhooks: TestWebhooks
  let ms: number
  useWebhooks((opened) => {
    webhooks = opened
    ms = Date.parse('2026-11-22T10:00:00.000Z')
    webhooks.now = () => new Date(ms)
  })

  const secrets = async (settings = webhooks.settings) =>
    settings.secretsOf(TENANT, findWebhook(await webhooks.configs.get(TENANT), 'a'))

  const refusalOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (cause: unknown) => (cause instanceof AppError ? { kind: cause.kind, param: cause.param } : cause),
    )

  it('a replaced secret signs beside the new one for 24 hours, and the one before it not any more', async () => {
    const [first, second, third] = [newSecret(), newSecret(), newSecret()]
    await webhooks.put('a', { secret: first })
    expect(await secrets()).to.deep.equal([first])
    await webhooks.put('a', { secret: second })
    expect(await secrets()).to.deep.equal([second, first])
    ms += HOUR_MS
    await webhooks.put('a', { secret: third })
    expect(await secrets()).to.deep.equal([third, second])
    ms += 24 * HOUR_MS - 1
    expect(await secrets()).to.deep.equal([third, second])
    ms += 1
    expect(await secrets()).to.deep.equal([third])
  })

  it('a PUT that repeats the secret, or leaves it out, does not end the time of the one before', async () => {
    const [first, second] = [newSecret(), newSecret()]
    await webhooks.put('a', { secret: first })
    await webhooks.put('a', { secret: second })
    await webhooks.put('a', { secret: second })
    await webhooks.settings.put(TENANT, 'a', { url: 'https://a.example', events: ['run.ended'] })
    expect(await secrets()).to.deep.equal([second, first])
    ms += 24 * HOUR_MS
    expect(await secrets()).to.deep.equal([second])
  })

  it('a secret that cannot be decrypted any more is replaced, and signs no longer', async () => {
    await webhooks.put('a')
    const settings = webhooks.settingsWith(randomBytes(32))
    const secret = newSecret()
    await settings.put(TENANT, 'a', { url: 'https://a.example', events: ['run.ended'], secret })
    expect(await secrets(settings)).to.deep.equal([secret])
  })

  it('a secret is decrypted once for as long as it is stored unchanged, and a bug is not taken for one that is lost', async () => {
    let find = ring.find
    let opened = 0
    const settings = new WebhookSettings({
      configs: webhooks.configs,
      keyring: { primary: ring.primary, find: (id) => (opened++, find(id)) },
      checkUrl: (url) => url,
      isSecret: () => true,
    })
    const body = { url: 'https://a.example', events: ['run.ended' as const] }
    await settings.put(TENANT, 'a', { ...body, secret: 'first' })
    for (let i = 0; i < 2; i++) expect(await secrets(settings)).to.deep.equal(['first'])
    expect(opened).to.equal(1)
    await settings.put(TENANT, 'a', { ...body, secret: 'second' })
    find = () => {
      throw new Error('a bug')
    }
    const refused = await settings.put(TENANT, 'a', { ...body, secret: 'third' }).catch((cause: Error) => cause.message)
    expect(refused).to.equal('a bug')
  })

  it('a secret that another tenant has stored, or that is moved to another name, signs nothing', async () => {
    await webhooks.put('a')
    const webhook = findWebhook(await webhooks.configs.get(TENANT), 'a')
    expect(() => webhooks.settings.secretsOf(tenantId('t_2'), { ...webhook })).to.throw(AppError)
    expect(() => webhooks.settings.secretsOf(TENANT, { ...webhook, name: 'b' })).to.throw(AppError)
  })

  it('a PUT replaces address and events, keeps when the webhook was made, and shows no secret', async () => {
    const made = await webhooks.put('a')
    ms += HOUR_MS
    const changed = await webhooks.put('a', { events: ['plan.ended', 'plan.ended'], url: 'https://b.example' })
    const updated_at = new Date(ms).toISOString()
    const { created_at } = made
    const shown = { name: 'a', url: 'https://b.example', events: ['plan.ended'], enabled: true, created_at, updated_at }
    expect(changed).to.deep.equal(shown)
    expect(await webhooks.settings.get(TENANT, 'a')).to.deep.equal(shown)
  })

  it('a tenant has at most 20, listed by name; replacing one is always possible, and a deleted one is not found', async () => {
    for (let i = 20; i > 0; i--) await webhooks.put(`w${String(i).padStart(2, '0')}`)
    expect(await refusalOf(webhooks.put('more'))).to.include({ kind: 'conflict' })
    await webhooks.put('w07')
    await webhooks.settings.remove(TENANT, 'w01')
    const names = (await webhooks.settings.list(TENANT)).map(({ name }) => name)
    expect(names).to.deep.equal(Array.from({ length: 19 }, (_, i) => `w${String(i + 2).padStart(2, '0')}`))
    for (const act of [webhooks.settings.get(TENANT, 'w01'), webhooks.settings.remove(TENANT, 'w01')])
      expect(await refusalOf(act)).to.include({ kind: 'not_found' })
  })

  it('a new webhook without a secret, and a secret that is none, are refused and change nothing', async () => {
    const refused = { kind: 'invalid_request', param: '/secret' }
    const body = { url: 'https://a.example', events: ['run.ended' as const] }
    expect(await refusalOf(webhooks.settings.put(TENANT, 'a', body))).to.deep.equal(refused)
    expect(await refusalOf(webhooks.put('a', { secret: 'a'.repeat(40) }))).to.deep.equal(refused)
    expect(await webhooks.settings.list(TENANT)).to.deep.equal([])
  })
})

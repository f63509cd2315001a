import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { AUDIENCE, Issuer } from '../support/issuer/issuer.ts'
import { compact, newSigner, type Signer, signatureOf } from '../support/issuer/signer.ts'
import { until } from '../support/until.ts'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'

const ALL = ['read', 'run', 'approve', 'flows', 'admin']
/** Buttons that change nothing: they lead elsewhere, show more, or are about this tab only. */
/** The measures of the usage page are there once runs are counted, some seconds after their end. */
const HARMLESS =
  /^(Copy as|Save as|Compare two|Notify me|Events|Try again|Show|Plans|Activity|Flows|Waves|Time|(Cost|Tokens|Runs|Failures|p95 duration|Cache share)\n)/

describe('the console with a token that may not do everything', () => {
  let signer: Signer
  let issuer: Issuer
  let pages: ConsoleUnderTest
  let planId = ''
  let askId = ''

  const tokenOf = (scopes: readonly string[]) => {
    const now = Math.floor(Date.now() / 1_000)
    const claims = { iss: issuer.url, aud: AUDIENCE, exp: now + 600, tenant_id: 'acme', sub: 'ada', ae_scopes: scopes }
    return compact({ alg: 'RS256', kid: 'r1', typ: 'at+jwt' }, claims, signatureOf('RS256', signer.privateKey))
  }
  const as = (...scopes: string[]) => ({ authorization: `Bearer ${tokenOf(scopes)}` })

  before(async () => {
    signer = await newSigner('RS256', 'r1')
    issuer = await Issuer.start([signer])
    const claims = { TENANT_CLAIM: 'tenant_id', SCOPE_CLAIM: 'ae_scopes' }
    pages = await startConsole({ env: { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, ...claims } })
    const { call, stream } = pages.product
    const all = as(...ALL)
    const step = { id: 'a', prompt: '/fail timeout' }
    planId = ((await call('POST', '/plans/submit', { steps: [step] }, all)).body as { id: string }).id
    await call('PUT', '/plans/schedules/nightly', { cron: '0 3 * * *', plan: { steps: [step] } }, all)
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const flow = { model: 'demo', system_prompt_template: 'hi', input_schema: schema, output_schema: schema }
    await call('PUT', '/flows/mine', flow, all)
    await call('POST', '/flows/mine/publish', undefined, all)
    await call('POST', '/sessions', { session_id: 's' }, all)
    const asking = await stream('/sessions/s/messages', { prompt: '/tool Write {"path": "a", "content": "b"}' }, all)
    askId = String((await asking.until('permission_request')).data['id'])
    const isFailed = async () =>
      ((await call('GET', `/plans/${planId}`, undefined, all)).body as { status: string }).status === 'failed'
    await until(isFailed, { what: 'the plan to fail' })
  })
  after(async () => {
    await pages?.close()
    await issuer?.close()
  })
  afterEach(async () => {
    pages.expectNoFaults()
    await pages.closePages()
  })

  async function signIn(...scopes: string[]): Promise<Page> {
    const page = await pages.open('/approvals')
    await page.getByLabel('Access token').fill(tokenOf(scopes))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Approvals' }).waitFor()
    return page
  }

  /** Goes to a page as a link of the console does: a reload would lose the token. */
  async function goTo(page: Page, path: string, shown: string): Promise<void> {
    const address = JSON.stringify(pages.at(path))
    await page.evaluate(`history.pushState(null, '', ${address}); dispatchEvent(new PopStateEvent('popstate'))`)
    await page.locator(shown).first().waitFor()
  }

  /** The buttons of a page that are not known to change nothing. */
  async function actionsOn(page: Page): Promise<string[]> {
    const buttons = await page.locator('#page :is(button, a.button, summary.padded):visible').all()
    const names = await Promise.all(
      buttons.map(async (each) => (await each.getAttribute('aria-label')) ?? (await each.innerText())),
    )
    return names.filter((name) => !HARMLESS.test(name.trim()))
  }

  const READ = [
    ['/', '.columns'],
    ['/plans', 'table'],
    ['/plans?tab=schedules', 'table'],
    ['/flows', 'table'],
    ['/flows/mine/history', '.flow-page, .card'],
    ['/activity', 'table'],
    ['/usage', '.page'],
  ] as const

  it('offers no action to a reader, on any page', async () => {
    const page = await signIn('read')
    const offered: string[] = []
    for (const [path, shown] of [
      ...READ,
      [`/plans/${planId}`, '.waves .node'],
      [`/approvals/${askId}`, '.ask'],
    ] as const) {
      await goTo(page, path, shown)
      offered.push(...(await actionsOn(page)).map((name) => `${path} ${name}`))
    }
    expect(offered).to.deep.equal([])
    await page.getByText('Your token may not answer').waitFor()
    const links = await page.locator('nav a.entry').allInnerTexts()
    expect(links.join()).not.to.match(/Chat|Settings/)
  })

  it('offers somebody who may approve the answers to a request, and nothing else', async () => {
    const page = await signIn('read', 'approve')
    const offered: string[] = []
    for (const [path, shown] of [...READ, [`/plans/${planId}`, '.waves .node']] as const) {
      await goTo(page, path, shown)
      offered.push(...(await actionsOn(page)).map((name) => `${path} ${name}`))
    }
    expect(offered).to.deep.equal([])
    await goTo(page, `/approvals/${askId}`, '.ask')
    const answers = (await actionsOn(page)).map((name) => name.trim())
    expect(answers).to.include.members(['Allow once', 'Change first …', 'Deny …'])
    expect(answers.filter((name) => !/^(Allow|Change|Deny)/.test(name))).to.deep.equal([])
  })

  it('the server refuses what is not offered', async () => {
    const { call } = pages.product
    const refused: (readonly [string, string, object?])[] = [
      ['POST', `/sessions/s/permissions/${askId}`, { allow: true }],
      ['POST', `/plans/${planId}/retry`],
      ['PUT', '/plans/schedules/nightly', { every_secs: 60, plan: { steps: [{ id: 'a', prompt: 'x' }] } }],
      ['POST', '/plans/schedules/nightly/run'],
      ['DELETE', '/plans/schedules/nightly'],
      ['POST', '/flows/mine/publish'],
      ['PUT', '/config/limits', {}],
    ]
    for (const [method, path, body] of refused)
      expect((await call(method, path, body, as('read'))).status, `${method} ${path}`).to.equal(403)
    for (const [method, path, body] of refused.slice(1))
      expect((await call(method, path, body, as('read', 'approve'))).status, `${method} ${path}`).to.equal(403)
  })
})

// P24: what a person sees, and sends, is theirs.
import { expect } from 'chai'
import type { Page, Request, Route } from 'playwright-core'
import { AUDIENCE, Issuer } from '../support/issuer/issuer.ts'
import { compact, newSigner, type Signer, signatureOf } from '../support/issuer/signer.ts'
import { until } from '../support/until.ts'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'

const PATHS = [
  ...['/', '/chat', '/chat/shared', '/approvals', '/approvals?tab=decided', '/approvals?tab=remembered'],
  ...['/flows', '/flows/shared/edit', '/flows/shared/run', '/flows/shared/history', '/flows/shared/memory'],
  ...['/plans', '/plans/new', '/plans?tab=schedules', '/activity', '/usage'],
  ...['/settings', '/settings?tab=routing', '/settings?tab=limits', '/settings?tab=webhooks', '/settings?tab=changes'],
]

describe('two people of two tenants, one after the other in one tab', function () {
  this.timeout(120_000)
  let signer: Signer
  let issuer: Issuer
  let pages: ConsoleUnderTest
  let page: Page

  const tokenOf = (tenant: string) => {
    const exp = Math.floor(Date.now() / 1_000) + 600
    const claims = { iss: issuer.url, aud: AUDIENCE, exp, tenant_id: tenant, sub: `person-of-${tenant}` }
    return compact({ alg: 'RS256', kid: 'r1', typ: 'at+jwt' }, claims, signatureOf('RS256', signer.privateKey))
  }

  before(async () => {
    signer = await newSigner('RS256', 'r1')
    issuer = await Issuer.start([signer])
    pages = await startConsole({ env: { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, TENANT_CLAIM: 'tenant_id' } })
    for (const tenant of ['first', 'second']) await tellStory(tenant)
    page = await pages.open('/')
  })
  after(async () => {
    await pages?.close()
    await issuer?.close()
  })
  afterEach(() => pages.expectNoFaults())

  /** Things of the same names in each tenant, with texts that name it: `mark-first`. */
  async function tellStory(tenant: string): Promise<void> {
    const { call, stream } = pages.product
    const own = { authorization: `Bearer ${tokenOf(tenant)}` }
    const mark = `mark-${tenant}`
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const flow = { model: 'demo', system_prompt_template: mark, input_schema: schema, output_schema: schema }
    await call('PUT', '/flows/shared', flow, own)
    await call('POST', '/plans/submit', { title: mark, steps: [{ id: 'a', prompt: `/say ${mark}` }] }, own)
    await call(
      'PUT',
      '/plans/schedules/nightly',
      { cron: '0 3 * * *', plan: { title: mark, steps: [{ id: 'a', prompt: mark }] } },
      own,
    )
    await call('PUT', `/config/instances/${mark}`, { type: 'demo' }, own)
    await call('POST', '/sessions', { session_id: 'shared', title: mark }, own)
    const asking = await stream(
      '/sessions/shared/messages',
      { prompt: `/tool Write {"path": "${mark}", "content": "${mark}"}` },
      own,
    )
    await asking.until('permission_request')
  }

  async function signIn(tenant: string): Promise<void> {
    await page.getByLabel('Access token').fill(tokenOf(tenant))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByTitle('Who you are here').getByText(tenant).waitFor()
  }

  /** Goes there without loading the page anew, as a link does. */
  const go = (path: string) =>
    page.evaluate(
      `history.pushState(null, '', ${JSON.stringify(pages.at(path))}), dispatchEvent(new PopStateEvent('popstate'))`,
    )

  const shown = () => page.evaluate<string>(SHOWN)

  const expectNothingOf = async (tenant: string, where: string) =>
    expect(await shown(), where)
      .not.to.include(`mark-${tenant}`)
      .and.not.include(`person-of-${tenant}`)

  it('P24: nothing of the first is shown to the second or sent by them, while answers are held back and when each has failed once', async () => {
    await signIn('first')
    for (const path of PATHS) {
      await go(path)
      await page.locator('#page *').first().waitFor({ state: 'attached' })
    }
    await go('/flows/shared/edit')
    await page
      .locator('.json-editor textarea, [aria-label="Definition"] textarea, textarea')
      .first()
      .fill('mark-first: not saved')
    await until(async () => (await shown()).includes('mark-first'), { what: 'the own story' })
    await page.getByTitle('Who you are here').click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Access token').waitFor()
    expect(page.url()).to.equal(pages.at('/'))
    await expectNothingOf('first', 'signed out')

    const sent: Request[] = []
    const failed = new Set<string>()
    let held: Route[] = []
    page.on('request', (request) => sent.push(request))
    await page.route(`${pages.product.url}/**`, async (route) => {
      const { pathname } = new URL(route.request().url())
      if (/\/(me|events)$/.test(pathname) || failed.has(pathname)) return route.continue()
      failed.add(pathname)
      held.push(route)
    })
    await signIn('second')
    for (const path of PATHS) {
      await go(path)
      await page.locator('#page *').first().waitFor({ state: 'attached' })
      await expectNothingOf('first', `${path}, while answers are held back`)
      await Promise.all(held.map((route) => route.fulfill({ status: 409, json: { error: 'held back' } })))
      held = []
      await expectNothingOf('first', `${path}, after failures`)
    }
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await go('/flows/shared/history')
    await go('/flows/shared/edit')
    await until(async () => (await shown()).includes('mark-second'), { what: 'the own flow' })
    await expectNothingOf('first', 'the editor')
    const leaked = sent.filter((request) => `${request.url()} ${request.postData() ?? ''}`.includes('mark-first'))
    expect(leaked.map((request) => request.url())).to.deep.equal([])
  })
})

/** The texts of the page, with those that are typed and those that only some see. */
const SHOWN = `[document.title, document.body.textContent, ...Array.from(document.querySelectorAll('input, textarea, select'), (each) => each.value), ...Array.from(document.querySelectorAll('[title], [aria-label], [href]'), (each) => [each.title, each.getAttribute('aria-label'), each.getAttribute('href')].join(' '))].join(' ')`

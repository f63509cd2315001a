// Tests sign-in/**: how a person signs in, and stays so.
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { useOpened } from '../support/fixture.ts'
import { CONSOLE_AUDIENCE, startSignInIssuer } from '../support/issuer/sign-in-issuer.ts'
import { newSigner } from '../support/issuer/signer.ts'
import { until } from '../support/until.ts'
import { startConsole } from './support/console.ts'

const CLIENT = 'console'
/** The console renews a token that has 30 seconds left, which these always have. */
const TOKEN_SECS = 30

describe('signing in to the console at an issuer', () => {
  let page: Page

  const issuer = useOpened(async () => startSignInIssuer(await newSigner('RS256', 'r1')))
  const pages = useOpened(() =>
    startConsole({
      env: { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: CONSOLE_AUDIENCE, CONSOLE_OIDC_CLIENT_ID: CLIENT },
    }),
  )
  before(async () => {
    issuer.register({ id: CLIENT, origin: pages.origin, tokenSecs: TOKEN_SECS })
    pages.allow(issuer.url)
    page = await pages.open('/approvals?tab=decided')
  })
  afterEach(() => pages.expectNoFaults())

  it('D29b: a person signs in by code with PKCE, and comes back to the page that they asked for', async () => {
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(`${issuer.url}/interaction/**`)
    await page.locator('input').fill('ada')
    await page.getByRole('button', { name: 'Enter' }).click()
    await page.getByText('Nothing was decided yet').waitFor()
    expect(page.url()).to.equal(pages.at('/approvals?tab=decided'))
    await page.getByTitle('Who you are here').click()
    expect(await page.locator('.who-facts').innerText())
      .to.include('acme')
      .and.include('ada')
    expect(issuer.grants).to.include('authorization_code')
  })

  it('D29c: neither the storage of the browser nor a cookie of the page holds anything of it', async () => {
    const kept = await page.evaluate('[{ ...localStorage }, { ...sessionStorage }, document.cookie]')
    expect(kept).to.deep.equal([{}, {}, ''])
  })

  it('a token that is about to expire is renewed before it is sent', async () => {
    const before = issuer.grants.length
    await page.getByRole('link', { name: 'Activity' }).click()
    await page.getByText('Nothing has run yet').waitFor()
    await until(() => issuer.grants.slice(before).includes('refresh_token'), { what: 'the token to be renewed' })
  })

  it('D29c: a reload asks the issuer without a prompt, and shows the same page', async () => {
    const before = issuer.grants.length
    await page.reload()
    await page.getByRole('heading', { name: 'Activity' }).waitFor()
    expect(issuer.grants.slice(before)).to.include('authorization_code')
    expect(page.url()).to.equal(pages.at('/activity'))
  })

  it('an issuer that is away for a moment throws nobody out', async () => {
    issuer.failure = 'away'
    await page.getByRole('link', { name: 'Flows' }).click()
    await page.getByRole('heading', { name: 'Flows', exact: true }).waitFor()
    await page.getByText('No flow of your own yet').waitFor()
    issuer.failure = undefined
    expect(await page.getByRole('dialog').count()).to.equal(0)
  })

  it('when the sign-in has expired the page says so, stays, and goes on when the same person has signed in again', async () => {
    await page.goto(pages.at('/chat?new'))
    await page.locator('.composer textarea').fill('a text that was not sent')
    const api = `${pages.product.url}/runs**`
    await page.route(api, (route) => route.fulfill({ status: 401, body: '{}' }))
    issuer.failure = 'refuses'
    await page.keyboard.press('Control+k')
    const again = page.getByRole('dialog', { name: 'Sign in again' })
    await again.getByText('invalid_grant').waitFor()
    await page.unroute(api)
    issuer.failure = undefined
    await again.getByRole('button', { name: 'Sign in again' }).click()
    await again.waitFor({ state: 'detached' })
    await page.keyboard.press('Escape')
    expect(await page.locator('.composer textarea').inputValue()).to.equal('a text that was not sent')
  })

  it('signing out ends the sign-in here, in the other tabs and at the issuer, and the first page asks for a click', async () => {
    const other = await page.context().newPage()
    other.setDefaultTimeout(45_000)
    const stream = other.waitForRequest(`${pages.product.url}/events`)
    await other.goto(pages.at('/activity'))
    await other.getByRole('heading', { name: 'Activity' }).waitFor()
    const request = await stream
    const ended = new Promise<void>((resolve) => other.on('requestfailed', (each) => each === request && resolve()))
    await page.getByTitle('Who you are here').click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Leave' }).click()
    for (const each of [page, other]) {
      await each.getByRole('button', { name: 'Sign in' }).waitFor()
      expect(each.url()).to.equal(pages.at('/'))
    }
    await ended
    const before = issuer.grants.length
    await page.goto(pages.at('/activity'))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('input').waitFor() // The issuer does not know the person any more.
    expect(issuer.grants.length).to.equal(before)
    await other.close()
  })

  it('an answer that is not the issuer’s, refused, broken or endless is told in a sentence, and leaves no code in the address', async () => {
    const question = JSON.stringify({ state: 's', verifier: 'v', back: pages.at('/activity') })
    const from = `state=s&iss=${encodeURIComponent(issuer.url)}`
    for (const [kept, answer, told] of [
      [question, 'state=s&code=c&iss=https%3A%2F%2Fother.example', `The answer is not from ${issuer.url}`],
      [question, 'state=s&code=c', `The answer is not from ${issuer.url}`],
      [question, `${from}&code=c`, 'The issuer refuses the sign-in: invalid_grant'],
      [question, `${from}&error=${'x'.repeat(3_000)}`, 'The issuer says: xxx'],
      ['{"state":', `${from}&code=c`, ''],
      ['{"state":"s","verifier":"v","back":"https://other.example/"}', `${from}&code=c`, ''],
    ] as const) {
      await page.goto(pages.at('/icon'))
      await page.getByRole('button', { name: 'Sign in' }).waitFor()
      await page.evaluate(`sessionStorage.setItem('agent-engine.sign-in', ${JSON.stringify(kept)})`)
      await page.goto(pages.at(`/signed-in?${answer}`))
      await page.getByRole('button', { name: 'Sign in' }).waitFor()
      const shown = await page.locator('.sign-in').innerText()
      expect(shown).to.include(told).and.not.include('JSON')
      expect(shown.length).to.be.below(400)
      expect(page.url()).not.to.match(/code=|state=|signed-in/)
    }
  })
})

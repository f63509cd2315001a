// Tests sign-in/**: how a person signs in, and stays so.
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { CONSOLE_AUDIENCE, type SignInIssuer, startSignInIssuer } from '../support/issuer/sign-in-issuer.ts'
import { newSigner } from '../support/issuer/signer.ts'
import { until } from '../support/until.ts'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'

const CLIENT = 'console'
/** The console renews a token that has 30 seconds left, which these always have. */
const TOKEN_SECS = 30

describe('signing in to the console at an issuer', () => {
  let issuer: SignInIssuer
  let pages: ConsoleUnderTest
  let page: Page

  before(async () => {
    issuer = await startSignInIssuer(await newSigner('RS256', 'r1'))
    pages = await startConsole({
      env: { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: CONSOLE_AUDIENCE, CONSOLE_OIDC_CLIENT_ID: CLIENT },
    })
    issuer.register({ id: CLIENT, origin: pages.origin, tokenSecs: TOKEN_SECS })
    pages.allow(issuer.url)
    page = await pages.open('/approvals?tab=decided')
  })
  after(async () => {
    await pages?.close()
    await issuer?.close()
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
})

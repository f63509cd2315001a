import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { type Guarantee, noneOf } from '../../harness/guarantee.ts'
import { AUDIENCE, Issuer } from '../../support/issuer/issuer.ts'
import { CONSOLE_AUDIENCE, startSignInIssuer } from '../../support/issuer/sign-in-issuer.ts'
import { compact, newSigner, signatureOf } from '../../support/issuer/signer.ts'
import { type ConsoleUnderTest, startConsole } from '../support/console.ts'
import { type People, type Trouble, tellOwnStory, visitAsTwo, withTokens } from '../support/two-people.ts'

const TROUBLES: readonly Trouble[] = ['held', 'failed', 'late']

/** Two people of two tenants, who paste a token. */
export async function tryPastedTokens(): Promise<Guarantee[]> {
  const signer = await newSigner('RS256', 'r1')
  const issuer = await Issuer.start([signer])
  const env = { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, TENANT_CLAIM: 'tenant_id' }
  const pages = await startConsole({ env })
  const tokenOf = (tenant: string) => {
    const exp = Math.floor(Date.now() / 1_000) + 3_600
    const claims = { iss: issuer.url, aud: AUDIENCE, exp, tenant_id: tenant, sub: `person-of-${tenant}` }
    return compact({ alg: 'RS256', kid: 'r1', typ: 'at+jwt' }, claims, signatureOf('RS256', signer.privateKey))
  }
  try {
    for (const tenant of ['first', 'second']) await tellOwnStory(pages, tenant, tokenOf(tenant))
    return await tryAll('token', pages, withTokens(tokenOf))
  } finally {
    await pages.close()
    await issuer.close()
  }
}

/** The same people, who sign in at an issuer. Its tenants are the names that they sign in with. */
export async function tryIssuer(): Promise<Guarantee[]> {
  const issuer = await startSignInIssuer(await newSigner('RS256', 'r1'))
  const client = `console-${randomUUID()}`
  const env = {
    ...{ OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: CONSOLE_AUDIENCE, CONSOLE_OIDC_CLIENT_ID: client },
    TENANT_CLAIM: 'tenant_id',
  }
  const pages = await startConsole({ env })
  try {
    issuer.register({ id: client, origin: pages.origin, tokenSecs: 600, tenantOf: (name) => name })
    pages.allow(issuer.url)
    const people = atIssuer(issuer.url)
    for (const tenant of ['first', 'second']) {
      const page = await pages.open('/')
      const request = page.waitForRequest(`${pages.product.url}/me`)
      await people.signIn(page, tenant)
      const authorization = (await request).headers()['authorization'] ?? ''
      await tellOwnStory(pages, tenant, authorization.replace(/^Bearer /, ''))
      await page.context().close()
    }
    return await tryAll('issuer', pages, people)
  } finally {
    await pages.close()
    await issuer.close()
  }
}

async function tryAll(signIn: string, pages: ConsoleUnderTest, people: People): Promise<Guarantee[]> {
  const guarantees: Guarantee[] = []
  for (const trouble of TROUBLES) {
    const page = await pages.open('/')
    const leaks = await visitAsTwo(pages, page, { people, trouble })
    guarantees.push(noneOf(`${signIn}, answers ${trouble}: of the first seen or sent by the second`, leaks))
    await page.context().close()
  }
  return guarantees
}

const atIssuer = (issuer: string): People => ({
  async signIn(page, tenant) {
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(`${issuer}/interaction/**`)
    await page.locator('input').fill(tenant)
    await page.getByRole('button', { name: 'Enter' }).click()
    await page.getByTitle('Who you are here').getByText(tenant).first().waitFor()
  },
  async signOut(page: Page) {
    await page.getByTitle('Who you are here').click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Leave' }).click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
  },
})

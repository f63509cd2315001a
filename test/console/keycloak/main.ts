import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { allOf, type Guarantee, isKept, noneOf, renderGuarantees } from '../../harness/guarantee.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { until } from '../../support/until.ts'
import { type ConsoleUnderTest, startConsole } from '../support/console.ts'
import { goTo, type People, tellOwnStory, visitAsTwo } from '../support/two-people.ts'
import { fetchKeycloak, startKeycloak } from './keycloak.ts'
import { PASSWORD, realmOf } from './realm.ts'

const HELP = `Tries the console with a real Keycloak 26: signing in, renewal, two people in one tab, signing out.

  npm run try:keycloak

It needs Java 17, Maven, unzip and Chromium. Maven fetches Keycloak once (150 MB).`

const say = (line: string) => void process.stdout.write(`${line}\n`)

const AUDIENCE = 'agent-engine'
const CLIENT = 'console'
const USERS = ['first', 'second'] as const

async function main(): Promise<void> {
  await using folder = await makeTempFolder()
  const home = await fetchKeycloak(folder.path)
  const [port, ownPort] = [await freePort(), await freePort()]
  const origin = `http://127.0.0.1:${ownPort}`
  const realm = realmOf({ name: 'agents', audience: AUDIENCE, client: CLIENT, origin, users: USERS })
  const keycloak = await startKeycloak(home, port, realm)
  try {
    const env = {
      ...{ OIDC_ISSUER: keycloak.issuer, OIDC_AUDIENCE: AUDIENCE, TENANT_CLAIM: 'tenant_id', PORT: String(ownPort) },
      CONSOLE_OIDC_CLIENT_ID: CLIENT,
    }
    const pages = await startConsole({ env })
    try {
      pages.allow(new URL(keycloak.issuer).origin)
      const guarantees = await tryAll(pages, keycloak.issuer)
      say(renderGuarantees(guarantees))
      process.exitCode = guarantees.every(isKept) ? 0 : 1
    } finally {
      await pages.close()
    }
  } finally {
    await keycloak.close()
  }
}

async function tryAll(pages: ConsoleUnderTest, issuer: string): Promise<Guarantee[]> {
  const people = peopleAt(issuer)
  for (const tenant of USERS) {
    const page = await pages.open('/')
    const asked = page.waitForRequest(`${pages.product.url}/me`)
    await people.signIn(page, tenant)
    await tellOwnStory(pages, tenant, ((await asked).headers()['authorization'] ?? '').replace(/^Bearer /, ''))
    await page.context().close()
  }
  const guarantees: Guarantee[] = []
  for (const trouble of ['held', 'failed', 'late'] as const) {
    const page = await pages.open('/')
    const leaks = await visitAsTwo(pages, page, { people, trouble })
    guarantees.push(noneOf(`two people, answers ${trouble}: of the first seen or sent by the second`, leaks))
    await page.context().close()
  }
  return [...guarantees, await tryRenewal(pages, people, issuer), await trySignOut(pages, people, issuer)]
}

async function tryRenewal(pages: ConsoleUnderTest, people: People, issuer: string): Promise<Guarantee> {
  const page = await pages.open('/')
  await people.signIn(page, 'first')
  let renewed = 0
  page.on('response', (response) => {
    const isGrant = response.request().postData()?.includes('grant_type=refresh_token')
    if (isGrant && response.ok() && response.url().startsWith(issuer)) renewed++
  })
  const visit = async () => {
    for (const path of ['/activity', '/flows']) await goTo(page, pages.at(path))
    return renewed > 0
  }
  await until(visit, { what: 'the token to be renewed', withinMs: 60_000, everyMs: 1_000 })
  const isIn = await page.getByTitle('Who you are here').isVisible()
  await page.context().close()
  return allOf('a token that ends is renewed, and the person stays', renewed > 0 && isIn ? 1 : 0, 1)
}

/** After signing out only the password signs in again, also in another tab and after a reload. */
async function trySignOut(pages: ConsoleUnderTest, people: People, issuer: string): Promise<Guarantee> {
  const page = await pages.open('/activity')
  await people.signIn(page, 'first')
  const other = await page.context().newPage()
  await other.goto(pages.at('/flows'))
  await other.getByTitle('Who you are here').waitFor()
  const ended = page.waitForRequest((request) => request.url().startsWith(`${issuer}/protocol/openid-connect/logout`))
  await people.signOut(page)
  await ended
  let kept = 0
  for (const each of [page, other]) {
    await each.getByRole('button', { name: 'Sign in' }).waitFor()
    if (each.url() === pages.at('/')) kept++
    await each.reload()
    await each.getByRole('button', { name: 'Sign in' }).click()
    await each.locator('#password').waitFor()
    kept++
  }
  await page.context().close()
  return allOf('signed out here, in the other tab and at Keycloak', kept, 4)
}

const peopleAt = (issuer: string): People => ({
  async signIn(page, tenant) {
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(`${issuer}/**`)
    await page.locator('#username').fill(tenant)
    await page.locator('#password').fill(PASSWORD)
    await page.locator('#kc-login').click()
    await page.getByTitle('Who you are here').getByText(tenant).first().waitFor()
  },
  async signOut(page: Page) {
    await page.getByTitle('Who you are here').click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    const signIn = page.getByRole('button', { name: 'Sign in' })
    const confirm = page.locator('#kc-logout')
    await signIn.or(confirm).waitFor()
    if (await confirm.isVisible()) await confirm.click()
    await signIn.waitFor()
  },
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const { values } = parseArgs({ options: { help: { type: 'boolean' } } })
if (values.help) say(HELP)
else await main()

import type { Page, Request, Route } from 'playwright-core'
import { until } from '../../support/until.ts'
import type { ConsoleUnderTest } from './console.ts'

/** Every page that two tenants can have under the same address. */
const PATHS = [
  ...['/', '/chat', '/chat/shared', '/approvals', '/approvals?tab=decided', '/approvals?tab=remembered'],
  ...['/flows', '/flows/shared/edit', '/flows/shared/run', '/flows/shared/history', '/flows/shared/memory'],
  ...['/flows/shared/evaluate', '/plans', '/plans/new', '/plans?tab=schedules', '/activity', '/usage'],
  ...['/settings', '/settings?tab=routing', '/settings?tab=limits', '/settings?tab=webhooks', '/settings?tab=changes'],
]

/** The person of a tenant signs in and out, in the page. */
export type People = { signIn(page: Page, tenant: string): Promise<void>; signOut(page: Page): Promise<void> }

/**
 * What happens to each answer of the server for the second person: it is held back while they look at the page, or its request fails once.
 * `late`: the answers to the first person come when the second is there.
 */
export type Trouble = 'held' | 'failed' | 'late'

/** Things of the same names in each tenant, with texts that name it: `mark-first`. */
export async function tellOwnStory({ product }: ConsoleUnderTest, tenant: string, token: string): Promise<void> {
  const { call, stream } = product
  const own = { authorization: `Bearer ${token}` }
  const mark = `mark-${tenant}`
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const flow = { model: 'demo', system_prompt_template: mark, input_schema: schema, output_schema: schema }
  const plan = { title: mark, steps: [{ id: 'a', prompt: `/say ${mark}` }] }
  await call('PUT', '/flows/shared', flow, own)
  await call('POST', '/plans/submit', plan, own)
  await call('PUT', '/plans/schedules/nightly', { cron: '0 3 * * *', plan }, own)
  await call('PUT', `/config/instances/${mark}`, { type: 'demo' }, own)
  await call('POST', '/sessions', { session_id: 'shared', title: mark }, own)
  const prompt = `/tool Write {"path": "${mark}", "content": "${mark}"}`
  await (await stream('/sessions/shared/messages', { prompt }, own)).until('permission_request')
}

/** The first person looks at every page, writes and leaves; then the second, in the same tab. Returns all of the first that the second sees or sends. */
export async function visitAsTwo(
  { product, at }: ConsoleUnderTest,
  page: Page,
  { people, trouble }: { people: People; trouble: Trouble },
): Promise<string[]> {
  const leaks: string[] = []
  const look = async (where: string) => {
    const text = await page.evaluate<string>(SHOWN)
    for (const mark of ['mark-first', 'person-of-first']) if (text.includes(mark)) leaks.push(`${mark} at ${where}`)
  }
  const api = `${product.url}/**`
  const visit = async (path: string) => {
    await goTo(page, at(path))
    await page.locator('#page *').first().waitFor({ state: 'attached' })
  }
  const late: Route[] = []
  await people.signIn(page, 'first')
  for (const path of PATHS) await visit(path)
  await visit('/flows/shared/edit')
  await page.getByLabel('Definition').fill('mark-first: not saved')
  await until(async () => (await page.evaluate<string>(SHOWN)).includes('mark-first'), { what: 'the own story' })
  if (trouble === 'late') {
    await page.route(api, (route) => (isHeld(route) ? void late.push(route) : route.continue()))
    for (const path of PATHS) await visit(path)
  }
  await people.signOut(page)
  await look('the sign-in')
  await page.unrouteAll({ behavior: 'ignoreErrors' })

  const sent: Request[] = []
  page.on('request', (request) => sent.push(request))
  const [failed, held] = [new Set<string>(), [] as Route[]]
  await page.route(api, async (route) => {
    const { pathname } = new URL(route.request().url())
    if (trouble === 'late' || !isHeld(route) || failed.has(pathname)) return route.continue()
    failed.add(pathname)
    if (trouble === 'failed') return route.abort()
    held.push(route)
  })
  await people.signIn(page, 'second')
  for (const path of PATHS) {
    await visit(path)
    await look(`${path}, before its answers`)
    await Promise.all(late.splice(0, 5).map((route) => route.continue().catch(() => {})))
    await Promise.all(held.splice(0).map((route) => route.fulfill({ status: 409, json: { error: 'held back' } })))
    await look(`${path}, after them`)
  }
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await visit('/flows/shared/history')
  await visit('/flows/shared/edit')
  await until(async () => (await page.evaluate<string>(SHOWN)).includes('mark-second'), { what: 'the own flow' })
  await look('the editor')
  const sentBy = sent.filter((request) => `${request.url()} ${request.postData() ?? ''}`.includes('mark-first'))
  return [...leaks, ...sentBy.map((request) => `sent to ${request.url()}`)]
}

/** Who is there, and the stream of events, are needed for a page to be shown at all. */
const isHeld = (route: Route) => !/\/(me|events)$/.test(new URL(route.request().url()).pathname)

/** Goes there without loading the page anew, as a link does. */
export const goTo = (page: Page, url: string) =>
  page.evaluate(`history.pushState(null, '', ${JSON.stringify(url)}), dispatchEvent(new PopStateEvent('popstate'))`)

/** The texts of the page, with those that are typed and those that only some see. */
const SHOWN = `[document.title, document.body.textContent, ...Array.from(document.querySelectorAll('input, textarea, select'), (each) => each.value), ...Array.from(document.querySelectorAll('[title], [aria-label], [href]'), (each) => [each.title, each.getAttribute('aria-label'), each.getAttribute('href')].join(' '))].join(' ')`

/** People who paste a token that `tokenOf` makes. */
export const withTokens = (tokenOf: (tenant: string) => string): People => ({
  async signIn(page, tenant) {
    await page.getByLabel('Access token').fill(tokenOf(tenant))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByTitle('Who you are here').getByText(tenant).waitFor()
  },
  async signOut(page) {
    await page.getByTitle('Who you are here').click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Access token').waitFor()
  },
})

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { openBrowser } from '../support/browser.ts'
import { Child } from '../support/child.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'
import { bundle } from './bundle.ts'

const MAIN = new URL('../../services/standalone/main.ts', import.meta.url).pathname
const guide = await readFile(new URL('../../shared/platform/api/guide.md', import.meta.url), 'utf8')
const sources = [...guide.matchAll(/^```tsx\n([^]*?)^```$/gm)].map(([, source = '']) => source)
const HTML = '<!doctype html><meta charset="utf-8"><body><script type="module" src="/page.js"></script>'
const SCRIPT = { 'content-type': 'text/javascript' }

const write = (path: string) => `/tool Write {"path":"${path}","content":"hello"}`

type Waiting = { id: string; session_id: string; run_id: string }

describe('the pages of shared/platform/api/guide.md with the packages of others, in Chromium', () => {
  const dir = useTempFolder()
  let pages: Server
  let server: Child
  let api: string
  let browser: Browser
  let script: string

  before(async () => {
    pages = createServer(({ url }, res) =>
      url === '/page.js' ? res.writeHead(200, SCRIPT).end(script) : res.end(HTML),
    )
    await once(pages.listen(0, '127.0.0.1'), 'listening')
    const cors = { CORS_ORIGINS: origin(), CORS_RESUME: 'true' }
    server = new Child(process.execPath, [MAIN], {
      DATA_DIR: dir.path,
      PORT: '0',
      OPS_PORT: '0',
      RATE_LIMIT_RPM: '0',
      ...cors,
    })
    api = (JSON.parse(await server.line(/"listening"/)) as { url: string }).url
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    pages?.close()
    await server?.end()
  })

  const origin = () => `http://127.0.0.1:${(pages.address() as AddressInfo).port}`

  /** Opens the page of the guide with this import. */
  async function open(name: string): Promise<Page> {
    const found = sources.filter((source) => source.includes(`from '${name}'`))
    expect(found).to.have.length(1)
    script = await bundle((found[0] ?? '').replace('http://127.0.0.1:8080/v1', api))
    const page = await browser.newPage()
    await page.goto(origin())
    return page
  }

  async function send(page: Page, prompt: string): Promise<void> {
    await page.locator('[name=prompt]').fill(prompt)
    await page.getByRole('button', { name: 'Send' }).click()
  }

  /** Waits for a text of the assistant; that of the user has more lines. */
  const shows = (page: Page, text: string) => page.getByText(text, { exact: true }).waitFor()
  const click = (page: Page, name: string) => page.getByRole('button', { name }).first().click()
  const call = (method: string, path: string, body?: object) => callApi(api + path, initOf(method, body))

  async function waiting(): Promise<Waiting> {
    const list = async () => ((await call('GET', '/permissions')).body as { permissions: Waiting[] }).permissions
    const [asked] = await until(async () => (await list()).length > 0 && list(), { what: 'a permission request' })
    return asked as Waiting
  }

  async function cancelled(): Promise<number> {
    const { body } = await call('GET', '/runs?status=cancelled')
    return (body as { runs: unknown[] }).runs.length
  }

  async function stopRun(page: Page): Promise<void> {
    const before = await cancelled()
    await click(page, 'Stop')
    await until(async () => (await cancelled()) > before, { what: 'the run to be cancelled' })
  }

  for (const name of ['@ai-sdk/react', '@assistant-ui/react'])
    it(`the page with ${name} shows a text as it comes and a call, lets it run when it is allowed, goes on when it is denied or fails, and stops a run`, async () => {
      const page = await open(name)
      await send(page, '/say alpha\n/sleep 60000')
      await shows(page, 'alpha')
      await stopRun(page)
      await send(page, `${write('a.txt')}\n/say goodbye`)
      await page.locator('code').getByText('Write {"path":"a.txt","content":"hello"}').waitFor()
      await click(page, 'Allow')
      await shows(page, 'goodbye')
      await page.locator('output').getByText('a.txt').waitFor()
      expect(await page.getByRole('button', { name: 'Allow' }).count()).to.equal(0)
      await send(page, `${write('b.txt')}\n/say not then`)
      await page.locator('code').getByText('b.txt').waitFor()
      await click(page, 'Deny')
      await shows(page, 'not then')
      await send(page, '/tool Read {"path":"missing.txt"}\n/say nothing there')
      await shows(page, 'nothing there')
      await page.locator('output').getByText('missing.txt').waitFor()
      await send(page, '/sleep 60000') // Stopped as early as the page lets.
      await stopRun(page)
      await send(page, 'Are you there?\n/say again')
      await shows(page, 'again')
      await page.close()
    })

  it('one run is watched natively, approved by another client and shown by useChat at the same time', async () => {
    const page = await open('@ai-sdk/react')
    await send(page, `${write('a.txt')}\n${write('b.txt')}\n/say goodbye`)
    const asked = await waiting()
    const native = await openStream(`${api}/runs/${asked.run_id}/events`, initOf('GET'))
    const reply = `/sessions/${asked.session_id}/permissions/${asked.id}`
    expect((await call('POST', reply, { allow: true })).status).to.equal(200)
    await native.until('tool_result')
    // The other client has allowed this call already. The page sends its reply all the same, and then shows how the run went on.
    await click(page, 'Allow')
    await page.locator('code').getByText('b.txt').waitFor()
    await click(page, 'Allow')
    await shows(page, 'goodbye')
    expect((await native.all()).at(-1)?.event).to.equal('done')
    await page.close()
  })
})

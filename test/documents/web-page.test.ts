import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { openBrowser } from '../support/browser.ts'
import { Child } from '../support/child.ts'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const MAIN = new URL('../../services/standalone/main.ts', import.meta.url).pathname
const guide = await readFile(new URL('../../shared/platform/api/guide.md', import.meta.url), 'utf8')

/** The only block of this language in the guide. */
function blockOf(language: string): string {
  const blocks = [...guide.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].filter(([, name]) => name === language)
  if (blocks.length !== 1) throw new Error(`the guide has ${blocks.length} blocks of ${language}`)
  return blocks[0]?.[2] ?? ''
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port

describe('the web page of shared/platform/api/guide.md, in Chromium', () => {
  const dir = useTempFolder()
  let pages: Server
  let server: Child
  let proxy: CuttingProxy
  let browser: Browser
  let page: Page
  const answers: { method: string; path: string; status: number }[] = []

  before(async () => {
    let html = ''
    pages = createServer((_req, res) => res.writeHead(200, { 'content-type': 'text/html' }).end(html))
    await once(pages.listen(0, '127.0.0.1'), 'listening')
    const settings = blockOf('ini')
      .replace('https://app.example.com', `http://127.0.0.1:${portOf(pages)}`)
      .trim()
      .split('\n')
      .map((line) => line.split('='))
    const env = { DATA_DIR: dir.path, PORT: '0', OPS_PORT: '0', KEEPALIVE_SECS: '1', ...Object.fromEntries(settings) }
    server = new Child(process.execPath, [MAIN], env)
    const { url } = JSON.parse(await server.line(/"listening"/)) as { url: string }
    proxy = await CuttingProxy.open(Number(new URL(url).port), { after: '"text":"Hello"' })
    html = blockOf('html').replace('http://127.0.0.1:8080', `http://127.0.0.1:${proxy.port}`)
    browser = await openBrowser()
    page = await browser.newPage()
    page.on('response', (response) => {
      const { pathname } = new URL(response.url())
      answers.push({ method: response.request().method(), path: pathname, status: response.status() })
    })
    await page.goto(`http://127.0.0.1:${portOf(pages)}/`)
  })
  after(async () => {
    await browser?.close()
    proxy?.close()
    pages?.close()
    await server?.end()
  })

  const eventsAnswers = () => answers.filter(({ method, path }) => method === 'GET' && path.endsWith('/events'))

  it('starts a run from another origin, is cut off, and shows the rest of the answer once', async () => {
    await until(async () => (await page.locator('#answer').textContent())?.includes('bye.') ?? false, {
      what: 'the whole answer',
    })
    const text = (await page.locator('#answer').textContent()) ?? ''
    expect(text).to.match(/model answers\.Helloand good bye\.$/)
    expect(text.split('Hello')).to.have.length(2)
    expect(proxy.cuts).to.equal(1)
    expect(eventsAnswers().map(({ status }) => status)).to.deep.equal([200])
  })

  it('D4.5c: EventSource gets each event once, no empty message, and stops after the end', async () => {
    const { path = '' } = eventsAnswers()[0] ?? {}
    answers.length = 0
    const address = `http://127.0.0.1:${proxy.port}${path}`
    const seen = await page.evaluate(async (url) => {
      const source = new EventSource(url)
      const ids: string[] = []
      let messages = 0
      source.addEventListener('message', () => messages++)
      for (const name of ['turn_start', 'text_delta', 'text', 'turn_end', 'done'])
        source.addEventListener(name, (event) => ids.push((event as MessageEvent).lastEventId))
      await new Promise<void>((resolve) => {
        source.addEventListener('error', () => source.readyState === EventSource.CLOSED && resolve())
      })
      return { ids, messages }
    }, address)
    expect(seen.ids.length).to.be.greaterThan(3)
    expect(seen).to.deep.equal({ ids: seen.ids.map((_, i) => String(i + 1)), messages: 0 })
    expect(eventsAnswers().map(({ status }) => status)).to.deep.equal([200, 204])
  })
})

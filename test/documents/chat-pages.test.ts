import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { openBrowser } from '../support/browser.ts'
import { Child } from '../support/child.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'
import { bundle } from './bundle.ts'
import { ChatPage } from './chat-page.ts'

const MAIN = new URL('../../services/standalone/main.ts', import.meta.url).pathname
const guide = await readFile(new URL('../../shared/platform/api/guide.md', import.meta.url), 'utf8')
const sources = [...guide.matchAll(/^```tsx\n([^]*?)^```$/gm)].map(([, source = '']) => source)
const HTML = '<!doctype html><meta charset="utf-8"><body><script type="module" src="/page.js"></script>'
const SCRIPT = { 'content-type': 'text/javascript' }

const write = (path: string) => `/tool Write {"path":"${path}","content":"hello"}`

/** What takes the new text of a message that is edited. */
type Editing = { editing: string; save: string }

const USE_CHAT = { name: '@ai-sdk/react', editing: 'prompt', save: 'Send', hasBranches: false }

type ShownPage = Editing & { title: string; name: string; hasBranches: boolean; older?: Record<string, string> }

const PAGES: ShownPage[] = [
  { title: 'assistant-ui', name: '@assistant-ui/react', editing: 'edit', save: 'Save', hasBranches: true },
  { title: 'useChat of ai 7', ...USE_CHAT },
  { title: 'useChat of ai 6', ...USE_CHAT, older: { ai: 'ai-6', '@ai-sdk/react': 'ai-sdk-react-3' } },
]

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

  /** Opens the page of the guide with this import; `older` are the names under which other versions of its packages are installed. */
  async function open(name: string, older: Readonly<Record<string, string>> = {}): Promise<ChatPage> {
    const found = sources.find((source) => source.includes(`from '${name}'`)) ?? ''
    expect(found).to.not.equal('')
    const source = Object.entries(older).reduce(
      (text, [each, as]) => text.replace(`from '${each}'`, `from '${as}'`),
      found,
    )
    script = await bundle(source.replace('http://127.0.0.1:8080/v1', api))
    const page = await browser.newPage()
    await page.goto(origin())
    return new ChatPage(page)
  }

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

  async function stopRun(page: ChatPage): Promise<void> {
    const before = await cancelled()
    await page.click('Stop')
    await until(async () => (await cancelled()) > before, { what: 'the run to be cancelled' })
  }

  /** The texts of the branch behind which the next message goes. */
  async function history(page: ChatPage): Promise<string> {
    return JSON.stringify((await call('GET', `/sessions/${page.id}/messages?limit=200`)).body)
  }

  async function stopIn(page: ChatPage): Promise<void> {
    await page.send('/say alpha\n/sleep 60000')
    await page.shows('alpha')
    await page.reload()
    await stopRun(page)
    await page.send('/sleep 60000') // Stopped as early as the page lets.
    await stopRun(page)
    await page.send('Are you there?\n/say again')
    await page.shows('again')
  }

  async function askIn(page: ChatPage): Promise<void> {
    await page.send(`${write('a.txt')}\n/say goodbye`)
    await page.asks('Write {"path":"a.txt","content":"hello"}')
    await page.reload()
    await page.click('Allow')
    await page.shows('goodbye')
    await page.page.locator('output').getByText('a.txt').waitFor()
    await page.send(`${write('b.txt')}\n/say not then`)
    await page.asks('b.txt')
    await page.click('Deny')
    await page.shows('not then')
    await page.page
      .locator('output')
      .getByText(/denied/i)
      .waitFor()
  }

  async function answerElsewhereIn(page: ChatPage): Promise<void> {
    await page.send(`${write('c.txt')}\n/say nor then`)
    await page.asks('c.txt')
    const { id, session_id: session } = await waiting()
    await call('POST', `/sessions/${session}/permissions/${id}`, { allow: false, reason: 'too risky' })
    await page.click('Allow') // Too late: another client has denied it.
    await page.shows('nor then')
    await page.page.getByText('too risky').first().waitFor()
    await page.send(`${write('d.txt')}\n/say unsaid`)
    await page.asks('d.txt')
    await page.send('No.\n/say instead')
    await page.shows('instead')
    expect(await page.page.getByRole('button', { name: 'Allow' }).count()).to.equal(0)
    expect(await history(page)).to.contain('a new message came')
  }

  async function failIn(page: ChatPage): Promise<void> {
    await page.send('/tool Read {"path":"missing.txt"}\n/say nothing there')
    await page.shows('nothing there')
    await page.page.locator('output').getByText('missing.txt').waitFor()
    await page.send('/fail provider_rejected')
    const alert = page.page.getByRole('alert')
    const words = alert.getByText(/^[^{]*\(provider_rejected\)/)
    await words.waitFor()
    await page.page.reload() // Denied calls now show the server's words.
    await words.waitFor()
    await page.send('And now?\n/say better')
    await page.shows('better')
    expect(await alert.count()).to.equal(0)
  }

  async function editIn(page: ChatPage, { editing, save }: Editing): Promise<void> {
    await page.clickLast('Edit')
    await page.page.locator(`[name=${editing}]`).fill('And then?\n/say edited')
    await page.click(save)
    await page.shows('edited')
    await page.answered(() => page.clickLast('Again'))
    await page.shows('edited')
    expect([await page.count('edited'), await page.count('better')]).to.deep.equal([1, 0])
    const branch = await history(page)
    expect(branch).to.not.contain('better')
    expect(branch.split('"text":"edited"')).to.have.length(2)
  }

  async function branchIn(page: ChatPage): Promise<void> {
    await page.click('Back') // The first one is that of the edited message, above that of its answer.
    await page.shows('better')
    await page.send('Go on.\n/say onwards')
    await page.shows('onwards')
    const branch = await history(page)
    expect(branch).to.contain('better')
    expect(branch).to.not.contain('edited')
  }

  for (const { title, name, older, hasBranches, ...editing } of PAGES)
    it(`the page with ${title} goes on after a stop, an approval, a denial, a message instead of an answer, a failure and an edit, and shows the same after a reload`, async () => {
      const page = await open(name, older)
      await stopIn(page)
      await askIn(page)
      await answerElsewhereIn(page)
      await failIn(page)
      await editIn(page, editing)
      if (hasBranches) await branchIn(page)
      await page.reload()
      expect(page.failures).to.deep.equal([])
      await page.page.close()
    })

  it('one run is watched natively, approved by another client and shown by useChat at the same time', async () => {
    const page = await open('@ai-sdk/react')
    await page.send(`${write('a.txt')}\n${write('b.txt')}\n/say goodbye`)
    const asked = await waiting()
    const native = await openStream(`${api}/runs/${asked.run_id}/events`, initOf('GET'))
    const reply = `/sessions/${asked.session_id}/permissions/${asked.id}`
    expect((await call('POST', reply, { allow: true })).status).to.equal(200)
    await native.until('tool_result')
    // The other client has allowed this call already. The page sends its reply all the same, and then shows how the run went on.
    await page.click('Allow')
    await page.asks('b.txt')
    await page.click('Allow')
    await page.shows('goodbye')
    expect((await native.all()).at(-1)?.event).to.equal('done')
    await page.page.close()
  })
})

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { openBrowser } from '../../support/browser.ts'
import { type Product, type StartProduct, startStandalone } from '../../support/product.ts'

const BUILD = new URL('../../../scripts/build-console', import.meta.url).pathname

/**
 * Under mocha the test files of a process share a browser, whose start takes a second of CPU time, and each has contexts of its own. It is there
 * before the first test and until the last one, so that no file leaves it open.
 */
const shared = 'after' in globalThis ? await openBrowser() : undefined
if (shared) after(() => shared.close())
/** The build of the pages, once for a process. */
let built: Promise<unknown> | undefined

/** The console of a running product, in a real browser. */
export type ConsoleUnderTest = {
  product: Product
  /** Where the product is served, without its base path. */
  origin: string
  /** Opens a page of a new context, as another person or device has it, at a path behind `/console`. */
  open(path?: string, options?: BrowserContextOptions): Promise<Page>
  /** Lets the pages be served by another origin, and send requests to it. */
  allow(origin: string): void
  /** The address of a path behind `/console`. */
  at(path: string): string
  /** Fails for everything that a page must never do: see `watch`. */
  expectNoFaults(): void
  /** Closes all pages, each of which would draw what happens in the tests behind its own. */
  closePages(): Promise<void>
  close(): Promise<void>
}

type Settings = { env?: Record<string, string>; start?: StartProduct }

/** Starts the product with its console, which it builds when it is not built. Without `MODEL` in `env` the demo answers. */
export async function startConsole({ env = {}, start = startStandalone }: Settings = {}): Promise<ConsoleUnderTest> {
  await (built ??= promisify(execFile)(BUILD))
  const demo = env['MODEL'] === undefined ? { MODEL: 'demo', MODEL_PROVIDER: 'demo', MODEL_BASE_URL: '' } : {}
  const product = await start({ CONSOLE: 'true', ...demo, ...env })
  const browser = shared ?? (await openBrowser())
  const { origin } = new URL(product.url)
  const origins = new Set([origin])
  const faults: string[] = []
  const at = (path: string) => `${origin}/console${path}`
  const closePages = async () => {
    for (const context of browser.contexts()) await context.close()
  }
  return {
    product,
    origin,
    at,
    allow: (other) => void origins.add(other),
    open: async (path = '/', options = {}) => {
      const page = await openPage(browser, options)
      watch(page, origins, faults)
      await page.goto(at(path))
      return page
    },
    expectNoFaults: () => expect(faults.splice(0)).to.deep.equal([]),
    closePages,
    async close() {
      await closePages()
      if (browser !== shared) await browser.close()
      await product.close()
    },
  }
}

/** Without motion: what turns or pulses is painted sixty times a second for as long as a test waits. */
async function openPage(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1_280, height: 800 },
    reducedMotion: 'reduce',
    ...options,
  })
  const page = await context.newPage()
  page.setDefaultTimeout(45_000)
  return page
}

/** Notes errors of scripts, violations of the page's policy, dialogs, and requests to other hosts. */
function watch(page: Page, origins: ReadonlySet<string>, faults: string[]): void {
  page.on('pageerror', (error) => faults.push(`error: ${error.stack ?? error.message}`))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted|violat/i.test(message.text())) faults.push(`policy: ${message.text()}`)
  })
  page.on('request', (request) => {
    const url = new URL(request.url())
    if (!origins.has(url.origin) && url.protocol !== 'data:') faults.push(`foreign request: ${request.url()}`)
  })
}

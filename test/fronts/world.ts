import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { openBrowser } from '../support/browser.ts'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { type Product, startStandalone } from '../support/product.ts'

const HTML = '<!doctype html><meta charset="utf-8"><body><script type="module" src="/page.js"></script>'
const SCRIPT = { 'content-type': 'text/javascript' }

type Parts = Pick<World, 'product' | 'browser' | 'proxy' | 'offlineMs' | 'patienceMs'> & { pages: Server }

/** The product with a scripted model, a browser, and a server of pages on another origin, which reach the product through a proxy. */
export class World {
  readonly product: Product
  readonly browser: Browser
  /** What breaks the connections of the pages. */
  readonly proxy: CuttingProxy
  readonly offlineMs: number
  /** How long the browser waits for what a page is to show. */
  readonly patienceMs: number
  readonly #pages: Server
  readonly #origin: string
  #script = ''
  #words = 0

  private constructor({ product, browser, proxy, pages, offlineMs, patienceMs }: Parts) {
    this.patienceMs = patienceMs
    this.offlineMs = offlineMs
    this.product = product
    this.browser = browser
    this.proxy = proxy
    this.#pages = pages
    this.#origin = originOf(pages)
    pages.on('request', ({ url }, res) =>
      url === '/page.js' ? res.writeHead(200, SCRIPT).end(this.#script) : res.end(HTML),
    )
  }

  /** `offlineMs` is how long a browser has no network in the stories of that. */
  static async open({ offlineMs = 0, patienceMs = 60_000, start = startStandalone } = {}): Promise<World> {
    const pages = createServer()
    await once(pages.listen(0, '127.0.0.1'), 'listening')
    const product = await start({
      DIALECTS: 'all',
      CORS_ORIGINS: originOf(pages),
      CORS_RESUME: 'true',
    })
    const proxy = await CuttingProxy.open(Number(new URL(product.url).port), {})
    return new World({ product, browser: await openBrowser(), proxy, pages, offlineMs, patienceMs })
  }

  async close(): Promise<void> {
    await this.browser.close()
    this.proxy.close()
    this.#pages.close()
    this.#pages.closeAllConnections()
    await this.product.close()
  }

  /** The base address of the API for a page. */
  get api(): string {
    const url = new URL(this.product.url)
    url.port = String(this.proxy.port)
    return url.href
  }

  /** The address of the page with this script, which is served until another one is asked for. */
  serve(script: string): string {
    this.#script = script
    return `${this.#origin}/`
  }

  /** A text that no message has yet. */
  word(kind: string): string {
    return `${kind} (${++this.#words})`
  }
}

const originOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { openBrowser } from '../../../test/support/browser.ts'
import { measureConsole } from '../../console-sizes.ts'
import type { Bench } from '../bench.ts'
import type { Figure, Measured } from '../figure.ts'
import { median } from '../statistics.ts'

const ROOT = join(import.meta.dirname, '../../..')
const BUILT = join(ROOT, 'services/console/built')
const WARM_UP_ROUNDS = 3

/**
 * From the navigation to the first contentful paint in Chromium, each time with an empty cache. The yardstick is one static page of as many
 * bytes as the console's shell has as gzip, with the headers of the console's policy: `Cross-Origin-Opener-Policy` alone makes the browser
 * start another process for a page. The detail names the same page without them, too. All alternate.
 */
export const consoleFirstPaint: Figure = {
  name: 'console-first-paint',
  title: 'first paint of the console, to a static page of its size and policy',
  goal: { atMost: 1.2 },
  unit: 'x',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  await promisify(execFile)(join(ROOT, 'scripts/build-console'), { signal: bench.signal })
  await using ours = await bench.startOurs('data-console', { CONSOLE: 'true' })
  const url = `http://127.0.0.1:${ours.port}/console/`
  const bytes = measureConsole(BUILT).shell
  await using plain = await startStaticPage(bytes, {})
  await using page = await startStaticPage(bytes, await policyOf(url))
  await using browser = await openBrowser()
  const urls = { plain: plain.url, page: page.url, ours: url }
  const times = { plain: [] as number[], page: [] as number[], ours: [] as number[] }
  const names = Object.keys(urls) as (keyof typeof urls)[]
  for (let round = -WARM_UP_ROUNDS; round < bench.pick(31, 15); round++)
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      bench.signal.throwIfAborted()
      const ms = await firstPaintMs(browser, urls[name])
      if (round >= 0) times[name].push(ms)
    }
  const [plainMs, pageMs, oursMs] = [median(times.plain), median(times.page), median(times.ours)]
  const toPlain = (oursMs / plainMs).toFixed(2)
  const shown = [`page ${pageMs.toFixed(1)} ms`, `ours ${oursMs.toFixed(1)} ms`]
  return {
    value: oursMs / pageMs,
    detail: `${shown.join(', ')}; without a policy ${plainMs.toFixed(1)} ms, to which ${toPlain}x`,
  }
}

/** The headers of the console that a browser obeys before it paints. */
async function policyOf(url: string): Promise<Record<string, string>> {
  const { headers, body } = await fetch(url)
  await body?.cancel()
  return Object.fromEntries([...headers].filter(([name]) => name.endsWith('policy')))
}

async function startStaticPage(bytes: number, headers: Readonly<Record<string, string>>): Promise<StaticPage> {
  const text = 'A page of words, as long as the console. '
  const body = `<!doctype html><title>static</title><p>${text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes)}</p>`
  const all = new Headers({ ...headers, 'content-type': 'text/html' })
  const server = createServer((_req, res) => void res.setHeaders(all).end(body))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => void server.close(resolve))
  }
  return { url: `http://127.0.0.1:${port}/`, [Symbol.asyncDispose]: close }
}

type StaticPage = AsyncDisposable & { url: string }

async function firstPaintMs(browser: Browser, url: string): Promise<number> {
  await using context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(url)
  return await page.evaluate<number>(FIRST_PAINT) // Before the context is closed.
}

const FIRST_PAINT = `new Promise((resolve) => {
  new PerformanceObserver((list) => {
    const [paint] = list.getEntriesByName('first-contentful-paint')
    if (paint) resolve(paint.startTime)
  }).observe({ type: 'paint', buffered: true })
})`

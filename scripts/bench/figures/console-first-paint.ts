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
 * bytes as the console's shell has as gzip. Both alternate.
 */
export const consoleFirstPaint: Figure = {
  name: 'console-first-paint',
  title: 'first paint of the console, to a static page of its size',
  goal: { atMost: 1.2 },
  unit: 'x',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  await promisify(execFile)(join(ROOT, 'scripts/build-console'), { signal: bench.signal })
  await using ours = await bench.startOurs('data-console', { CONSOLE: 'true' })
  await using page = await startStaticPage(measureConsole(BUILT).shell)
  await using browser = await openBrowser()
  const urls = { page: page.url, ours: `http://127.0.0.1:${ours.port}/console/` }
  const times = { page: [] as number[], ours: [] as number[] }
  for (let round = -WARM_UP_ROUNDS; round < bench.pick(31, 15); round++)
    for (const name of round % 2 === 0 ? (['page', 'ours'] as const) : (['ours', 'page'] as const)) {
      bench.signal.throwIfAborted()
      const ms = await firstPaintMs(browser, urls[name])
      if (round >= 0) times[name].push(ms)
    }
  const shown = Object.entries(times).map(([name, values]) => `${name} ${median(values).toFixed(1)} ms`)
  return { value: median(times.ours) / median(times.page), detail: shown.join(', ') }
}

async function startStaticPage(bytes: number): Promise<AsyncDisposable & { url: string }> {
  const text = 'A page of words, as long as the console. '
  const body = `<!doctype html><title>static</title><p>${text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes)}</p>`
  const server = createServer((_req, res) => void res.setHeader('content-type', 'text/html').end(body))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => void server.close(resolve))
  }
  return { url: `http://127.0.0.1:${port}/`, [Symbol.asyncDispose]: close }
}

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

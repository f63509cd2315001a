import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { stripTypeScriptTypes } from 'node:module'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { openBrowser } from '../support/browser.ts'
import type { Outcome } from './run-scenario.ts'
import type { Head } from './scenario.ts'
import { type ConformanceServer, startConformanceServer } from './server.ts'

const ROOT = new URL('../../', import.meta.url)

/** A browser has six connections to a server, so few scenarios are played at the same time. */
const LANES = 3

describe('the conformance kit, in Chromium', () => {
  let server: ConformanceServer
  let pages: Server
  let browser: Browser

  before(async () => {
    server = await startConformanceServer()
    pages = await serveSources()
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    pages?.close()
    await server?.close()
  })

  it('our client passes every scenario in a page of another origin', async () => {
    const page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`)
    const heads = server.scenarios.map(({ head }) => head)
    const outcomes = await page.evaluate(playAll, { url: server.url, heads, lanes: LANES })
    for (const { name, expect: expected } of heads) {
      const outcome = outcomes[name]
      expect(outcome, name).to.deep.equal({ ...expected, ids: outcome?.ids })
      const play = server.play(name)
      await play?.over
      expect(play?.problems, name).to.deep.equal([])
    }
  })
})

type Playing = { url: string; heads: Head[]; lanes: number }

/** Runs in the page. */
async function playAll({ url, heads, lanes }: Playing): Promise<Record<string, Partial<Outcome>>> {
  const source = '/test/conformance/run-scenario.ts'
  const { runScenario } = (await import(source)) as { runScenario(url: string, head: Head): Promise<Outcome> }
  const left = [...heads]
  const outcomes: Record<string, Partial<Outcome>> = {}
  const play = async () => {
    for (let head = left.shift(); head; head = left.shift()) outcomes[head.name] = await runScenario(url, head)
  }
  await Promise.all(Array.from({ length: lanes }, play))
  return outcomes
}

/** Serves the project's sources without their types, as modules, and an empty page. */
async function serveSources(): Promise<Server> {
  const server = createServer((req, res) => {
    if (req.url === '/') return void res.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>')
    readFile(new URL(`.${req.url}`, ROOT), 'utf8').then(
      (source) => res.writeHead(200, { 'content-type': 'text/javascript' }).end(stripTypeScriptTypes(source)),
      () => res.writeHead(404).end(),
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

import { createConfig, lintFromString } from '@redocly/openapi-core'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { openBrowser } from '../support/browser.ts'
import { useOpened } from '../support/fixture.ts'
import { startStandalone, useProduct } from '../support/product.ts'

/** Rules of the linter that do not hold here. */
const OFF = {
  'no-ambiguous-paths': 'off', // No id of a plan is `schedules`.
  'no-unused-components': 'off', // Frames of streams are used by `x-itemSchema`, which the linter does not know.
  'no-invalid-media-type-examples': 'off', // It closes conditional schemas, too. Another test checks each example.
} as const

/** The issuer does not need to exist, because no request of these tests has a token. */
const GUARDED = { OIDC_ISSUER: 'https://issuer.example', OIDC_AUDIENCE: 'urn:ae' }

describe('the API explorer', () => {
  let page: Page
  const asked: URL[] = []
  const faults: string[] = []
  const product = useProduct(() => startStandalone({ ...GUARDED, RATE_LIMIT_RPM: '1' }))
  /** It takes requests without a token. */
  const open = useOpened(startStandalone)
  const browser = useOpened(openBrowser)
  before(async () => {
    page = await browser.newPage()
    page.setDefaultTimeout(45_000) // As in the tests of the console: Swagger UI takes seconds of CPU for the whole API.
    page.on('request', (request) => asked.push(new URL(request.url())))
    page.on('pageerror', (error) => faults.push(error.message))
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
    await page.goto(`${open.url}/docs#/Runs/startRun`)
  })

  it('D1.3 API_EXPLORER: shows every operation, offline, without a token and outside the rate limit', async () => {
    await page.getByText('/agent/run', { exact: false }).first().waitFor()
    const operations = await page.locator('.opblock').count()
    const { paths } = (await product.call('GET', '/openapi.json')).body as { paths: Record<string, object> }
    const methods = ['get', 'post', 'put', 'patch', 'delete']
    const documented = Object.values(paths).flatMap((path) => Object.keys(path).filter((key) => methods.includes(key)))
    expect(operations).to.equal(documented.length)
    expect(new Set(asked.map(({ origin }) => origin))).to.deep.equal(new Set([new URL(open.url).origin]))
    expect(faults).to.deep.equal([])
    const links = await page.locator('a[href^="http"]').evaluateAll((all) => all.map((link) => String(link)))
    expect(links.filter((link) => !link.startsWith(open.url))).to.deep.equal([])
    const flow = page.locator('#operations-Flows-getFlow')
    await flow.locator('.opblock-summary-control').click()
    await flow.getByText('The name of the flow.').waitFor() // A parameter that the document gives to the path.
    await flow.getByText('"served_version"').waitFor() // A field of a schema that the answer refers to.
    for (const { pathname } of asked) {
      const answer = await fetch(new URL(pathname, product.url))
      expect([answer.status, (await answer.arrayBuffer()).byteLength > 0], pathname).to.deep.equal([200, true])
    }
    expect((await product.call('GET', '/tools')).status).to.equal(401)
  })

  it('Try it out shows the events of a stream while they arrive', async () => {
    const answer = Promise.withResolvers<void>()
    open.model.answer([{ text: ['the beginning'] }, { hold: answer.promise }, { text: ' and the end' }])
    try {
      const run = page.locator('#operations-Runs-startRun')
      await run.getByRole('button', { name: 'Try it out' }).click()
      await run.getByRole('button', { name: 'Execute' }).click()
      const live = run.locator('.live-stream')
      await live.getByText('the beginning').waitFor()
      expect(await live.textContent()).not.to.include('event: done')
      answer.resolve()
      await live.getByText('event: done').waitFor()
    } finally {
      answer.resolve()
    }
  })

  it("the served description breaks none of redocly's recommended rules, be it by an error or a warning", async () => {
    const source = await (await fetch(`${product.url}/openapi.json`)).text()
    const config = await createConfig({ extends: ['recommended'], rules: OFF })
    const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
    const lines = problems.map(({ ruleId, message, location }) => `${location[0]?.pointer}: ${message} (${ruleId})`)
    expect(lines).to.deep.equal([])
  })
})

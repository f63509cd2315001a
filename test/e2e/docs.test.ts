import { expect } from 'chai'
import { type Browser, chromium } from 'playwright-core'
import { type Product, startStandalone } from '../support/product.ts'

const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
]

describe('the API explorer', () => {
  let product: Product
  let browser: Browser
  before(async function () {
    this.timeout(60_000)
    product = await startStandalone({ API_TOKEN: 'secret-token', RATE_LIMIT_RPM: '1' })
    browser = await chromium.launch({ executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', args: FLAGS })
  })
  after(async () => {
    await browser.close()
    await product.close()
  })

  it('D1.3 API_EXPLORER: shows every operation, offline, without a token and outside the rate limit', async () => {
    const page = await browser.newPage()
    const asked: string[] = []
    const problems: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).origin))
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
    await page.goto(`${product.url}/docs`)
    await page.getByText('/agent/run', { exact: false }).first().waitFor()
    const operations = await page.locator('.opblock').count()
    const { paths } = (await product.call('GET', '/openapi.json')).body as { paths: Record<string, object> }
    const methods = ['get', 'post', 'put', 'delete']
    const documented = Object.values(paths).flatMap((path) => Object.keys(path).filter((key) => methods.includes(key)))
    expect(operations).to.equal(documented.length)
    expect(new Set(asked)).to.deep.equal(new Set([new URL(product.url).origin]))
    expect(problems).to.deep.equal([])
  })

  it('api.md Errors: is not there when it is switched off', async () => {
    const closed = await startStandalone({ API_EXPLORER: 'false' })
    try {
      expect((await closed.call('GET', '/docs')).status).to.equal(404)
      expect((await closed.call('GET', '/openapi.json')).status).to.equal(404)
    } finally {
      await closed.close()
    }
  })
})

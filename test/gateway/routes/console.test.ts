import { createHash } from 'node:crypto'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { expect } from 'chai'
import type { ConsoleSettings } from '../../../services/gateway/routes/console.ts'
import type { ConsoleFile } from '../../../services/http/console-files.ts'
import { useGateways } from '../setup.ts'

const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

const file = (type: string, text: string): ConsoleFile => ({
  type,
  etag: `"${text.length}"`,
  bodies: { identity: Buffer.from(text), gzip: gzipSync(`${text} gzip`), br: brotliCompressSync(`${text} br`) },
})

const STYLE = 'main > p {\n  color: teal;\n}'
const PAGE = `<style>${STYLE}</style><p>page</p>`

const SETTINGS: ConsoleSettings = {
  files: async () => ({
    index: file('text/html; charset=utf-8', PAGE),
    cluster: file('text/html; charset=utf-8', 'cluster'),
    assets: new Map([['assets/main-abc.js', file('text/javascript; charset=utf-8', 'script')]]),
  }),
  signIn: { kind: 'oidc', issuer: 'https://id.example', client_id: 'console', audience: 'api', scope: 'openid' },
  origins: ['https://id.example'],
  isHome: true,
}

describe('the routes of the console', () => {
  const start = useGateways()
  const at = async (
    path: string,
    headers: Record<string, string> = {},
    settings: ConsoleSettings | null = SETTINGS,
  ) => {
    const { port } = await start({ console: settings ?? undefined })
    return fetch(`http://127.0.0.1:${port}${path}`, { headers, redirect: 'manual' })
  }

  it('D29d: every page has the same document, whose policy allows its own files, its own style and the issuer, and no HTML made of text', async () => {
    const hash = createHash('sha256').update(STYLE).digest('base64')
    for (const path of ['/console', '/console/', '/console/chat/support-7', '/console/approvals/perm_1?x=1']) {
      const response = await at(path, { 'accept-encoding': 'identity' })
      expect([response.status, await response.text()], path).to.deep.equal([200, PAGE])
      const policy = response.headers.get('content-security-policy')
      expect(policy).to.include(`default-src 'none'; script-src 'self'; style-src 'self' 'sha256-${hash}';`)
      expect(policy).to.include("connect-src 'self' https://id.example;")
      expect(policy).to.include("require-trusted-types-for 'script'; trusted-types 'none'")
      expect(policy).not.to.include('unsafe')
      expect(response.headers.get('cross-origin-opener-policy')).to.equal('same-origin')
      expect(response.headers.get('referrer-policy')).to.equal('no-referrer')
    }
  })

  it('its files are read when they are asked for, and without them a page is no path', async () => {
    let reads = 0
    const files = () => Promise.resolve(void reads++)
    const { status } = await at('/v1/health', {}, { ...SETTINGS, files })
    const page = await at('/console/', BROWSER, { ...SETTINGS, files })
    expect([status, page.status, reads]).to.deep.equal([200, 404, 1])
  })

  it('a page whose address no browser can read is the page, too; a file and another method are refused', async () => {
    for (const path of ['/console/activity/%E0%A4%A', '/console/%', '/console/chat/%zz/x']) {
      const response = await at(path, { 'accept-encoding': 'identity' })
      expect([response.status, await response.text()], path).to.deep.equal([200, PAGE])
    }
    const { port } = await start({ console: SETTINGS })
    const refused = [
      await at('/console/assets/%E0'),
      await fetch(`http://127.0.0.1:${port}/console/%`, { method: 'POST' }),
    ]
    for (const { status, headers } of refused)
      expect([status, headers.get('content-type')]).to.deep.equal([400, 'application/json; charset=utf-8'])
  })

  it('an asset is compressed as the client accepts it, and never asked for again; the document is, by its ETag', async () => {
    const encodings = { 'br, gzip': ['br', 'script br'], gzip: ['gzip', 'script gzip'], identity: [null, 'script'] }
    for (const [accepted, wanted] of Object.entries(encodings)) {
      const response = await at('/console/assets/main-abc.js', { 'accept-encoding': accepted })
      expect([response.headers.get('content-encoding'), await response.text()]).to.deep.equal(wanted)
      expect(response.headers.get('cache-control')).to.equal('public, max-age=31536000, immutable')
      expect(response.headers.get('vary')).to.equal('Accept-Encoding')
    }
    const page = await at('/console/')
    expect(page.headers.get('cache-control')).to.equal('no-cache')
    const again = await at('/console/', { 'if-none-match': page.headers.get('etag') ?? '' })
    expect([again.status, await again.text()]).to.deep.equal([304, ''])
    expect((await at('/console/assets/main-old.js')).status).to.equal(404)
  })

  it('D29b: tells where the API is, and how a person signs in', async () => {
    const response = await at('/console/config.json')
    expect(await response.json()).to.deep.equal({ base_path: '/v1', sign_in: SETTINGS.signIn })
  })

  it('D29a, D29.5: `/` leads clients that prefer HTML there, and the 404 of others names its address; where it is not at home nothing does', async () => {
    const toBrowser = await at('/', BROWSER)
    expect([toBrowser.status, toBrowser.headers.get('location')]).to.deep.equal([302, '/console/'])
    for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }]) {
      const toOthers = await at('/', headers)
      const { error } = (await toOthers.json()) as { error: { message: string } }
      expect(toOthers.status).to.equal(404)
      expect(error.message)
        .to.include(`${new URL(toOthers.url).origin}/console/`)
        .and.include('begin with /v1')
    }
    for (const plain of [await at('/', {}, null), await at('/', BROWSER, { ...SETTINGS, isHome: false })]) {
      expect(plain.status).to.equal(404)
      expect(await plain.text()).not.to.include('console')
    }
  })

  it('without CONSOLE its paths do not exist', async () => {
    for (const path of ['/console', '/console/config.json']) expect((await at(path, {}, null)).status).to.equal(404)
  })

  it('D29e: its files count against no rate limit, and need no token', async () => {
    const refuse = { take: async () => ({ isAllowed: false, limit: 1, remaining: 0, resetSecs: 60 }) }
    const { port } = await start({ console: SETTINGS, limiter: refuse })
    expect((await fetch(`http://127.0.0.1:${port}/console/`)).status).to.equal(200)
  })
})

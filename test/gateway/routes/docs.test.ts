import { expect } from 'chai'
import { openIdentify } from '../../../services/gateway/open-identify.ts'
import type { ApiDocument } from '../../../shared/platform/api/document.ts'
import { loadConfig } from '../../../shared/platform/config/config.ts'
import { operationsOf } from '../../platform/api/operations.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { useGateways } from '../setup.ts'

describe('the explorer', () => {
  const start = useGateways()

  it('D1.3 API_EXPLORER: its page loads only files of this server, and they exist', async () => {
    const { get, port } = await start({ basePath: '/api/v1' })
    const page = await get('/docs')
    expect(page.headers.get('content-type')).to.match(/^text\/html/)
    const html = await page.text()
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file ?? '')
    expect(files).to.have.length(4)
    for (const file of files) {
      expect(file).to.match(/^\/api\/v1\/docs\//)
      const response = await fetch(`http://127.0.0.1:${port}${file}`)
      expect(response.status, file).to.equal(200)
      expect(response.headers.get('content-type')).to.match(
        /^(text\/css|text\/javascript|application\/javascript|image\/png)/,
      )
      await response.arrayBuffer()
    }
  })

  it('allows no inline script or style, no HTML that is not of its policy, and nothing from elsewhere', async () => {
    const { get } = await start()
    const page = await get('/docs')
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).to.include("default-src 'none'").and.include("script-src 'self';")
    expect(policy)
      .to.include("require-trusted-types-for 'script'")
      .and.not.match(/https?:|unsafe/)
    expect(page.headers.get('cross-origin-opener-policy')).to.equal('same-origin')
    expect(page.headers.get('referrer-policy')).to.equal('no-referrer')
    expect(await page.text()).to.not.match(/<script>|https?:/)
    expect(await (await get('/docs/start.js')).text()).to.include('validatorUrl: null')
  })

  it('its files and the description are compressed for clients that accept it', async () => {
    const { get } = await start({ cors: { origins: ['https://app.example'], allowHeaders: [], exposeHeaders: [] } })
    let bytes = 0
    for (const path of ['/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js', '/docs/start.js', '/openapi.json']) {
      const zipped = await get(path, { 'accept-encoding': 'gzip' })
      expect(zipped.headers.get('content-encoding'), path).to.equal('gzip')
      expect(zipped.headers.get('vary'), path).to.equal('Origin, Accept-Encoding')
      bytes += Number(zipped.headers.get('content-length'))
      const plain = await get(path, { 'accept-encoding': 'identity' })
      expect([plain.headers.get('content-encoding'), plain.headers.get('vary')]).to.deep.equal([
        null,
        'Origin, Accept-Encoding',
      ])
      expect(await zipped.text(), path).to.equal(await plain.text())
    }
    expect(bytes).to.be.below(700_000)
  })

  it('the description is OpenAPI 3.1 with this base path as its server', async () => {
    const { get } = await start({ basePath: '/api/v1' })
    const response = await get('/openapi.json')
    expect(response.headers.get('content-type')).to.equal('application/json; charset=utf-8')
    const document = (await response.json()) as { openapi: string; servers: unknown }
    expect(document.openapi).to.match(/^3\.1/)
    expect(document.servers).to.deep.equal([{ url: '/api/v1' }])
  })

  const bearer = { type: 'http', scheme: 'bearer' }
  const jwt = { ...bearer, bearerFormat: 'JWT' }
  for (const [authentication, security, scheme] of [
    ['none', [], undefined],
    ['api-token', [{ bearer: [] }], bearer],
    ['oidc', [{ bearer: [] }], jwt],
    ['optional-oidc', [{}, { bearer: [] }], jwt],
  ] as const) {
    it(`api.md Authentication: the description requires what the server does: ${authentication}`, async () => {
      const { get } = await start({ authentication })
      const document = (await (await get('/openapi.json')).json()) as ApiDocument
      expect(document.security).to.deep.equal(security)
      const { securitySchemes } = document.components
      if (scheme) expect(securitySchemes?.['bearer']).to.include(scheme)
      else expect(securitySchemes).to.equal(undefined)
      const open = operationsOf(document).filter(({ operation }) => operation['security'] !== undefined)
      expect(open.map(({ path }) => path)).to.deep.equal(['/health', '/openapi.json', '/docs', '/docs/{file}'])
      for (const { operation } of open) expect(operation['security']).to.deep.equal([])
    })
  }

  for (const [env, authentication] of [
    [{}, 'none'],
    [{ API_TOKEN: 'token-0123456789abcdef' }, 'api-token'],
    [{ OIDC_ISSUER: 'https://issuer.example', OIDC_AUDIENCE: 'ae' }, 'oidc'],
    [{ OIDC_ISSUER: 'https://issuer.example', OIDC_AUDIENCE: 'ae', AUTH_MODE: 'soft' }, 'optional-oidc'],
  ] as const) {
    it(`the configuration ${JSON.stringify(env)} is described as ${authentication}`, async () => {
      const config = loadConfig({ ...env }, 'standalone')
      const opened = await openIdentify(config, SILENT_LOG)
      expect(opened.authentication).to.equal(authentication)
      await opened.close()
    })
  }

  it('serves no other file of the package, and none outside it', async () => {
    const { get } = await start()
    for (const file of ['index.html', 'swagger-initializer.js', 'package.json', '..%2fpackage.json', '%2e%2e', 'x/y']) {
      expect((await get(`/docs/${file}`)).status, file).to.equal(404)
    }
  })

  it('D1.3 API_EXPLORER: is 404 when it is switched off', async () => {
    const { get } = await start({ hasExplorer: false })
    for (const path of ['/docs', '/docs/start.js', '/openapi.json'])
      expect((await get(path)).status, path).to.equal(404)
  })
})

import { expect } from 'chai'
import type { ApiDocument } from '../../shared/platform/api/document.ts'
import { operationsOf } from '../platform/api/operations.ts'
import { apiDocument } from '../support/api-document.ts'
import { PERMISSION_ID, RUN_ID, refusalOf, routesOfApp, useGateways } from './setup.ts'

const concrete = (path: string) =>
  path
    .replace('{run_id}', RUN_ID)
    .replace('{request_id}', PERMISSION_ID)
    .replace('{name}', 'a')
    .replace('{version}', '1')
    .replace('{id}', 's-1')

const methodsOf = (paths: ApiDocument['paths'], path: string) =>
  Object.keys(paths[path] ?? {})
    .filter((key) => key !== 'parameters')
    .flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]))

describe('paths and methods', () => {
  const start = useGateways()

  it('the router and the API description have the same paths and methods', async () => {
    const document = await apiDocument()
    const described = operationsOf(document).map(
      ({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    )
    const routed = routesOfApp()
    expect(routed.length).to.be.greaterThan(25)
    expect(routed.toSorted()).to.deep.equal(described.toSorted())
  })

  it('D2.2: a wrong method on a known path is 405 with Allow, and the API description names the same methods', async () => {
    const { url } = await start()
    const { paths } = await apiDocument()
    expect(paths).to.include.keys('/health', '/agent/run', '/runs/{run_id}/events')
    for (const path of Object.keys(paths)) {
      const method = Object.hasOwn(paths[path] ?? {}, 'patch') ? 'PUT' : 'PATCH'
      const response = await fetch(url + concrete(path), { method })
      expect(response.status, path).to.equal(405)
      expect(response.headers.get('allow'), path).to.equal([...methodsOf(paths, path), 'OPTIONS'].join(', '))
      expect((await refusalOf(response)).type).to.equal('invalid_request_error')
    }
  })

  it('D2.2: an unknown path is a JSON 404 under every method, also outside the base path', async () => {
    const { url, port } = await start()
    for (const path of ['/nowhere', '/agent', '/agent/run/x', '/sessions/a/b', '/TOOLS', '//tools', '/runs//events']) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH']) {
        const response = await fetch(url + path, { method })
        expect(response.status, `${method} ${path}`).to.equal(404)
        expect(response.headers.get('content-type')).to.equal('application/json; charset=utf-8')
        expect((await refusalOf(response)).type).to.equal('not_found_error')
      }
    }
    for (const path of ['/', '/health', '/V1/health', '/api/v1/health']) {
      expect((await fetch(`http://127.0.0.1:${port}${path}`)).status, path).to.equal(404)
    }
  })

  it('a 404 names the path that was meant, perhaps, and repeats nothing of the one that was sent', async () => {
    const { url, port, get } = await start()
    const hintFor = async (path: string) => (await refusalOf(await fetch(`http://127.0.0.1:${port}${path}`))).message
    expect(await hintFor('/v1/session')).to.equal('no such path; did you mean /v1/sessions?')
    expect(await hintFor('/v1/Tools/')).to.equal('no such path; did you mean /v1/tools?')
    expect(await hintFor('/api/v1/agent/run')).to.equal('no such path; did you mean /v1/agent/run?')
    expect(await hintFor('/v1/flow/my-flow/revision')).to.equal(
      'no such path; did you mean /v1/flows/{name}/revisions?',
    )
    for (const path of ['/v1/nowhere-at-all', `/v1/${'sessions'.repeat(1_000)}`, '/', '/v1/tools/a/b/c/d'])
      expect(await hintFor(path)).to.equal('no such path; the paths of this API begin with /v1')
    expect([url, (await get('/session')).status]).to.deep.equal([`http://127.0.0.1:${port}/v1`, 404])
  })

  it('a 404 in the format of another product names the paths of that format, where it is served', async () => {
    const openai = await start({ dialects: ['openai'] })
    for (const path of ['/openai/v1/embeddings/of/these', '/openai/v1', '/openai/completions/legacy'])
      expect((await refusalOf(await openai.get(path))).message)
        .to.match(/^no such path; the paths of this format are \/v1\/openai\/v1\/chat\/completions, /)
        .and.match(/ \/v1\/openai\/v1\/models$/)
        .and.not.include('/v1/runs')
    const plain = await start({ dialects: [] })
    const { message } = await refusalOf(await plain.get('/openai/v1/embeddings/of/these'))
    expect(message).to.equal('no such path; the paths of this API begin with /v1')
  })

  it('api.md Versioning 1: the base path is configured, /v1 or /api/v1', async () => {
    const { get, port } = await start({ basePath: '/api/v1' })
    expect((await get('/health')).status).to.equal(200)
    expect((await fetch(`http://127.0.0.1:${port}/v1/health`)).status).to.equal(404)
  })

  it('malformed percent-encoding is a JSON 400 anywhere in the path', async () => {
    const { get } = await start()
    for (const path of ['/sessions/%E0%A4%A', '/sessions/%', '/runs/%zz/events', '/nowhere/%ff']) {
      const response = await get(path)
      expect(response.status, path).to.equal(400)
      expect((await refusalOf(response)).type).to.equal('invalid_request_error')
    }
  })

  it('D2.11: an id of the wrong form in the path is 404 and never reaches the broker', async () => {
    const { get, post, url } = await start()
    for (const id of ['a%20b', '%2e%2e%2fx', 'a%00b', 'a%2Fb', 'x'.repeat(129), 'ä', '{"$gt":""}']) {
      expect((await get(`/sessions/${id}`)).status, id).to.equal(404)
      expect((await fetch(`${url}/sessions/${id}`, { method: 'DELETE' })).status, id).to.equal(404)
      expect((await post(`/sessions/${id}/messages`, { prompt: 'hi' })).status, id).to.equal(404)
      expect((await post(`/sessions/${id}/permissions/${PERMISSION_ID}`, { allow: true })).status, id).to.equal(404)
    }
    for (const id of ['run_x', RUN_ID.toUpperCase(), `${RUN_ID}0`, '__proto__']) {
      expect((await get(`/runs/${id}`)).status, id).to.equal(404)
      expect((await get(`/runs/${id}/events`)).status, id).to.equal(404)
      expect((await post(`/sessions/s/permissions/${id}`, { allow: true })).status, id).to.equal(404)
    }
  })

  it('D2.4: every DELETE refuses query parameters that the API description does not name, and deletes nothing', async () => {
    const { url } = await start() // Its broker fails every call with 500, and what it has no store for is 503.
    const document = await apiDocument()
    const deletes = operationsOf(document).filter(({ method }) => method === 'DELETE')
    expect(deletes.length).to.be.greaterThan(5)
    for (const { path, parameters } of deletes) {
      const statusOf = async (query: string) =>
        (await fetch(`${url}${concrete(path)}?${query}`, { method: 'DELETE' })).status
      const known = parameters.filter((parameter) => parameter['in'] === 'query').map(({ name }) => String(name))
      const good = known.map((name) => `${name}=a`).join('&')
      expect(await statusOf(good), path).not.to.equal(400)
      for (const wrong of [
        'entryId=a',
        'entry_id[$ne]=a',
        'Scope=a',
        '=',
        '__proto__=a',
        'limit',
        `${'&'.repeat(1_000)}x=a`,
      ])
        expect(await statusOf(`${good}&${wrong}`), `${path} ${wrong.slice(-20)}`).to.equal(400)
    }
  })

  it('HEAD is answered like GET, without the body', async () => {
    const { get, url } = await start()
    for (const path of ['/health', '/tools', '/docs']) {
      const head = await fetch(url + path, { method: 'HEAD' })
      const full = await get(path)
      expect(head.status).to.equal(200)
      expect(await head.text()).to.equal('')
      expect(head.headers.get('content-length'), path).to.equal(full.headers.get('content-length'))
      await full.text()
    }
  })

  it('an answer must not be cached, sniffed or framed', async () => {
    const { headers } = await (await start()).get('/tools')
    expect(Object.fromEntries(headers)).to.include({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    })
    expect(headers.has('x-powered-by')).to.equal(false)
  })
})

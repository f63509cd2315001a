import { expect } from 'chai'
import type { FlowSurface } from '../../../../services/gateway/routes/flows/flows.ts'
import { DEFAULT_TENANT, parseTenant, type TenantId } from '../../../../shared/kernel/tenant.ts'
import { sumsOf } from '../../../../shared/tenancy/usage/sums.ts'
import { useFixture } from '../../../support/fixture.ts'
import { tenantId } from '../../../support/tenant.ts'
import { useContract } from '../../described.ts'
import { DEFINITION, newName, openFlows, SCHEMA, TOOLS } from '../../flow-setup.ts'
import { refusalOf, useGateways } from '../../setup.ts'

const DEFAULTS = { tools: [], sub_agents: [], evolve: false }
const NOTHING = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 }

describe('the definitions of flows', () => {
  const start = useGateways()
  const described = useContract()
  const flows = useFixture(openFlows)
  let surface: FlowSurface
  before(async () => {
    surface = flows().surface()
  })

  async function open(tenant: TenantId = DEFAULT_TENANT) {
    const { url } = await start({ flows: surface, identify: async () => ({ tenant, subject: 'anonymous' }) })
    return async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
      const sent = body !== undefined && { body: JSON.stringify(body) }
      const type = body !== undefined && { 'content-type': 'application/json' }
      const response = await fetch(url + path, { method, headers: { ...type, ...headers }, ...sent })
      const isJson = response.headers.get('content-type')?.startsWith('application/json')
      const text = await response.clone().text()
      const answer = isJson ? await described(method, path, response) : text
      return { status: response.status, headers: response.headers, body: answer as Record<string, unknown> }
    }
  }

  it('D6.2: PUT stores a draft and answers with it, GET shows it, and neither shows the internal id', async () => {
    const call = await open()
    const name = newName()
    const { status, body } = await call('PUT', `/flows/${name}`, DEFINITION)
    expect(status).to.equal(200)
    expect(body).to.deep.include({ name, version: 1, state: 'draft', published_version: null, built_in: false })
    expect(body['definition']).to.deep.equal({ ...DEFINITION, ...DEFAULTS })
    expect(body).to.have.all.keys([
      'name',
      'version',
      'state',
      'published_version',
      'served_version',
      'built_in',
      'definition',
      'created_at',
      'updated_at',
    ])
    expect((await call('GET', `/flows/${name}`)).body).to.deep.equal(body)
  })

  it('D6.2, D2.7: GET /flows lists the flows in the order of their names, page by page, without definitions', async () => {
    const call = await open(parseTenant('lists'))
    for (const name of ['zebra', 'alpha']) await call('PUT', `/flows/${name}`, DEFINITION)
    const names: unknown[] = []
    for (let cursor: unknown = ''; typeof cursor === 'string'; ) {
      const query = cursor === '' ? '' : `&cursor=${cursor}`
      const { body } = await call('GET', `/flows?limit=2${query}`)
      names.push(...(body['flows'] as { name: string; built_in: boolean }[]).map((each) => [each.name, each.built_in]))
      cursor = body['next_cursor']
    }
    expect(names).to.deep.equal([
      ['alpha', false],
      ['classify', true],
      ['extract', true],
      ['summarize', true],
      ['zebra', false],
    ])
    expect((await call('GET', '/flows?cursor=x')).status).to.equal(400)
  })

  it('D22.3: GET with figures has those of each flow, in the one request, and without has none', async () => {
    const tenant = tenantId('busy')
    const call = await open(tenant)
    await call('PUT', '/flows/busy', DEFINITION)
    const hour = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000).toISOString()
    const rows = new Map([['busy', sumsOf({ ...NOTHING, cost_usd: 0.25, ms: 100, hasFailed: false, isInvalid: true })]])
    await flows().usage.add(tenant, { by: 'flow', bucket: 'hour', start: hour, rows, process: 'p', number: 1 })
    const listed = async (query: string) =>
      (await call('GET', `/flows${query}`)).body['flows'] as { name: string; figures?: { runs: number } }[]
    const figures = new Map((await listed('?figures=true')).map((flow) => [flow.name, flow.figures]))
    expect(figures.get('busy')).to.deep.include({ runs: 1, failed: 0, invalid: 1, cost_usd: 0.25 })
    expect(figures.get('summarize')).to.deep.include({ runs: 0, p50_ms: null })
    for (const flow of await listed('')) expect(flow).not.to.have.property('figures')
    expect((await call('GET', '/flows?figures=yes')).body['error']).to.include({ param: '/figures' })
  })

  it('GET with Accept: application/yaml answers with YAML, any other Accept with JSON', async () => {
    const call = await open()
    const path = `/flows/${newName()}`
    await call('PUT', path, DEFINITION)
    const yaml = await call('GET', path, undefined, { accept: 'application/yaml' })
    expect(yaml.headers.get('content-type')).to.equal('application/yaml; charset=utf-8')
    expect(yaml.body)
      .to.match(/^name: flow-/)
      .and.include('input_schema:\n  type: object')
    for (const accept of [
      '*/*',
      'application/json',
      'application/*',
      'text/html',
      'application/json, application/yaml',
    ]) {
      const { headers } = await call('GET', path, undefined, { accept })
      expect(headers.get('content-type'), accept).to.equal('application/json; charset=utf-8')
    }
  })

  it('api.md Named flows: GET /flows/tools lists the names of the tools', async () => {
    expect((await (await open())('GET', '/flows/tools')).body).to.deep.equal({ tools: TOOLS, count: TOOLS.length })
  })

  it('D2.11: a wrong scope, entry or content is 400 and names the field', async () => {
    const call = await open()
    const path = '/flows/summarize/memory'
    for (const [method, query, body, param] of [
      ['GET', '?scope=', undefined, '/scope'],
      ['GET', '?scope=a&scope=b', undefined, '/scope'],
      ['GET', '?scope=%24where', undefined, '/scope'],
      ['GET', '?limit=0', undefined, '/limit'],
      ['DELETE', '?entry_id=', undefined, '/entry_id'],
      ['DELETE', '?entry_id=mem_x', undefined, '/entry_id'],
      ['POST', '?scope=evolve', { content: 'x' }, '/scope'],
      ['POST', '', {}, '/content'],
      ['POST', '', { content: 1 }, '/content'],
      ['POST', '', { content: null }, '/content'],
      ['POST', '', { content: ['x'] }, '/content'],
      ['POST', '', { content: ' ' }, '/content'],
      ['POST', '', { content: 'x'.repeat(8_193) }, '/content'],
      ['POST', '', { content: { x: 'x'.repeat(8_193) } }, '/content'],
    ] as const) {
      const answer = await call(method, path + query, body)
      expect(answer.status, `${method} ${query} ${JSON.stringify(body)}`).to.equal(400)
      expect(answer.body['error']).to.include({ type: 'invalid_request_error', param })
    }
    expect((await call('GET', path)).body['entries']).to.deep.equal([])
  })

  it('a process without a store answers 503 on every path of flows', async () => {
    const { get, post, url } = await start()
    const put = await fetch(`${url}/flows/x`, { method: 'PUT' })
    const answers = [
      put,
      await post('/flows/x/publish'),
      await post('/flows/x/run', {}),
      await post('/flows/x/evaluate'),
    ]
    for (const path of ['/flows', '/flows/tools', '/flows/x', '/flows/x/revisions', '/flows/x/memory']) {
      answers.push(await get(path))
    }
    for (const answer of answers) {
      expect(answer.status, answer.url).to.equal(503)
      expect(await refusalOf(answer))
        .to.include({ type: 'unavailable_error' })
        .and.not.have.property('code')
    }
  })

  it('a body with a key __proto__ inside a schema, or nested too deeply, is 400 and stores nothing', async () => {
    const { url } = await start({ flows: surface })
    const name = newName()
    const deep = `${'{"a":'.repeat(64)}1${'}'.repeat(64)}`
    for (const schema of ['{"properties":{"__proto__":{}}}', deep]) {
      const body = `{"input_schema":${schema},"output_schema":${JSON.stringify(SCHEMA)}}`
      const headers = { 'content-type': 'application/json' }
      expect((await fetch(`${url}/flows/${name}`, { method: 'PUT', headers, body })).status).to.equal(400)
    }
    expect((await fetch(`${url}/flows/${name}`)).status).to.equal(404)
  })
})

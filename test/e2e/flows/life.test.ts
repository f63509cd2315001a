import { expect } from 'chai'
import { DEFINITION, GOOD, newName, systemOf, useFlows } from '../../support/flows.ts'
import { inBothForms } from '../../support/product.ts'

type Warned = { warnings?: { param: string }[] }
type Flow = Warned & { name: string; version: number; state: string; definition: object; built_in: boolean }
type Revision = { version: number; definition: object }

inBothForms('the life of a flow', (startProduct, form) => {
  const bench = useFlows(startProduct, form)
  const { call, publish, run } = bench

  beforeEach(() => bench.main.otherwise(() => GOOD))

  const put = async (name: string, definition: object = DEFINITION) => {
    const { status, text, body } = await call('PUT', `/flows/${name}`, definition)
    expect(status, text).to.equal(200)
    return body as Flow
  }

  const get = async (name: string) => (await call('GET', `/flows/${name}`)).body as Flow

  const revisions = async (name: string) => {
    const { body } = await call('GET', `/flows/${name}/revisions`)
    return (body as { revisions: Revision[] }).revisions
  }

  const refusal = async (method: string, path: string, body?: unknown) => {
    const { status, body: answer } = await call(method, path, body)
    return { status, ...(answer as { error: { type: string; message: string; param?: string } }).error }
  }

  it('api.md Flow: a PUT stores a draft, publish makes it run, an edit makes it a draft again, and DELETE removes it', async () => {
    const name = newName()
    const { warnings, ...stored } = await put(name, { ...DEFINITION, unknown: 1 })
    expect(warnings?.map(({ param }) => param)).to.deep.equal(['/unknown'])
    expect(stored).to.deep.include({ name, version: 1, state: 'draft', published_version: null, built_in: false })
    expect(stored.definition).to.deep.equal({ ...DEFINITION, tools: [], sub_agents: [], evolve: false })
    expect(await get(name)).to.deep.equal(stored)
    expect((await run(name)).status).to.equal(404)

    const published = await call('POST', `/flows/${name}/publish`)
    expect(published.body).to.deep.include({ version: 1, state: 'published', published_version: 1 })
    expect((await call('POST', `/flows/${name}/publish`)).body).to.deep.equal(published.body)
    expect((await run(name)).body).to.include({ flow_id: name, flow_version: 1, verdict: 'ok' })

    const edited = await put(name, { ...DEFINITION, evolve: true })
    expect(edited).to.deep.include({ version: 2, state: 'draft', published_version: 1 })
    expect((await run(name)).status).to.equal(404)
    await call('POST', `/flows/${name}/publish`)
    const ran = await run(name)
    expect(ran.body).to.include({ flow_version: 2 })

    expect((await call('DELETE', `/flows/${name}`)).body).to.deep.equal({ status: 'deleted' })
    expect((await run(name)).status).to.equal(404)
    expect(await bench.dispatch(ran), 'the history stays').to.deep.include({ status: 'ok', flow: { name, version: 2 } })
  })

  it('D26.3: with keep_published the published version runs beside the draft, until the draft is published', async () => {
    const name = await publish({ ...DEFINITION, system_prompt_template: 'The first one.' })
    const systemOfRun = async (body = {}) => {
      const ran = await run(name, body)
      expect(ran.status, ran.text).to.equal(200)
      const { flow_version } = ran.body as { flow_version: number }
      return [flow_version, systemOf(bench.main.requests.at(-1) ?? expect.fail()).split('\n')[0]]
    }
    const second = { ...DEFINITION, system_prompt_template: 'The second one.' }
    const kept = await call('PUT', `/flows/${name}?keep_published=true`, second)
    expect(kept.body).to.include({ version: 2, state: 'draft', published_version: 1, served_version: 1 })
    expect(await get(name)).to.deep.equal(kept.body)
    expect(await systemOfRun()).to.deep.equal([1, 'The first one.'])
    const { body } = await call('POST', `/flows/${name}/rollback/2?keep_published=true`)
    expect(body).to.include({ version: 3, served_version: 1 })
    expect((await call('POST', `/flows/${name}/publish`)).body).to.include({ version: 3, served_version: 3 })
    expect(await systemOfRun()).to.deep.equal([3, 'The second one.'])
    expect(await systemOfRun({ version: 1 })).to.deep.equal([1, 'The first one.'])
    expect(await revisions(name)).to.have.lengthOf(3)
    expect((await refusal('PUT', `/flows/${name}?keep_published=1`, second)).param).to.equal('/keep_published')
    expect(await get(name)).to.include({ version: 3 })
  })

  it('D6.6: the version belongs to what a key stands for', async () => {
    const name = await publish(DEFINITION)
    const key = { 'idempotency-key': `key-${name}` }
    expect((await run(name, { version: 1 }, key)).status).to.equal(200)
    expect((await run(name, { version: 1 }, key)).headers.get('idempotency-replayed')).to.equal('true')
    expect((await run(name, {}, key)).status).to.equal(409)
  })

  // What a cluster adds is shown above.
  if (form === 'cluster') return

  it('D6.1: the built-in flows run at once, and nobody changes or deletes them', async () => {
    for (const [name, input, answer] of [
      ['summarize', { text: 'long' }, { summary: 'short', key_points: [] }],
      ['classify', { text: 'a', labels: ['x', 'y'] }, { labels: ['x'], confidence: 1, reason: 'a' }],
      ['extract', { text: 'a', fields: [{ name: 'f' }] }, { fields: [{ name: 'f', value: 'a', quote: null }] }],
    ] as const) {
      bench.main.answer(JSON.stringify(answer))
      expect((await run(name, { input })).body).to.deep.include({ flow_id: name, verdict: 'ok', output: answer })
      expect(await get(name)).to.deep.include({ built_in: true, state: 'published', version: 1 })
      expect(await revisions(name)).to.have.length(1)
      for (const [method, path, body] of [
        ['PUT', '', DEFINITION],
        ['DELETE', '', undefined],
        ['POST', '/rollback/1', undefined],
      ] as const)
        expect(await refusal(method, `/flows/${name}${path}`, body), method).to.include({
          status: 403,
          type: 'permission_error',
        })
    }
  })
})

import { expect } from 'chai'
import { DEFINITION, GOOD, newName, REQUEST, textSchema, useFlows } from '../../support/flows.ts'
import { useIssuer } from '../../support/issuer/use-issuer.ts'
import { inStandaloneForm } from '../../support/product.ts'

const UNKNOWN = { name: 'flow-unknown', id: '0'.repeat(32) }

inStandaloneForm('checks of flows', (startProduct, form) => {
  const issuer = useIssuer()
  const bench = useFlows(startProduct, form, issuer.env)
  const { call, publish, run } = bench

  const refusal = async (...request: Parameters<typeof call>) => {
    const { status, body: answer } = await call(...request)
    return { status, ...(answer as { error: { type: string; message: string; param?: string } }).error }
  }

  const sub = (fields: object = {}) => ({
    name: 'risk',
    prompt: 'Find the risks.',
    output_schema: textSchema('risk'),
    ...fields,
  })

  describe('publish names the place of a mistake, and the flow stays a draft:', () => {
    for (const [what, changes, param] of [
      ['a tool that does not exist', { tools: ['Read', 'Nope'] }, '/tools/1'],
      ["a sub-agent's tool that does not exist", { sub_agents: [sub({ tools: ['Nope'] })] }, '/sub_agents/0/tools/0'],
      ['two sub-agents of one name', { sub_agents: [sub(), sub()] }, '/sub_agents/1/name'],
      ['a sub-agent named memory', { sub_agents: [sub({ name: 'memory' })] }, '/sub_agents/0/name'],
      [
        'an unknown type',
        { output_schema: { properties: { a: { type: 'nope' } } } },
        '/output_schema/properties/a/type',
      ],
      ['a remote $ref', { output_schema: { $ref: 'https://example.com/s.json' } }, '/output_schema/$ref'],
      ['a pattern with a backreference', { output_schema: { pattern: '(a)\\1' } }, '/output_schema/pattern'],
      [
        "a sub-agent's schema",
        { sub_agents: [sub({ output_schema: { minimum: 'a' } })] },
        '/sub_agents/0/output_schema/minimum',
      ],
      ['an input that is no object', { input_schema: { type: 'string' } }, '/input_schema'],
      ['an undeclared input', { system_prompt_template: 'Read {{.input.txt}}' }, '/system_prompt_template'],
      ['an unknown sub-agent', { user_prompt_template: '{{.sub_outputs.risk}}' }, '/user_prompt_template'],
      [
        'a path that a sub-agent does not output',
        { sub_agents: [sub()], user_prompt_template: '{{.sub_outputs.risk.risks}}' },
        '/user_prompt_template',
      ],
      ['another key', { system_prompt_template: '{{.secrets.key}}' }, '/system_prompt_template'],
      ['an open reference', { system_prompt_template: '{{.memory' }, '/system_prompt_template'],
      [
        "another sub-agent's output in a sub-agent's prompt",
        { sub_agents: [sub(), sub({ name: 'tone', prompt: '{{.sub_outputs.risk}}' })] },
        '/sub_agents/1/prompt',
      ],
    ] as const)
      it(what, async () => {
        const name = newName()
        expect((await call('PUT', `/flows/${name}`, { ...DEFINITION, ...changes })).status).to.equal(200)
        expect(await refusal('POST', `/flows/${name}/publish`)).to.include({
          status: 400,
          type: 'invalid_request_error',
          param,
        })
        expect((await call('GET', `/flows/${name}`)).body).to.include({ state: 'draft', version: 1 })
        expect((await run(name)).status).to.equal(404)
      })
  })

  it('D6.3: publish tells all problems at once, those of the usable schemas beside an unusable one too', async () => {
    const name = newName()
    const wrong = {
      tools: ['Nothing'],
      system_prompt_template: '{{.input.nothing}}',
      input_schema: { type: 'string' },
      output_schema: { type: 'nope' },
    }
    await call('PUT', `/flows/${name}`, { ...DEFINITION, ...wrong, user_prompt_template: '{{.memory' })
    const { status, body } = await call('POST', `/flows/${name}/publish`)
    const { error } = body as {
      error: { message: string; param: string; problems: { param: string; message: string }[] }
    }
    expect([status, error.param]).to.deep.equal([400, '/tools/0'])
    expect(error.message).to.match(/there is no tool Nothing.*; 4 more in problems$/)
    expect(error.problems.map(({ param }) => param)).to.deep.equal([
      '/tools/0',
      '/input_schema',
      '/output_schema/type',
      '/system_prompt_template',
      '/user_prompt_template',
    ])
    expect(error.message).to.include(error.problems[0]?.message)
  })

  it('D6.3: of more than 20 problems publish lists 20 and counts the rest, and none repeats more than 200 characters', async () => {
    const name = newName()
    const tools = Array.from({ length: 25 }, (_, i) => `No${i}`)
    const wrong = { tools, sub_agents: [], system_prompt_template: `{{.input.${'x'.repeat(5_000)}}}` }
    await call('PUT', `/flows/${name}`, { ...DEFINITION, ...wrong })
    const { body } = await call('POST', `/flows/${name}/publish`)
    const { error } = body as { error: { message: string; problems: { message: string }[] } }
    expect(error.problems).to.have.length(20)
    expect(error.message).to.match(/No0.*; 19 more in problems, and 6 further ones that are not listed$/)
    await call('PUT', `/flows/${name}`, { ...DEFINITION, ...wrong, tools: [] })
    const { body: long } = await call('POST', `/flows/${name}/publish`)
    expect(JSON.stringify(long))
      .to.match(/x{150}/)
      .and.not.match(/x{201}/)
  })

  it('D6.2: a definition of the wrong shape is 400 with its place, and stores nothing', async () => {
    const name = newName()
    for (const [definition, param] of [
      [undefined, undefined],
      [{}, '/input_schema'],
      [{ output_schema: {} }, '/input_schema'],
      [{ ...DEFINITION, output_schema: 'text' }, '/output_schema'],
      [{ ...DEFINITION, tools: ['Read', 5] }, '/tools/1'],
      [{ ...DEFINITION, evolve: 'yes' }, '/evolve'],
      [{ ...DEFINITION, name: 'another' }, '/name'],
      [{ ...DEFINITION, sub_agents: [{ name: 'a', output_schema: {} }] }, '/sub_agents/0/prompt'],
      [{ ...DEFINITION, sub_agents: Array.from({ length: 9 }, (_, i) => sub({ name: `s${i}` })) }, '/sub_agents'],
    ] as const) {
      const refused = await refusal('PUT', `/flows/${name}`, definition)
      expect(refused, JSON.stringify(definition)).to.include({ status: 400 })
      expect(refused.param, JSON.stringify(definition)).to.equal(param)
    }
    expect((await call('GET', `/flows/${name}`)).status).to.equal(404)
  })

  describe('api.md Authentication 8: a flow belongs to its tenant', () => {
    const acme = () => issuer.headersOf('acme')

    it('to another tenant it does not exist: not to read, change, run, or look at its runs', async () => {
      const name = await publish(DEFINITION)
      bench.main.answer(GOOD)
      const ran = await run(name)
      const id = ran.headers.get('x-trace-id')?.slice('trace_'.length) ?? ''
      const foreign = await acme()
      for (const [method, path, body] of [
        ['GET', `/flows/${name}`],
        ['GET', `/flows/${name}/revisions`],
        ['GET', `/flows/${name}/memory`],
        ['POST', `/flows/${name}/memory`, { content: 'x' }],
        ['POST', `/flows/${name}/publish`],
        ['POST', `/flows/${name}/rollback/1`],
        ['POST', `/flows/${name}/run`, REQUEST],
        ['DELETE', `/flows/${name}`],
        ['GET', `/dispatches/trace_${id}`],
        ['GET', `/dispatches/trace_${id}/events`],
        ['GET', `/runs/run_${id}/events`],
        ['DELETE', `/runs/run_${id}`],
      ] as const) {
        const inPlace = (text: string) => text.replaceAll(name, UNKNOWN.name).replaceAll(id, UNKNOWN.id)
        const refused = await call(method, path, body, foreign)
        expect(refused.status, `${method} ${path}`).to.equal(404)
        expect(inPlace(refused.text)).to.equal((await call(method, inPlace(path), body, foreign)).text)
      }
      const { body } = await call('GET', '/dispatches', undefined, foreign)
      expect(body).to.deep.equal({ dispatches: [], next_cursor: null })
      expect(await bench.dispatch(ran)).to.include({ status: 'ok', tenant: 't_default' })
    })

    it('two tenants use one name for their own flows, with versions of their own', async () => {
      const name = await publish(DEFINITION)
      await call('PUT', `/flows/${name}`, DEFINITION)
      const { body } = await call('PUT', `/flows/${name}`, { ...DEFINITION, model: 'other' }, await acme())
      expect(body).to.include({ version: 1, state: 'draft' })
      expect((await call('GET', `/flows/${name}`)).body).to.include({ version: 2 })
    })

    it('api.md Named flows 3: an instance of another tenant is unknown', async () => {
      const name = newName()
      const foreign = await acme()
      await call('PUT', `/flows/${name}`, DEFINITION, foreign)
      await call('POST', `/flows/${name}/publish`, undefined, foreign)
      const before = bench.main.requests.length
      const own = await refusal('POST', `/flows/${name}/run`, REQUEST, foreign)
      expect(own).to.include({ status: 400, param: '/provider_instance' })
      const fallback = { ...REQUEST, fallback_instance: 'main', fallback_model: 'm-1' }
      expect(await refusal('POST', `/flows/${name}/run`, fallback, foreign)).to.include({ status: 400 })
      expect(bench.main.requests).to.have.length(before)
    })
  })
})

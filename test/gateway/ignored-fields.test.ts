import { expect } from 'chai'
import { useFixture } from '../support/fixture.ts'
import { useContract } from './described.ts'
import { DEFINITION, newName, openFlows } from './flow-setup.ts'
import { CHAIN, openPlanning } from './plan-setup.ts'
import { DONE, framesOf, RUN_ID, useGateways } from './setup.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** The JSON pointers that an answer names. */
const ignoredBy = ({ headers }: Response): string[] | undefined =>
  headers.get('x-ignored-fields')?.split(', ').map(decodeURIComponent)

describe('X-Ignored-Fields', () => {
  const start = useGateways()
  const described = useContract()
  const flows = useFixture(openFlows)
  const planning = useFixture(openPlanning)

  const startRun = async () => ({ runId: RUN_ID, frames: framesOf(DONE) })

  const open = async () => {
    const { url, post } = await start({ flows: flows().surface(), plans: planning().surface, methods: { startRun } })
    const put = (path: string, body: object) =>
      fetch(url + path, { method: 'PUT', headers: JSON_TYPE, body: JSON.stringify(body) })
    return { post, put }
  }

  const warningsFor = (...pointers: string[]) =>
    pointers.map((param) => ({ code: 'ignored_field', message: `nothing reads ${param}; check its name`, param }))

  it('D2.4: a stream names them before it opens, tools and stream among them, and a body without any has no such header', async () => {
    const { post } = await open()
    const stream = await post('/agent/run', { prompt: 'hi', toolz: [1], tools: 42, stream: true, 'a/b~c': {} })
    expect(stream.headers.get('content-type')).to.include('text/event-stream')
    expect(ignoredBy(stream)).to.deep.equal(['/toolz', '/tools', '/stream', '/a~1b~0c'])
    expect(stream.headers.get('access-control-expose-headers')).to.equal('X-Request-ID')
    await stream.text()
    const whole = await post('/agent/run', { prompt: 'hi', max_turns: 3 })
    expect(ignoredBy(whole)).to.equal(undefined)
    await whole.text()
  })

  it('D2.4: a refusal names them, too: perhaps the required field was misspelled', async () => {
    const refused = await (await open()).post('/agent/run', { promt: 'hi' })
    expect([refused.status, ignoredBy(refused)]).to.deep.equal([400, ['/promt']])
    await refused.text()
  })

  it('at most 20, in a header of at most 2 KB, and no name of a field ends the header or the list', async () => {
    const { post } = await open()
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`x${i}`, i]))
    expect(ignoredBy(await post('/agent/run', { prompt: 'hi', ...many }))).to.have.length(20)
    const hostile = ['a, b', 'x\r\nSet-Cookie: a=b', 'ä😀\u2028', '%41 %', '\ud800', '"quoted"', '']
    const answer = await post('/agent/run', Object.fromEntries([['prompt', 'hi'], ...hostile.map((name) => [name, 1])]))
    expect(ignoredBy(answer)).to.deep.equal(hostile.map((name) => `/${name.toWellFormed()}`))
    expect(answer.headers.has('set-cookie')).to.equal(false)
    const long = Array.from({ length: 20 }, (_, i) => [`${i}${'😀'.repeat(5_000)}`, 1])
    const header = (await post('/agent/run', { prompt: 'hi', ...Object.fromEntries(long) })).headers.get(
      'x-ignored-fields',
    )
    expect(header?.length).to.be.within(500, 2_048)
  })

  it('plan submit names those of its steps as warnings, and knows what is free of form', async () => {
    const { post } = await open()
    const [a, b] = CHAIN.steps
    const misspelled = { ...CHAIN, steps: [a, { ...b, dependsOn: ['a'] }], parralel: true }
    const answer = await post('/plans/submit', misspelled)
    expect(ignoredBy(answer)).to.deep.equal(['/steps/1/dependsOn', '/parralel'])
    expect(await described('POST', '/plans/submit', answer)).to.have.deep.property(
      'warnings',
      warningsFor('/steps/1/dependsOn', '/parralel'),
    )
    expect(await described('POST', '/plans/submit', await post('/plans/submit', CHAIN))).not.to.have.property(
      'warnings',
    )
  })

  it('a flow names them when it is stored and again when that version is published, schemas excepted', async () => {
    const { post, put } = await open()
    const path = `/flows/${newName()}`
    const agent = { name: 'lines', prompt: 'x', output_schema: { type: 'object', 'x-own': 1 }, toolz: [] }
    const warnings = warningsFor('/version', '/toolz', '/sub_agents/0/toolz')
    const stored = await put(path, { ...DEFINITION, version: 'x', toolz: ['Read'], sub_agents: [agent] })
    expect(ignoredBy(stored)).to.deep.equal(warnings.map(({ param }) => param))
    expect(await described('PUT', path, stored)).to.have.deep.property('warnings', warnings)
    const publish = async () => described('POST', `${path}/publish`, await post(`${path}/publish`))
    expect(await publish()).to.have.deep.property('warnings', warnings)
    expect(await described('PUT', path, await put(path, DEFINITION))).not.to.have.property('warnings')
    expect(await publish()).not.to.have.property('warnings')
    const restored = await described('POST', `${path}/rollback/1`, await post(`${path}/rollback/1`))
    expect(restored).not.to.have.property('warnings')
  })

  it('an entry of a memory may have any field', async () => {
    const { post, put } = await open()
    const path = `/flows/${newName()}`
    await put(path, DEFINITION)
    const entry = await post(`${path}/memory`, { content: { any: { field: [] } }, x: 1 })
    expect(ignoredBy(entry)).to.deep.equal(['/x'])
    await entry.text()
  })
})

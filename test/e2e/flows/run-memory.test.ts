import { expect } from 'chai'
import { DEFINITION, GOOD, lastOf, systemOf, useFlows } from '../../support/flows.ts'
import type { Received } from '../../support/model-server/model-server.ts'
import { inBothForms } from '../../support/product.ts'

type Entry = { id: string; scope: string; content: { input?: object; output?: unknown } | string }

const LEARNING = { ...DEFINITION, evolve: true }

inBothForms('the memory of flows', (startProduct, form) => {
  const bench = useFlows(startProduct, form)
  const { call, publish, run } = bench

  beforeEach(() => {
    bench.main.otherwise(() => GOOD)
    bench.main.requests.length = 0
  })

  const memory = (name: string, query = '') => `/flows/${name}/memory${query}`

  const entriesOf = async (name: string, scope: string) => {
    const { body } = await call('GET', memory(name, `?scope=${scope}`))
    return (body as { entries: Entry[] }).entries
  }

  const inputsOf = async (name: string) =>
    (await entriesOf(name, 'evolve')).map(({ content }) => (content as { input: { text: string } }).input.text)

  const runWith = (name: string, text: string) => run(name, { input: { text } })

  it('api.md Flow definition: confirmed outputs are precedents, once each, and the next run sees them', async () => {
    const name = await publish(LEARNING)
    for (const text of ['one', 'two', 'one']) await runWith(name, text)
    expect(await inputsOf(name)).to.deep.equal(['two', 'one'])
    bench.main.answer('{"answer":"no"}')
    await runWith(name, 'one')
    expect(await entriesOf(name, 'evolve')).to.have.length(3)
    const system = systemOf(bench.main.requests.at(-1) as Received)
    expect(system).to.include('{"input":{"text":"two"},"output":{"answer":"yes"}}')
    expect(system.split('"text":"one"')).to.have.length(2)
  })

  // What a cluster adds is shown above.
  if (form === 'cluster') return

  it('D6.7: corrections are added, reach the next run of their flow only, and are removed one by one or all', async () => {
    const [name, other] = [await publish(DEFINITION), await publish(DEFINITION)]
    const contents = ['Use euros.', { field: 'total', currency: 'EUR' }, 'Never round.']
    const added: Entry[] = []
    for (const content of contents) {
      const { status, body } = await call('POST', memory(name), { content })
      expect(status).to.equal(201)
      added.push(body as Entry)
    }
    expect(added.map(({ scope }) => scope)).to.deep.equal(['corrections', 'corrections', 'corrections'])
    expect(await entriesOf(name, 'corrections')).to.deep.equal(added.toReversed())

    await run(name)
    await run(other)
    const [own, foreign] = bench.main.requests as [Received, Received]
    for (const content of contents) expect(systemOf(own)).to.include(JSON.stringify(content))
    expect(systemOf(foreign)).not.to.include('euros')
    expect(lastOf(own)).not.to.include('euros')

    const entry = added[0]?.id
    expect((await call('DELETE', memory(other, `?entry_id=${entry}`))).status).to.equal(404)
    expect((await call('DELETE', memory(name, `?entry_id=${entry}`))).body).to.deep.equal({
      status: 'deleted',
      count: 1,
    })
    expect((await call('DELETE', memory(name, `?entry_id=${entry}`))).status).to.equal(404)
    expect((await call('DELETE', memory(name))).body).to.deep.equal({ status: 'deleted', count: 2 })
    await run(name)
    expect(systemOf(bench.main.requests.at(-1) as Received)).not.to.include('<flow_memory>')
  })
})

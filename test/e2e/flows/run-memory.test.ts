import { expect } from 'chai'
import { answerOf, DEFINITION, GOOD, lastOf, systemOf, useFlows } from '../../support/flows.ts'
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

  it('25 runs at the same time leave 20 precedents', async () => {
    const name = await publish(LEARNING)
    const texts = Array.from({ length: 25 }, (_, i) => `text ${i}`)
    await Promise.all(texts.map((text) => runWith(name, text)))
    expect(new Set(await inputsOf(name))).to.have.property('size', 20)
  })

  // What a cluster adds is shown above.
  if (form === 'cluster') return

  it('an invalid output, a failure, and a flow without evolve leave none', async () => {
    const learning = await publish(LEARNING)
    bench.main.otherwise(() => 'no JSON')
    expect(answerOf(await run(learning)).verdict).to.equal('invalid_output')
    bench.main.otherwise(() => ({ status: 401 }))
    expect((await run(learning)).status).to.equal(502)
    bench.main.otherwise(() => GOOD)
    const plain = await publish(DEFINITION)
    await run(plain)
    expect(await inputsOf(learning)).to.be.empty
    expect(await inputsOf(plain)).to.be.empty
  })

  it('a precedent that is too long for the store changes nothing for the caller', async () => {
    const name = await publish(LEARNING)
    expect(answerOf(await runWith(name, 'x'.repeat(70_000))).output).to.deep.equal({ answer: 'yes' })
    expect(await inputsOf(name)).to.be.empty
  })

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

  it('D6.7: a person may delete precedents, and nobody but the service writes them', async () => {
    const name = await publish(LEARNING)
    await run(name)
    const refused = await call('POST', memory(name, '?scope=evolve'), { content: 'x' })
    expect(refused.status).to.equal(400)
    expect(refused.body).to.have.nested.property('error.param', '/scope')
    expect((await call('DELETE', memory(name, '?scope=evolve'))).body).to.include({ count: 1 })
    expect(await inputsOf(name)).to.be.empty
  })

  for (const [what, query, body, param] of [
    ['no content', '', {}, '/content'],
    ['blank content', '', { content: ' \n' }, '/content'],
    ['an empty object', '', { content: {} }, '/content'],
    ['a number', '', { content: 5 }, '/content'],
    ['more than 8 KB', '', { content: 'x'.repeat(8_192) }, '/content'],
    ['a scope of another form', '?scope=a%20b', { content: 'a' }, '/scope'],
    ['an empty scope', '?scope=', { content: 'a' }, '/scope'],
    ['two scopes', '?scope=a&scope=b', { content: 'a' }, '/scope'],
  ] as const)
    it(`D6.7: ${what} is 400`, async () => {
      const { status, body: answer } = await call('POST', memory('summarize', query), body)
      expect(status).to.equal(400)
      expect(answer).to.have.nested.property('error.param', param)
    })
})

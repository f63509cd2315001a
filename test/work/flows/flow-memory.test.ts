import { expect } from 'chai'
import { type MemoryContent } from '../../../shared/work/flows/flow-memory.ts'
import { useTestStore } from '../../support/test-store.ts'
import { BODY, type Opened, OTHER, openLibrary, refusalOf, TENANT } from './setup.ts'

describe('the memory of a flow', () => {
  const opened = useTestStore()
  let { library, memory } = {} as Opened
  let names = 0
  let name = ''
  let uid = ''
  beforeEach(async () => {
    ;({ library, memory } = openLibrary(opened.store))
    name = `flow-${++names}`
    ;({ uid } = await library.put(TENANT, name, BODY))
  })
  const contentsOf = async (scope: string) =>
    (await memory.list(TENANT, name, { scope, limit: 200 })).entries.map(({ content }) => content)

  it('D6.7: an entry is stored in the scope corrections unless another one is named, and listed newest first', async () => {
    const first = await memory.add(TENANT, name, { content: 'The price is net.' })
    expect(first.id).to.match(/^mem_[0-9a-f]{32}$/)
    expect(first).to.have.all.keys('id', 'scope', 'content', 'created_at')
    const second = await memory.add(TENANT, name, { scope: 'corrections', content: { wrong: 1, right: [2] } })
    await memory.add(TENANT, name, { scope: 'style', content: 'short' })
    expect(await memory.list(TENANT, name, { limit: 50 })).to.deep.equal({
      entries: [second, first],
      next_cursor: null,
    })
    expect(await contentsOf('style')).to.deep.equal(['short'])
    expect(await contentsOf('empty')).to.deep.equal([])
  })

  it('a scope of another form is refused, whatever is done with it', async () => {
    const calls = (scope: string) => [
      memory.list(TENANT, name, { scope, limit: 5 }),
      memory.add(TENANT, name, { scope, content: 'x' }),
      memory.remove(TENANT, name, { scope }),
    ]
    for (const scope of ['', '-a', 'a b', 'x'.repeat(65)])
      for (const call of calls(scope)) expect(await refusalOf(call), scope).to.include({ status: 400, param: '/scope' })
  })

  it('a precedent has an id as any entry, and 64 KiB at most', async () => {
    const precedent = (bytes: number) => ({ input: { text: '' }, output: 'x'.repeat(bytes - 33) })
    expect(Buffer.byteLength(JSON.stringify(precedent(65_536)))).to.equal(65_536)
    expect(await memory.remember(TENANT, uid, precedent(65_536))).to.equal(true)
    expect(await memory.remember(TENANT, uid, precedent(65_537))).to.equal(false)
    const { entries } = await memory.list(TENANT, name, { scope: 'evolve', limit: 5 })
    expect(entries.map(({ id }) => /^mem_[0-9a-f]{32}$/.test(id))).to.deep.equal([true])
  })

  it('D2.7: pages of any size hold every entry of the scope once', async () => {
    for (let n = 1; n <= 5; n++) {
      await memory.add(TENANT, name, { content: `${n}` })
      await memory.add(TENANT, name, { scope: 'style', content: 'x' })
    }
    for (const limit of [1, 2, 5, 6]) {
      const seen: MemoryContent[] = []
      let cursor: string | undefined
      do {
        const page = await memory.list(TENANT, name, { limit, cursor })
        seen.push(...page.entries.map(({ content }) => content))
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
      expect(seen).to.deep.equal(['5', '4', '3', '2', '1'])
    }
    expect(await refusalOf(memory.list(TENANT, name, { limit: 1, cursor: '?' }))).to.include({ param: '/cursor' })
  })

  it('D6.7: wrong scopes and contents are 400 and store nothing; 8,192 bytes are allowed', async () => {
    for (const scope of ['', '.a', 'a b', 'ä', 'a/b', 'a'.repeat(65)])
      expect(await refusalOf(memory.add(TENANT, name, { scope, content: 'x' }))).to.include({ param: '/scope' })
    expect(await refusalOf(memory.add(TENANT, name, { scope: 'evolve', content: 'x' }))).to.include({ param: '/scope' })
    for (const content of ['', ' \n\t', {}, 'x'.repeat(8_191), { a: 'ä'.repeat(4_093) }])
      expect(await refusalOf(memory.add(TENANT, name, { content }))).to.include({ status: 400, param: '/content' })
    expect(await contentsOf('corrections')).to.deep.equal([])
    await memory.add(TENANT, name, { content: 'x'.repeat(8_190) })
    expect(await contentsOf('corrections')).to.have.length(1)
  })

  it('D6.7: one entry is deleted by its id, and without an id the scope', async () => {
    const { id } = await memory.add(TENANT, name, { content: 'a' })
    await memory.add(TENANT, name, { content: 'b' })
    await memory.add(TENANT, name, { scope: 'style', content: 'c' })
    for (const scope of ['style', 'evolve'])
      expect(await refusalOf(memory.remove(TENANT, name, { scope, entryId: id }))).to.include({ status: 404 })
    expect(await memory.remove(TENANT, name, { entryId: id })).to.equal(1)
    expect(await refusalOf(memory.remove(TENANT, name, { entryId: id }))).to.include({ status: 404 })
    expect(await memory.remove(TENANT, name, {})).to.equal(1)
    expect(await memory.remove(TENANT, name, {})).to.equal(0)
    expect(await contentsOf('style')).to.deep.equal(['c'])
  })

  it('a built-in flow has a memory for each tenant', async () => {
    await memory.add(TENANT, 'extract', { content: 'mine' })
    expect((await memory.list(TENANT, 'extract', { limit: 5 })).entries).to.have.length(1)
    expect((await memory.list(OTHER, 'extract', { limit: 5 })).entries).to.have.length(0)
    const builtIn = await library.get(TENANT, 'extract')
    expect(await memory.promptText(TENANT, builtIn.uid)).to.include('"mine"')
    expect(await memory.promptText(OTHER, builtIn.uid)).to.equal('')
  })

  it('api.md "Flow definition": the same precedent is stored once, whatever the order of its keys and whoever writes it', async () => {
    const processes = Array.from({ length: 3 }, () => openLibrary(opened.store).memory)
    const precedents = [
      { input: { a: 1, b: { c: 2, d: 3 } }, output: { x: [1, 2] } },
      { output: { x: [1, 2] }, input: { b: { d: 3, c: 2 }, a: 1 } },
    ]
    const remember = processes.flatMap((each) => precedents.map((one) => each.remember(TENANT, uid, one)))
    expect(await Promise.all(remember)).to.deep.equal(remember.map(() => true))
    expect(await contentsOf('evolve')).to.deep.equal([precedents[0]])
    await memory.remember(TENANT, uid, { input: { a: 1 }, output: { x: [2, 1] } })
    await memory.remember(TENANT, uid, { input: { a: 1 }, output: null })
    expect(await contentsOf('evolve')).to.have.length(3)
  })

  it('api.md "Limits": the newest 20 precedents stay, and their scope can be emptied', async () => {
    for (let n = 1; n <= 25; n++) await memory.remember(TENANT, uid, { input: { n }, output: n })
    const kept = Array.from({ length: 20 }, (_, i) => ({ input: { n: 25 - i }, output: 25 - i }))
    expect(await contentsOf('evolve')).to.deep.equal(kept)
    expect(await memory.remove(TENANT, name, { scope: 'evolve' })).to.equal(20)
    expect(await memory.remember(TENANT, uid, { input: { n: 25 }, output: 25 })).to.equal(true)
    expect(await contentsOf('evolve')).to.deep.equal(kept.slice(0, 1))
  })

  it('the text for {{.memory}} holds corrections and precedents, newest first, and no other scope', async () => {
    expect(await memory.promptText(TENANT, uid)).to.equal('')
    await memory.add(TENANT, name, { content: 'older' })
    await memory.add(TENANT, name, { content: 'newer' })
    await memory.add(TENANT, name, { scope: 'style', content: 'elsewhere' })
    await memory.remember(TENANT, uid, { input: { q: 1 }, output: { a: 2 } })
    const text = await memory.promptText(TENANT, uid)
    expect(text).to.match(/"newer"\n"older"\n.*\n\{"input":\{"q":1\},"output":\{"a":2\}\}/)
    expect(text).not.to.include('elsewhere')
    expect(await memory.promptText(OTHER, uid)).to.equal('')
  })
})

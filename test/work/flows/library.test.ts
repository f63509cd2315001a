// Tests library.ts and stored-flows.ts: flows from draft to deletion, and as they are read.

import { expect } from 'chai'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import type { TenantEvent } from '../../../shared/tenancy/events/port.ts'
import { type Around, aroundStore } from '../../support/around-store.ts'
import { useTestStore } from '../../support/test-store.ts'
import { BODY, type Opened, OTHER, openLibrary, refusalOf, TENANT } from './setup.ts'

const titled = (title: string, more: JsonObject = {}) => ({ ...BODY, system_prompt_template: title, ...more })

describe('the library of flows', () => {
  const opened = useTestStore()
  let { library, memory, flows } = {} as Opened
  let clock = Date.parse('2026-11-22T10:00:00Z')
  let names = 0
  let name = ''
  beforeEach(() => {
    ;({ library, memory, flows } = openLibrary(opened.store, { now: () => new Date((clock += 1_000)) }))
    name = `flow-${++names}`
  })

  it('D6.2: PUT stores a draft with its defaults, and ignores the version that it names', async () => {
    const flow = await library.put(TENANT, name, titled('one', { name, version: 41 }))
    expect(flow).to.include({ name, version: 1, state: 'draft', published_version: null, is_built_in: false })
    expect(flow.definition).to.deep.equal({ ...titled('one'), tools: [], sub_agents: [], evolve: false })
    expect(flow.created_at).to.equal(flow.updated_at)
    expect(await library.get(TENANT, name)).to.deep.equal(flow)
    const second = await library.put(TENANT, name, titled('two'))
    expect(second).to.include({ version: 2, created_at: flow.created_at })
    expect(second.updated_at > flow.updated_at).to.equal(true)
  })

  it('D16a: what changes a flow is told the tenant, each time with the version', async () => {
    const told: [tenant: string, type: string, data: JsonObject][] = []
    const events = { append: (tenant: string, { type, data }: TenantEvent) => void told.push([tenant, type, data]) }
    ;({ library } = openLibrary(opened.store, { events }))
    await library.put(TENANT, name, titled('one'))
    await library.publish(TENANT, name)
    await library.publish(TENANT, name)
    await library.rollback(TENANT, name, 1)
    await library.remove(TENANT, name)
    const of = (flow_version: number, change: string) => [TENANT, 'flow.changed', { flow: name, flow_version, change }]
    expect(told).to.deep.equal([of(1, 'saved'), of(1, 'published'), of(2, 'saved'), of(2, 'deleted')])
  })

  it('D6.3: a refusal to publish tells the first problem and how many more there are, those that are not listed too', async () => {
    const refusal = async (count: number) => {
      const tools = Array.from({ length: count }, (_, i) => `Unknown${i}`)
      await library.put(TENANT, name, { ...BODY, tools })
      const { message, problems } = await refusalOf(library.publish(TENANT, name))
      expect(message).to.match(/^flow-\d+ cannot be published: .*Unknown0/)
      return [/; \d+ more in problems.*/.exec(message)?.[0], problems?.length]
    }
    expect((await refusal(1))[0]).to.equal(undefined)
    expect(await refusal(3)).to.deep.equal(['; 2 more in problems', 3])
    expect(await refusal(20)).to.deep.equal(['; 19 more in problems', 20])
    expect((await refusal(25))[0]).to.equal('; 19 more in problems, and 5 further ones that are not listed')
  })

  it('D26.3: a rollback can publish in one step, and stores nothing that does not compile', async () => {
    await library.put(TENANT, name, { ...BODY, tools: ['Unknown'] })
    await library.put(TENANT, name, titled('good'))
    await library.publish(TENANT, name)
    await library.put(TENANT, name, titled('bad'), { keeps_published: true })
    const rolled = await library.rollback(TENANT, name, 2, { publishes: true })
    expect(rolled).to.deep.include({ version: 4, state: 'published', published_version: 4 })
    expect(rolled.definition).to.deep.equal(await library.definitionOf(TENANT, { ...rolled, version: 2 }))
    expect(await refusalOf(library.rollback(TENANT, name, 1, { publishes: true }))).to.include({
      kind: 'invalid_request',
      param: '/tools/0',
    })
    expect(await library.get(TENANT, name)).to.deep.equal(rolled)
  })

  it('D6.1: the name tools and names of another form are 400, built-in flows are 403', async () => {
    for (const wrong of [
      'tools',
      '',
      'Upper',
      '-a',
      '_a',
      'a.b',
      'a b',
      'ä',
      'a\0',
      'a'.repeat(65),
      '../a',
      '__proto__',
    ])
      expect(await refusalOf(library.put(TENANT, wrong, BODY)), wrong).to.include({ status: 400, param: '/name' })
    expect(await library.put(TENANT, 'a'.repeat(64), BODY)).to.include({ version: 1 })
    for (const builtIn of ['summarize', 'classify', 'extract']) {
      const calls = [
        library.put(TENANT, builtIn, BODY),
        library.remove(TENANT, builtIn),
        library.rollback(TENANT, builtIn, 1),
      ]
      for (const call of calls) expect(await refusalOf(call)).to.include({ status: 403, kind: 'permission' })
    }
  })

  it('a body with another name, or a wrong definition, is 400 and stores nothing', async () => {
    expect(await refusalOf(library.put(TENANT, name, { ...BODY, name: 'x' }))).to.include({
      status: 400,
      param: '/name',
    })
    expect(await refusalOf(library.put(TENANT, name, { ...BODY, tools: 1 }))).to.include({
      status: 400,
      param: '/tools',
    })
    expect(await refusalOf(library.get(TENANT, name))).to.include({ status: 404 })
  })

  it('api.md "Flow": an unknown flow, and one of another tenant, are the same 404 everywhere', async () => {
    const flow = await library.put(OTHER, name, BODY)
    await library.publish(OTHER, name)
    const calls = (which: string) => [
      library.get(TENANT, which),
      library.published(TENANT, which),
      library.publish(TENANT, which),
      library.rollback(TENANT, which, 1),
      library.revisions(TENANT, which),
      library.remove(TENANT, which),
      memory.list(TENANT, which, { limit: 5 }),
    ]
    const foreign = await Promise.all(calls(name).map(refusalOf))
    const unknown = await Promise.all(calls('unknown').map(refusalOf))
    for (const [i, { kind, message }] of foreign.entries()) {
      expect(kind).to.equal('not_found')
      expect(message.replaceAll(name, 'unknown')).to.equal(unknown[i]?.message)
    }
    for (const call of calls('a\0b')) expect(await refusalOf(call)).to.include({ kind: 'not_found' })
    expect(await library.definitionOf(TENANT, flow)).to.equal(undefined)
    expect((await library.get(OTHER, name)).state).to.equal('published')
  })

  it('api.md "Flow": only a published flow may run; a draft is the same 404 as no flow', async () => {
    await library.put(TENANT, name, BODY)
    const draft = await refusalOf(library.published(TENANT, name))
    const flow = await library.publish(TENANT, name)
    expect(flow).to.include({ version: 1, state: 'published', published_version: 1 })
    expect(await library.published(TENANT, name)).to.deep.equal(flow)
    await library.remove(TENANT, name)
    expect((await refusalOf(library.published(TENANT, name))).message).to.equal(draft.message)
    await library.put(TENANT, name, BODY)
    await library.publish(TENANT, name)
  })

  it('D26.3: a draft hides the published version, and the 404 of a run names both versions and what to do', async () => {
    await library.put(TENANT, name, BODY)
    await library.publish(TENANT, name)
    await library.put(TENANT, name, titled('edited'))
    const { kind, message } = await refusalOf(library.published(TENANT, name))
    expect(kind).to.equal('not_found')
    expect(message)
      .to.include(`version 1 of ${name} is published, but the draft 2 hides it`)
      .and.to.include(`POST /flows/${name}/publish`)
      .and.to.include('"version": 1')
      .and.to.include('keep_published=true')
  })

  it('D26.3: a draft that keeps the published version is stored beside it, over further drafts, until one is published', async () => {
    const keep = { keeps_published: true as const }
    const draft = await library.put(TENANT, name, titled('one'), keep)
    expect(draft).to.include({ state: 'draft', published_version: null }).and.not.to.have.property('kept_version')
    await library.publish(TENANT, name)
    expect(await library.put(TENANT, name, titled('two'), keep)).to.include({
      version: 2,
      state: 'draft',
      kept_version: 1,
    })
    await library.rollback(TENANT, name, 2, keep)
    const runs = await library.published(TENANT, name)
    expect(runs).to.include({ name, version: 1 })
    expect(runs.definition.system_prompt_template).to.equal('one')
    expect(await library.publish(TENANT, name))
      .to.include({ version: 3 })
      .and.not.to.have.property('kept_version')
    expect(await library.published(TENANT, name)).to.include({ version: 3 })
    await library.put(TENANT, name, titled('four'), keep)
    expect(await library.put(TENANT, name, titled('five'))).not.to.have.property('kept_version')
    expect(await refusalOf(library.published(TENANT, name))).to.include({ kind: 'not_found' })
    await library.put(TENANT, name, titled('six'), keep)
    expect(await refusalOf(library.published(TENANT, name))).to.include({ kind: 'not_found' })
  })

  it('D26.4: every version that was published once can be run, and no other', async () => {
    for (const title of ['one', 'two', 'three', 'four']) {
      await library.put(TENANT, name, titled(title))
      if (title !== 'two') await library.publish(TENANT, name)
    }
    await library.put(TENANT, name, titled('five'))
    for (const [version, title] of [
      [1, 'one'],
      [3, 'three'],
      [4, 'four'],
    ] as const) {
      const runs = await library.published(TENANT, name, version)
      expect([runs.version, runs.definition.system_prompt_template]).to.deep.equal([version, title])
    }
    for (const version of [2, 5, 6]) {
      const { kind, message } = await refusalOf(library.published(TENANT, name, version))
      expect(kind).to.equal('not_found')
      expect(message).to.include(`version ${version} of ${name} was never published`).and.to.include('/revisions')
    }
    const revisions = await library.revisions(TENANT, name)
    expect(revisions.map(({ version, was_published }) => [version, was_published])).to.deep.equal([
      [5, false],
      [4, true],
      [3, true],
      [2, false],
      [1, true],
    ])
    expect(await library.published(TENANT, 'summarize', 1)).to.include({ version: 1 })
    expect(await refusalOf(library.published(TENANT, 'summarize', 2))).to.include({ kind: 'not_found' })
    expect(await refusalOf(library.published(TENANT, 'unknown', 1))).to.include({ kind: 'not_found' })
  })

  it('api.md "Flow": rollback saves an earlier definition as a new draft and rewrites no history', async () => {
    for (const title of ['one', 'two', 'three']) await library.put(TENANT, name, titled(title))
    await library.publish(TENANT, name)
    const flow = await library.rollback(TENANT, name, 1)
    expect(flow).to.include({ version: 4, state: 'draft', published_version: 3 })
    expect(flow.definition.system_prompt_template).to.equal('one')
    const revisions = await library.revisions(TENANT, name)
    expect(revisions[0]).to.have.all.keys('version', 'definition', 'created_at', 'was_published')
    const titles = revisions.map(({ version, definition }) => [version, definition.system_prompt_template])
    expect(titles).to.deep.equal([
      [4, 'one'],
      [3, 'three'],
      [2, 'two'],
      [1, 'one'],
    ])
    for (const unknown of [5, 0, -1, 1.5])
      expect(await refusalOf(library.rollback(TENANT, name, unknown))).to.include({ status: 404 })
  })

  it('a version whose writer died before it counted is no target of a rollback', async () => {
    await library.put(TENANT, name, titled('one'))
    const dying: Around = async (method, act) => {
      if (method === 'replaceIfVersion') throw new Error('the process has died')
      return act()
    }
    const dead = openLibrary(aroundStore(opened.store, dying)).library
    await dead.put(TENANT, name, titled('two')).catch(() => {})
    expect(await refusalOf(library.rollback(TENANT, name, 2))).to.include({ status: 404 })
    expect(await library.get(TENANT, name)).to.include({ version: 1 })
  })

  it('api.md "Flow": DELETE removes the flow with its revisions and its memory', async () => {
    const former = await library.put(TENANT, name, BODY)
    await memory.add(TENANT, name, { content: 'remember' })
    await library.remove(TENANT, name)
    expect(await refusalOf(library.remove(TENANT, name))).to.include({ status: 404 })
    const fresh = openLibrary(opened.store).library
    expect(await fresh.definitionOf(TENANT, former)).to.equal(undefined)
    const next = await library.put(TENANT, name, titled('new'))
    expect(next.version).to.equal(1)
    expect(await library.revisions(TENANT, name)).to.have.length(1)
    expect((await memory.list(TENANT, name, { limit: 5 })).entries).to.deep.equal([])
    expect(await memory.promptText(TENANT, former.uid)).to.equal('')
  })

  it('a built-in flow has one revision and a definition, the same for every tenant', async () => {
    const flow = await library.get(TENANT, 'summarize')
    expect(await library.published(OTHER, 'summarize')).to.equal(flow)
    expect(await library.definitionOf(TENANT, flow)).to.equal(flow.definition)
    expect(await library.definitionOf(TENANT, { ...flow, version: 2 })).to.equal(undefined)
    const { definition, created_at } = flow
    expect(await library.revisions(TENANT, 'summarize')).to.deep.equal([
      { version: 1, definition, created_at, was_published: true },
    ])
  })

  it('a definition is read from the store once, and is the same object for each run', async () => {
    const { version, uid } = await library.put(TENANT, name, BODY)
    const first = await library.definitionOf(TENANT, { uid, version })
    expect(first).to.deep.equal({ ...BODY, tools: [], sub_agents: [], evolve: false })
    expect(await library.definitionOf(TENANT, { uid, version })).to.equal(first)
    expect((await library.get(TENANT, name)).definition).to.equal(first)
  })

  it('D2.7: the list holds stored and built-in flows by name, without definitions, in pages of any size', async () => {
    const tenant = 't_list' as typeof TENANT
    for (const each of ['zebra', 'apple', 'dog', 'eel', 'b']) await library.put(tenant, each, BODY)
    // Stored before a later release made it a built-in one.
    await flows.save(tenant, 'extract', { definition: (await library.get(tenant, 'dog')).definition })
    const expected = ['apple', 'b', 'classify', 'dog', 'eel', 'extract', 'summarize', 'zebra']
    for (const limit of [1, 2, 3, 7, 8, 50]) {
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await library.list(tenant, { limit, cursor })
        expect(page.flows.length).to.be.within(1, limit)
        seen.push(...page.flows.map((flow) => flow.name))
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
      expect(seen).to.deep.equal(expected)
    }
    const { flows: list } = await library.list(tenant, { limit: 3 })
    expect(list.map(({ is_built_in: builtIn }) => builtIn)).to.deep.equal([false, false, true])
    for (const flow of list) expect(flow).not.to.have.any.keys('definition', 'evaluation')
    expect(await refusalOf(library.list(tenant, { limit: 3, cursor: 'x' }))).to.include({ param: '/cursor' })
  })

  it('putIfChanged makes a version only when the definition differs from the newest one', async () => {
    expect(await library.putIfChanged(TENANT, name, titled('one'))).to.include({ version: 1, state: 'draft' })
    await library.publish(TENANT, name)
    expect(await library.putIfChanged(TENANT, name, titled('one'))).to.include({ version: 1, state: 'published' })
    expect(await library.putIfChanged(TENANT, name, titled('two'))).to.include({ version: 2, state: 'draft' })
    expect(await library.putIfChanged(TENANT, name, titled('one'))).to.include({ version: 3, state: 'draft' })
  })
})

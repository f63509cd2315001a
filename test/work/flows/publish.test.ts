import { expect } from 'chai'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import type { FlowHead } from '../../../shared/work/flows/store/flow-head.ts'
import { aroundStore } from '../../support/around-store.ts'
import { useTestStore } from '../../support/test-store.ts'
import { BODY, type Opened, OTHER, openLibrary, refusalOf, TENANT } from './setup.ts'

const titled = (title: string, more: JsonObject = {}) => ({ ...BODY, system_prompt_template: title, ...more })

describe('publishing a flow', () => {
  const opened = useTestStore()
  let { library, compiled, flows } = {} as Opened
  let clock = Date.parse('2026-11-22T10:00:00Z')
  let names = 0
  let name = ''
  beforeEach(() => {
    ;({ library, compiled, flows } = openLibrary(opened.store, { now: () => new Date((clock += 1_000)) }))
    name = `flow-${++names}`
  })

  it('a definition that does not compile is not published: 400 names the place', async () => {
    await library.put(TENANT, name, titled('{{.nothing}}'))
    const refusal = await refusalOf(library.publish(TENANT, name))
    expect(refusal).to.include({ status: 400, param: '/system_prompt_template' })
    expect(refusal.message).to.include('{{.nothing}}').and.include(name)
    expect((await library.get(TENANT, name)).state).to.equal('draft')
  })

  it('publishing a published flow, or a built-in one, changes nothing', async () => {
    await library.put(TENANT, name, BODY)
    const flow = await library.publish(TENANT, name)
    expect(await library.publish(TENANT, name)).to.deep.equal(flow)
    expect(await library.publish(TENANT, 'extract')).to.deep.equal(await library.get(OTHER, 'extract'))
    expect(compiled).to.have.length(1)
  })

  it('a flow that is changed while it is published is not published: exactly what was compiled is, or nothing', async () => {
    await library.put(TENANT, name, titled('compiled'))
    let isChanged = false
    const slow = openLibrary(
      aroundStore(opened.store, async (method, act) => {
        if (method === 'replaceIfVersion' && !isChanged) {
          isChanged = true
          await library.put(TENANT, name, titled('{{.broken}}'))
        }
        return act()
      }),
    )
    expect(await refusalOf(slow.library.publish(TENANT, name))).to.include({ status: 409 })
    expect(await library.get(TENANT, name)).to.include({ version: 2, state: 'draft', published_version: null })
  })

  it('publishing, saving, and rolling back at the same time keep history, and never publish what does not compile', async () => {
    await library.put(TENANT, name, titled('good'))
    const processes = Array.from({ length: 3 }, () => openLibrary(opened.store).library)
    const act = async (each: typeof library, n: number) => {
      if (n % 4 === 0) return each.publish(TENANT, name)
      if (n % 4 === 1) return each.rollback(TENANT, name, 1)
      return each.put(TENANT, name, titled(n % 4 === 2 ? 'good' : '{{.broken}}'))
    }
    const calls = Array.from({ length: 48 }, (_, n) => act(processes[n % 3] ?? library, n))
    const results = await Promise.allSettled(calls)
    const done = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    const saved = done.filter(({ state }) => state === 'draft')
    expect(saved).to.have.length(36)
    const flow = await library.get(TENANT, name)
    expect(flow.version).to.equal(37)
    expect(saved.map(({ version }) => version).sort((a, b) => a - b)).to.deep.equal(
      Array.from({ length: 36 }, (_, i) => i + 2),
    )
    for (const each of done) {
      expect(await library.definitionOf(TENANT, each)).to.deep.equal(each.definition)
      if (each.state === 'published') expect(each.definition.system_prompt_template).to.equal('good')
    }
  })

  it('publishing with a required pass rate needs an evaluation of exactly this version that reaches it', async () => {
    const publish = () => library.publish(TENANT, name, { requirePassRate: 0.8 })
    const evaluated = (flow: Pick<FlowHead, 'uid' | 'version'>, rate: number) =>
      library.saveEvaluation(TENANT, flow, { pass_rate: rate, runs: 5 })
    const first = await library.put(TENANT, name, BODY)
    expect((await refusalOf(publish())).message).to.include(`POST /flows/${name}/evaluate`)
    await evaluated(first, 0.79)
    const low = await refusalOf(publish())
    expect(low).to.include({ status: 409 })
    expect(low.message).to.include('0.79').and.include('0.8')
    await evaluated(first, 0.8)
    const second = await library.put(TENANT, name, titled('two'))
    expect(await refusalOf(publish())).to.include({ status: 409 })
    await evaluated(first, 1)
    expect(await refusalOf(publish())).to.include({ status: 409 })
    await evaluated(second, 0.8)
    expect((await flows.head(TENANT, name))?.evaluation).to.include({ pass_rate: 0.8, runs: 5 })
    expect(await publish())
      .to.include({ version: 2, state: 'published' })
      .and.not.have.property('evaluation')
  })
})

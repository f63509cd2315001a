import { expect } from 'chai'
import fc from 'fast-check'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { FlowDefinition } from '../../../shared/work/flows/port.ts'
import type { FlowHead } from '../../../shared/work/flows/store/flow-head.ts'
import { FLOW_REVISIONS, FlowStore } from '../../../shared/work/flows/store/flows.ts'
import { type Around, aroundStore } from '../../support/around-store.ts'
import { useTestStore } from '../../support/test-store.ts'
import { BODY, openLibrary, refusalOf, TENANT } from './setup.ts'

type Action = 'put' | 'keep' | 'publish' | 'rollback' | 'remove'
/** `texts` holds those of all versions, `once` the versions that were published. */
type Model = {
  version: number
  state: string
  published: number | null
  served: number | null
  texts: string[]
  once: number[]
}

const ACTIONS = fc.constantFrom<Action>('put', 'keep', 'publish', 'rollback', 'remove')

describe('the life of a flow', () => {
  const opened = useTestStore()
  let names = 0

  it('api.md "Flow": any sequence of actions leads through the states as the specification says', async () => {
    const step = fc.record({ action: ACTIONS, target: fc.integer({ min: 0, max: 6 }) })
    const property = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { library } = openLibrary(opened.store)
      const name = `model-${++names}`
      let model: Model | undefined
      for (const [n, { action, target }] of steps.entries()) {
        const text = `text ${n}`
        const expected = next(model, { action, target, text })
        if (expected === 'refused')
          expect(await refusalOf(act(library, name, { action, target, text }))).to.include({ status: 404 })
        else {
          await act(library, name, { action, target, text })
          model = expected
        }
        await expectModel(library, name, model)
      }
    })
    await fc.assert(property, { numRuns: 60 })
  })

  it('whatever the order in which the writes of several processes reach the store, no version is lost, doubled or resurrected', async () => {
    const actions = fc.array(fc.tuple(fc.nat(2), ACTIONS), { minLength: 2, maxLength: 9 })
    const choices = fc.infiniteStream(fc.nat(11))
    const property = fc.asyncProperty(actions, choices, async (list, chosen) => {
      const name = `race-${++names}`
      const plain = new FlowStore(opened.store)
      const first = await save(plain, name, 'first')
      const { around, runAll } = createInterleaver(chosen)
      const processes = Array.from({ length: 3 }, () => new FlowStore(aroundStore(opened.store, around)))
      const results = list.map(async ([which, action], n) => {
        const by = processes[which] ?? plain
        if (action === 'remove') return { removed: await by.remove(TENANT, name) }
        if (action === 'publish') return { published: await by.publish(TENANT, first) }
        return { saved: await save(by, name, `${n}`, action === 'rollback' ? first.uid : undefined) }
      })
      await expectHistory(plain, name, await runAll(Promise.all(results)), first)
      await plain.remove(TENANT, name)
    })
    await fc.assert(property, { numRuns: 300 })
  })

  const definitionOf = (title: string): FlowDefinition => ({
    ...BODY,
    input_schema: { type: 'object', title },
    tools: [],
    sub_agents: [],
    evolve: false,
  })

  async function save(by: FlowStore, name: string, title: string, uid?: string): Promise<FlowHead> {
    const saving = by.save(TENANT, name, { definition: definitionOf(title), ...(uid !== undefined && { uid }) })
    const head = await saving.catch((cause: unknown) => {
      if (cause instanceof AppError && cause.kind === 'conflict') return GONE
      throw cause
    })
    return head ?? GONE
  }

  type Result = { saved?: FlowHead; removed?: FlowHead | undefined; published?: FlowHead | undefined }

  async function expectHistory(
    flows: FlowStore,
    name: string,
    results: readonly Result[],
    first: FlowHead,
  ): Promise<void> {
    const saved = [first, ...results.flatMap(({ saved: head }) => (head && head !== GONE ? [head] : []))]
    const removed = results.flatMap(({ removed: head }) => head?.uid ?? [])
    expect(new Set(removed).size, 'each flow is removed once').to.equal(removed.length)
    const versions = saved.map(({ uid, version }) => `${uid} ${version}`)
    expect(new Set(versions).size, 'each version is saved once').to.equal(versions.length)
    const head = await flows.head(TENANT, name)
    for (const uid of new Set(saved.map((each) => each.uid))) {
      const page = await opened.store.collection(FLOW_REVISIONS).page(TENANT, { where: { uid }, limit: 100 })
      const isLeft = head?.uid === uid
      expect(isLeft, 'a flow is either there or removed').to.equal(!removed.includes(uid))
      const count = isLeft ? saved.filter((each) => each.uid === uid).length : 0
      if (isLeft) expect(head.version).to.equal(count)
      expect(page.map(({ doc }) => doc['revision'])).to.deep.equal(Array.from({ length: count }, (_, i) => count - i))
    }
  }
})

/** Holds back every operation of a store, and lets one at a time happen: the one that the next number chooses. */
function createInterleaver(chosen: Iterator<number>) {
  const waiting: (() => Promise<unknown>)[] = []
  const around: Around = (_method, operation) =>
    new Promise((resolve, reject) => waiting.push(() => operation().then(resolve, reject)))
  return {
    around,
    async runAll<T>(all: Promise<T>): Promise<T> {
      const over = new AbortController()
      const ended = all.finally(() => over.abort())
      ended.catch(() => {}) // The caller gets the error below.
      while (!over.signal.aborted) {
        await new Promise(setImmediate) // Everybody goes on to the next operation.
        const which = Number(chosen.next().value) % Math.max(1, waiting.length)
        await waiting.splice(which, 1)[0]?.()
      }
      return ended
    },
  }
}

/** Stands for a save that was refused because the flow is gone. */
const GONE = { uid: '', version: 0 } as FlowHead

type Step = { action: Action; target: number; text: string }
type Library = ReturnType<typeof openLibrary>['library']

function act(library: Library, name: string, { action, target, text }: Step): Promise<unknown> {
  const body = { ...BODY, system_prompt_template: text }
  if (action === 'put') return library.put(TENANT, name, body)
  if (action === 'keep') return library.put(TENANT, name, body, { keeps_published: true })
  if (action === 'publish') return library.publish(TENANT, name)
  return action === 'rollback' ? library.rollback(TENANT, name, target) : library.remove(TENANT, name)
}

/** The specification's table of states. */
function next(model: Model | undefined, { action, target, text }: Step): Model | undefined | 'refused' {
  if (action === 'put') return draft(model ?? NONE, text)
  if (action === 'keep') return { ...draft(model ?? NONE, text), served: model?.served ?? null }
  if (!model) return 'refused'
  const { version } = model
  if (action === 'publish') {
    const once = [...new Set([...model.once, version])]
    return { ...model, state: 'published', published: version, served: version, once }
  }
  if (action === 'remove') return undefined
  const old = model.texts[target - 1]
  return old === undefined ? 'refused' : draft(model, old)
}

const NONE: Model = { version: 0, state: '', published: null, served: null, texts: [], once: [] }

const draft = (model: Model, text: string): Model => ({
  ...model,
  version: model.version + 1,
  state: 'draft',
  served: null,
  texts: [...model.texts, text],
})

async function expectModel(library: Library, name: string, model: Model | undefined): Promise<void> {
  if (!model) {
    expect(await refusalOf(library.get(TENANT, name))).to.include({ status: 404 })
    return
  }
  const { version, state, published_version: published, definition } = await library.get(TENANT, name)
  const revisions = (await library.revisions(TENANT, name)).toReversed()
  const texts = revisions.map((each) => each.definition.system_prompt_template)
  const once = revisions.filter((each) => each.was_published).map((each) => each.version)
  expect(definition.system_prompt_template).to.equal(model.texts.at(-1))
  const served = await library.published(TENANT, name).then(
    (flow) => flow.version,
    () => null,
  )
  expect({ version, state, published, served, texts, once }).to.deep.equal(model)
}

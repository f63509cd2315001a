import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { FLOW_REVISIONS, FLOWS, FlowStore } from '../../shared/work/flows/store/flows.ts'
import { aroundStore } from '../support/around-store.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import { flowCrashContract } from './flow-crashes.ts'
import { flowMemoryContract } from './flow-memory.ts'
import { countDown, createFlowWriter, definition, TENANT } from './flow-writer.ts'
import type { OpenStore } from './store.ts'

const OTHER = tenantId('t_2')

/** The tests of flows and their memory, which every store passes. */
export function flowContract(open: OpenStore): void {
  let flows: FlowStore
  const { newName, save, create, versionsOf, storedRevisions } = createFlowWriter('flow', () => store)
  const store = useOpened(() => open(COLLECTIONS))
  before(async () => {
    flows = new FlowStore(store)
  })

  it('api.md "Flow": every save makes the next version, a draft, and keeps a snapshot of the definition', async () => {
    const name = newName()
    const first = await create(name)
    expect(first).to.include({ name, version: 1, state: 'draft', published_version: null })
    expect(first.uid).to.match(/^flow_[0-9a-f]{32}$/)
    await flows.publish(TENANT, first)
    const second = await save(name, 'v2')
    expect(second).to.include({ uid: first.uid, version: 2, state: 'draft', published_version: 1 })
    expect(second?.created_at).to.equal(first.created_at)
    expect(await flows.head(TENANT, name)).to.deep.equal(second)
    expect((await flows.revision(TENANT, first))?.definition).to.deep.equal(definition('v1'))
    const revisions = await flows.revisions(TENANT, { uid: first.uid, version: 2 })
    expect(revisions.map(({ definition: { input_schema: schema } }) => schema['title'])).to.deep.equal(['v2', 'v1'])
  })

  it('a flow, its revisions and its evaluation belong to their tenant', async () => {
    const name = newName()
    const mine = await create(name)
    expect(await flows.head(OTHER, name)).to.equal(undefined)
    expect(await flows.revision(OTHER, mine)).to.equal(undefined)
    expect(await flows.revisions(OTHER, mine)).to.deep.equal([])
    expect(await flows.publish(OTHER, mine)).to.equal(undefined)
    expect(await flows.saveEvaluation(OTHER, mine, { pass_rate: 1, runs: 1, evaluated_at: '' })).to.equal(false)
    expect(await flows.remove(OTHER, name)).to.equal(undefined)
    expect(await flows.save(OTHER, name, { definition: definition('x'), uid: mine.uid })).to.equal(undefined)
    expect(await flows.head(TENANT, name)).to.deep.equal(mine)
  })

  it('api.md "Limits": the 50 newest revisions are listed, newest first, and older ones can still be read', async () => {
    const head = await create(newName(), 53)
    expect(await versionsOf(head)).to.deep.equal(countDown(53).slice(0, 50))
    expect((await flows.revision(TENANT, { uid: head.uid, version: 1 }))?.definition).to.deep.equal(definition('v1'))
  })

  it('a head that was read for a run serves further ones, and none in any process after a change was acknowledged', async () => {
    const reads: string[] = []
    const recording = aroundStore(store, (method, act) => {
      reads.push(method)
      return act()
    })
    const name = newName()
    const draft = await create(name)
    const [gateway, other] = [new FlowStore(recording, { headMs: 300 }), new FlowStore(store, { headMs: 300 })]
    const read = () => gateway.recentHead(TENANT, name)
    expect(await read()).to.deep.equal(draft)
    expect(await read()).to.deep.equal(draft)
    expect(reads).to.have.length(1)
    const published = await changed(() => other.publish(TENANT, draft), read)
    expect(await read()).to.deep.equal(published)
    const saved = await changed(() => other.save(TENANT, name, { definition: definition('v2') }), read)
    expect(await read()).to.deep.equal(saved)
    await changed(() => other.remove(TENANT, name), read)
    expect(await read()).to.equal(undefined)
  })

  it('the list of very long revisions ends early', async () => {
    const name = newName()
    for (let n = 0; n < 25; n++) await save(name, 'x'.repeat(900_000))
    const head = await save(name, 'short')
    expect(await versionsOf(head ?? expect.fail())).to.deep.equal(countDown(26).slice(0, 10))
  })

  it('50 concurrent writers of several processes make the versions 1 to 50, each with its own definition', async () => {
    const name = newName()
    const processes = Array.from({ length: 4 }, () => new FlowStore(store))
    const saved = await Promise.all(
      Array.from({ length: 50 }, (_, n) => save(name, `writer ${n}`, {}, processes[n % 4] ?? flows)),
    )
    const uids = new Set(saved.map((head) => head?.uid))
    expect(uids.size).to.equal(1)
    expect(saved.map((head) => head?.version ?? 0).sort((a, b) => a - b)).to.deep.equal(countDown(50).reverse())
    const head = (await flows.head(TENANT, name)) ?? expect.fail()
    expect(head).to.include({ version: 50, state: 'draft' })
    expect(await storedRevisions(head.uid)).to.deep.equal(countDown(50))
    for (const [n, result] of saved.entries()) {
      const revision = await flows.revision(TENANT, { uid: head.uid, version: result?.version ?? 0 })
      expect(revision?.definition).to.deep.equal(definition(`writer ${n}`))
    }
  })

  it('processes that create the same flow at once leave the revisions of one flow only', async () => {
    const name = newName()
    const uids = new Set<string>()
    const all = Promise.withResolvers<void>()
    const recording = aroundStore(store, async (method, act, args) => {
      if (method === 'insert') uids.add((args[1] as { uid: string }).uid)
      if (uids.size === 4) all.resolve() // Each has seen that there is no such flow.
      if (method === 'insert') await all.promise
      return act()
    })
    const processes = Array.from({ length: 4 }, () => new FlowStore(recording))
    await Promise.all(processes.map((each) => save(name, 'x', {}, each)))
    const head = (await flows.head(TENANT, name)) ?? expect.fail()
    for (const uid of uids) expect(await storedRevisions(uid)).to.deep.equal(uid === head.uid ? countDown(4) : [])
  })

  it('writers of several processes that load the same definition make one version', async () => {
    const name = newName()
    const processes = Array.from({ length: 4 }, () => new FlowStore(store))
    const load = (title: string) =>
      Promise.all(processes.map((each) => save(name, title, { isUnchangedKept: true }, each)))
    expect((await load('one')).map((head) => head?.version)).to.deep.equal([1, 1, 1, 1])
    expect((await load('two')).map((head) => head?.version)).to.deep.equal([2, 2, 2, 2])
  })

  it('a flow that was deleted and created again starts at version 1 with nothing of the former one', async () => {
    const name = newName()
    const former = await create(name, 25)
    expect(await flows.remove(TENANT, name)).to.deep.equal(former)
    expect(await flows.head(TENANT, name)).to.equal(undefined)
    expect(await storedRevisions(former.uid)).to.deep.equal([])
    expect(await flows.remove(TENANT, name)).to.equal(undefined)
    expect(await save(name, 'x', { uid: former.uid })).to.equal(undefined)
    const next = await create(name)
    expect(next.version).to.equal(1)
    expect(next.uid).not.to.equal(former.uid)
    expect(await flows.publish(TENANT, former)).to.equal(undefined)
    expect(await flows.publish(TENANT, { uid: former.uid, version: 1 })).to.equal(undefined)
    expect(await versionsOf(next)).to.deep.equal([1])
  })

  it('only the newest version can be published and evaluated, and an evaluation is lost with the next version', async () => {
    const name = newName()
    const first = await create(name)
    const evaluation = { pass_rate: 0.5, runs: 4, evaluated_at: '2026-11-22T10:00:00.000Z' }
    expect(await flows.saveEvaluation(TENANT, first, evaluation)).to.equal(true)
    expect((await flows.head(TENANT, name))?.evaluation).to.deep.equal(evaluation)
    const published = await flows.publish(TENANT, first)
    expect(published).to.include({ version: 1, state: 'published', published_version: 1 })
    expect(await flows.publish(TENANT, first)).to.deep.equal(published)
    const second = (await save(name, 'v2')) ?? expect.fail()
    expect(second).not.to.have.property('evaluation')
    expect(await flows.publish(TENANT, first)).to.equal(undefined)
    expect(await flows.saveEvaluation(TENANT, first, evaluation)).to.equal(false)
    expect(await flows.head(TENANT, name)).to.deep.equal(second)
  })

  it('D26.3: a draft that keeps the published version says so in its revision, so that any writer moves the head rightly', async () => {
    const name = newName()
    const first = await create(name)
    await flows.publish(TENANT, first)
    const { uid } = first
    const lost = { uid, revision: 2, definition: definition('lost'), created_at: '', keeps_published: true }
    await store.collection(FLOW_REVISIONS).insert(TENANT, lost) // Its writer has stopped before it moved the head.
    expect(await save(name, 'v3', { keeps_published: true })).to.include({
      version: 3,
      state: 'draft',
      kept_version: 1,
    })
    const third = await flows.publish(TENANT, { uid, version: 3 })
    expect(third).to.include({ published_version: 3 }).and.not.to.have.property('kept_version')
    expect(await save(name, 'v4')).not.to.have.property('kept_version')
  })

  it('D26.4: a published version is marked when another one replaces it', async () => {
    const name = newName()
    const first = await create(name)
    const { uid } = first
    const marks = async () =>
      (await flows.revisions(TENANT, { uid, version: 4 })).map(({ was_published: was = false }) => was)
    await flows.publish(TENANT, first)
    await save(name, 'v2')
    expect(await flows.publish(TENANT, first)).to.equal(undefined)
    await save(name, 'v3')
    expect(await marks()).to.deep.equal([false, false, false])
    for (const _ of [1, 2]) await flows.publish(TENANT, { uid, version: 3 })
    expect(await marks()).to.deep.equal([false, false, true])
    await save(name, 'v4')
    await flows.publish(TENANT, { uid, version: 4 })
    expect(await marks()).to.deep.equal([false, true, false, true])
    expect((await flows.revision(TENANT, first))?.definition).to.deep.equal(definition('v1'))
  })

  it('D2.7: heads are listed by name in pages, without definitions', async () => {
    const tenant = tenantId('t_list')
    for (const name of ['b', 'a_1', 'a-1', '0', 'c']) await flows.save(tenant, name, { definition: definition(name) })
    const list = async (limit: number, after?: string) =>
      (await flows.heads(tenant, { limit, ...(after !== undefined && { after }) })).map(({ name }) => name)
    expect(await list(10)).to.deep.equal(['0', 'a-1', 'a_1', 'b', 'c'])
    expect(await list(2, 'a-1')).to.deep.equal(['a_1', 'b'])
    expect((await flows.heads(tenant, { limit: 1 }))[0]).not.to.have.property('definition')
  })

  it('a tenant has at most 1,000 flows, and can still change those', async () => {
    const tenant = tenantId('t_many')
    const many = (name: string) => flows.save(tenant, name, { definition: definition('x') })
    const first = (await many('flow-0')) ?? expect.fail()
    for (let n = 1; n < 999; n++)
      await store.collection(FLOWS).insert(tenant, { ...first, uid: `flow_${n}`, name: `flow-${n}` })
    expect(await many('flow-999')).to.include({ version: 1 })
    const refusal = await many('one-more').catch((cause: unknown) => cause)
    expect(refusal).to.be.instanceOf(AppError).and.include({ kind: 'conflict' })
    expect(await flows.head(tenant, 'one-more')).to.equal(undefined)
    expect(await many('flow-0')).to.include({ version: 2 })
  })

  it('versions that are saved while the flow is being deleted are deleted too', async () => {
    const name = newName()
    const { uid } = await create(name)
    let isSaved = false
    const deleting = new FlowStore(
      aroundStore(store, async (method, act) => {
        if (method === 'delete' && !isSaved) {
          isSaved = true
          await create(name, 3)
        }
        return act()
      }),
    )
    expect(await deleting.remove(TENANT, name)).to.include({ uid, version: 4 })
    expect(await storedRevisions(uid)).to.deep.equal([])
  })

  it('a flow that is deleted while a version is being saved stays deleted, and leaves no revision', async () => {
    const name = newName()
    const head = await create(name)
    let isRecreated = false
    const meanwhile = new FlowStore(
      aroundStore(store, async (method, act) => {
        if (method === 'replaceIfVersion' && !isRecreated) {
          isRecreated = true
          await flows.remove(TENANT, name)
          await create(name)
        }
        return act()
      }),
    )
    const refusal = await save(name, 'late', {}, meanwhile).catch((cause: unknown) => cause)
    expect(refusal).to.be.instanceOf(AppError).and.include({ kind: 'conflict' })
    const now = (await flows.head(TENANT, name)) ?? expect.fail()
    expect(now.uid).not.to.equal(head.uid)
    expect(now.version).to.equal(1)
    expect(await storedRevisions(head.uid)).to.deep.equal([])
    expect(await storedRevisions(now.uid)).to.deep.equal([1])
  })

  describe('survives the death of a process', () => flowCrashContract(() => store))
  describe('holds the memory of flows', () => flowMemoryContract(() => store))
}

/** Changes a flow, whose head another process reads until then. */
async function changed<T>(change: () => Promise<T>, read: () => Promise<unknown>): Promise<T> {
  const done = new AbortController()
  const changing = change().finally(() => done.abort())
  while (!done.signal.aborted) {
    await read()
    await new Promise(setImmediate)
  }
  return changing
}

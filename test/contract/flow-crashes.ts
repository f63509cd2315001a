import { expect } from 'chai'
import type { Store } from '../../shared/platform/store/port.ts'
import type { FlowHead } from '../../shared/work/flows/store/flow-head.ts'
import { FlowStore } from '../../shared/work/flows/store/flows.ts'
import { aroundStore, isRead } from '../support/around-store.ts'
import { countDown, createFlowWriter, definition, TENANT } from './flow-writer.ts'

/** The tests of flows whose writer stops before or after any of its writes. */
export function flowCrashContract(opened: () => Store): void {
  let store: Store
  let flows: FlowStore
  const { newName, save, create, versionsOf, storedRevisions } = createFlowWriter('crash', () => store)
  before(() => {
    store = opened()
    flows = new FlowStore(store)
  })

  const cases: Record<string, (crashing: FlowStore, name: string, head: FlowHead) => Promise<unknown>> = {
    'a save': (crashing, name) => save(name, 'new', {}, crashing),
    'a rollback': (crashing, name, { uid }) => save(name, 'v1', { uid }, crashing),
    'a publish': (crashing, _name, head) => crashing.publish(TENANT, head),
  }
  const expectWhole = async (name: string, before: FlowHead) => {
    const head = (await flows.head(TENANT, name)) ?? expect.fail('the flow is lost')
    expect([before.version, before.version + 1]).to.include(head.version)
    expect(await versionsOf(head)).to.deep.equal(countDown(head.version))
    const next = (await save(name, 'next')) ?? expect.fail('the flow is lost')
    expect(next.version).to.be.greaterThan(head.version)
    expect(await flows.head(TENANT, name)).to.deep.equal(next)
    expect(await storedRevisions(next.uid)).to.deep.equal(countDown(next.version))
    expect((await flows.revision(TENANT, before))?.definition).to.deep.equal(definition('v3'))
  }
  for (const [what, act] of Object.entries(cases))
    for (const crash of CRASHES) {
      it(`leaves the flow whole: ${what}, ${nameOf(crash)}`, async () => {
        const name = newName()
        const head = await create(name, 3)
        await act(new FlowStore(crashingStore(store, crash)), name, head).catch(() => {})
        await expectWhole(name, head)
      })
    }

  for (const crash of CRASHES)
    it(`leaves a flow or none: a creation, ${nameOf(crash)}`, async () => {
      const name = newName()
      await save(name, 'new', {}, new FlowStore(crashingStore(store, crash))).catch(() => {})
      const head = await flows.head(TENANT, name)
      if (head) expect(await versionsOf(head)).to.deep.equal([1])
      const next = (await save(name, 'next')) ?? expect.fail()
      expect(await storedRevisions(next.uid)).to.deep.equal(countDown((head?.version ?? 0) + 1))
    })

  for (const crash of CRASHES)
    it(`leaves a flow or none: a deletion, ${nameOf(crash)}`, async () => {
      const name = newName()
      const head = await create(name, 3)
      await new FlowStore(crashingStore(store, crash)).remove(TENANT, name).catch(() => {})
      const left = await flows.head(TENANT, name)
      if (left) expect(await versionsOf(left)).to.deep.equal([3, 2, 1])
      const next = (await save(name, 'next')) ?? expect.fail()
      expect(next.uid === head.uid).to.equal(left !== undefined)
      expect(next.version).to.equal(left ? 4 : 1)
    })

  it('the version of a writer that died is completed by the next one, before its own', async () => {
    const name = newName()
    const head = await create(name)
    const dying = new FlowStore(crashingStore(store, { write: 2, isDone: false }))
    await save(name, 'of the dead', {}, dying).catch(() => {})
    expect(await flows.head(TENANT, name)).to.deep.equal(head)
    expect(await versionsOf(head)).to.deep.equal([1])
    expect((await save(name, 'of the living'))?.version).to.equal(3)
    expect((await flows.revision(TENANT, { uid: head.uid, version: 2 }))?.definition).to.deep.equal(
      definition('of the dead'),
    )
  })

  it('the version of a writer that died is deleted with its flow', async () => {
    const name = newName()
    const { uid } = await create(name)
    const dying = new FlowStore(crashingStore(store, { write: 2, isDone: false }))
    await save(name, 'of the dead', {}, dying).catch(() => {})
    expect(await storedRevisions(uid)).to.deep.equal([2, 1])
    await flows.remove(TENANT, name)
    expect(await storedRevisions(uid)).to.deep.equal([])
  })
}

type Crash = { write: number; isDone: boolean }

const CRASHES: readonly Crash[] = [1, 2, 3].flatMap((write) => [
  { write, isDone: false },
  { write, isDone: true },
])
const nameOf = ({ write, isDone }: Crash) => `${isDone ? 'after' : 'before'} its write ${write}`

/** The store of a process that stops at a write, before it or after it. */
function crashingStore(store: Store, { write, isDone }: Crash): Store {
  let writes = 0
  return aroundStore(store, async (method, act) => {
    if (isRead(method) || ++writes < write) return act()
    if (isDone && writes === write) await act()
    throw new Error('the process has died')
  })
}

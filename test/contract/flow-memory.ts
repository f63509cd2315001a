import { expect } from 'chai'
import { AppError } from '../../shared/kernel/errors.ts'
import { newId } from '../../shared/kernel/ids.ts'
import type { Store } from '../../shared/platform/store/port.ts'
import { FLOW_MEMORY, type FlowMemoryEntry, FlowMemoryStore } from '../../shared/work/flows/store/flow-memory.ts'
import { tenantId } from '../support/tenant.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')

/** The tests of the memory of flows, which every store passes. */
export function flowMemoryContract(store: () => Store): void {
  const memory = () => new FlowMemoryStore(store())
  const entry = (content: string, scope = 'corrections', id: string = newId('mem')): FlowMemoryEntry => ({
    id,
    scope,
    content,
    created_at: '2026-11-22T10:00:00.000Z',
  })
  const contents = async (uid: string, scope = 'corrections', limit = 1_000) =>
    (await memory().page(TENANT, uid, { scope, limit })).map(({ content }) => content)
  const fill = async (uid: string, count: number, scope = 'corrections') => {
    const entries = memory()
    for (let n = 1; n <= count; n++) await entries.add(TENANT, uid, entry(`${n}`, scope))
  }
  /** Stores as many entries as `add` would number one after the other, a hundred at a time. */
  const fillAtOnce = async (uid: string, count: number) => {
    const entries = store().collection(FLOW_MEMORY)
    const insert = (seq: number) => entries.insert(TENANT, { ...entry(`${seq}`), flow_uid: uid, seq })
    for (let from = 1; from <= count; from += 100) {
      const stored = await Promise.all(Array.from({ length: 100 }, (_, i) => insert(from + i)))
      expect(stored).to.not.include(false)
    }
  }

  it('D6.7: entries of a scope are listed newest first, in pages, and only to their tenant', async () => {
    const uid = newId('flow')
    await fill(uid, 3)
    await fill(uid, 1, 'style')
    expect(await contents(uid)).to.deep.equal(['3', '2', '1'])
    expect(await contents(uid, 'style')).to.deep.equal(['1'])
    const [newest] = await memory().page(TENANT, uid, { scope: 'corrections', limit: 1 })
    expect(newest).to.have.keys('id', 'scope', 'content', 'created_at', 'seq')
    const after = newest?.seq ?? 0
    const rest = await memory().page(TENANT, uid, { scope: 'corrections', limit: 5, after })
    expect(rest.map(({ content }) => content)).to.deep.equal(['2', '1'])
    expect(await memory().page(OTHER, uid, { scope: 'corrections', limit: 5 })).to.deep.equal([])
    expect(await memory().page(TENANT, newId('flow'), { scope: 'corrections', limit: 5 })).to.deep.equal([])
  })

  it('D6.7: one entry or a whole scope is deleted, and the other scopes stay', async () => {
    const uid = newId('flow')
    await fill(uid, 120)
    await fill(uid, 2, 'style')
    const [newest] = await memory().page(TENANT, uid, { scope: 'corrections', limit: 1 })
    const id = newest?.id ?? ''
    expect(await memory().remove(TENANT, uid, { scope: 'style', id })).to.equal(false)
    expect(await memory().remove(OTHER, uid, { scope: 'corrections', id })).to.equal(false)
    expect(await memory().remove(TENANT, uid, { scope: 'corrections', id })).to.equal(true)
    expect(await memory().remove(TENANT, uid, { scope: 'corrections', id })).to.equal(false)
    expect(await memory().removeScope(TENANT, uid, 'corrections')).to.equal(119)
    expect(await memory().removeScope(TENANT, uid, 'corrections')).to.equal(0)
    expect(await contents(uid, 'style')).to.deep.equal(['2', '1'])
  })

  it('the whole memory of a deleted flow is deleted, and no other', async () => {
    const [uid, other] = [newId('flow'), newId('flow')]
    await fill(uid, 60)
    await fill(uid, 3, 'style')
    await fill(other, 2)
    await memory().removeFlow(TENANT, uid)
    expect(
      await store()
        .collection(FLOW_MEMORY)
        .page(TENANT, { where: { flow_uid: uid }, limit: 10 }),
    ).to.have.length(0)
    expect(await contents(other)).to.have.length(2)
  })

  it('a scope has at most 1,000 entries, and another scope has its own', async () => {
    const uid = newId('flow')
    await fillAtOnce(uid, 1_000)
    const full = await memory()
      .add(TENANT, uid, entry('one more'))
      .catch((cause: unknown) => cause)
    expect(full).to.be.instanceOf(AppError).and.include({ kind: 'conflict' })
    await fill(uid, 1, 'style')
    await memory().removeScope(TENANT, uid, 'corrections')
    await fill(uid, 1)
    expect(await contents(uid)).to.deep.equal(['1'])
  })

  it('api.md "Limits": 60 precedents of several processes are kept once each, and the newest 20 stay', async () => {
    const uid = newId('flow')
    const processes = Array.from({ length: 4 }, () => memory())
    const id = (n: number) => `mem_${String(n).padStart(32, '0')}`
    const rotate = (by: FlowMemoryStore, n: number) =>
      by.rotate(TENANT, uid, { entry: entry(`${n}`, 'evolve', id(n)), kept: 20 })
    await Promise.all(processes.map((each) => rotate(each, 0)))
    expect(await contents(uid, 'evolve')).to.deep.equal(['0'])
    await Promise.all(
      processes.flatMap((each, p) => Array.from({ length: 15 }, (_, n) => rotate(each, 15 * p + n + 1))),
    )
    const kept = await contents(uid, 'evolve')
    expect(new Set(kept).size).to.equal(20)
    expect(kept).to.have.length(20)
    for (let n = 1; n <= 21; n++) await rotate(memory(), 100 + n)
    expect(await contents(uid, 'evolve')).to.deep.equal(Array.from({ length: 20 }, (_, n) => `${121 - n}`))
    await rotate(memory(), 115)
    expect(await contents(uid, 'evolve')).to.have.length(20)
  })

  it('precedents that push out older ones leave the corrections of people alone', async () => {
    const uid = newId('flow')
    await fill(uid, 2)
    for (let n = 1; n <= 3; n++)
      await memory().rotate(TENANT, uid, { entry: entry(`precedent ${n}`, 'evolve'), kept: 2 })
    expect(await contents(uid, 'evolve')).to.deep.equal(['precedent 3', 'precedent 2'])
    expect(await contents(uid)).to.deep.equal(['2', '1'])
  })
}

import { expect } from 'chai'
import type { Collection, CollectionSpec, Store } from '../../shared/platform/store/port.ts'
import { tenantId } from '../support/tenant.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')

const EVENTS: CollectionSpec = {
  name: 'events',
  key: ['id'],
  order: { within: ['customer_id'], by: ['at', 'id'], direction: 'descending' },
  filters: ['status', 'flow'],
}
const STEPS: CollectionSpec = {
  name: 'steps',
  key: ['plan', 'step'],
  order: { within: ['plan'], by: ['step'], direction: 'ascending' },
}
/** The collections that `pagingContract` pages through. */
export const PAGED: readonly CollectionSpec[] = [EVENTS, STEPS]

/** The tests of pages that every store passes. */
export function pagingContract(store: () => Store): void {
  const customer = { customer_id: 'anna' }
  const idsOf = (page: { doc: Record<string, unknown> }[]) => page.map(({ doc }) => doc['id'])
  let events: Collection
  before(async () => {
    events = store().collection(EVENTS)
    for (let i = 1; i <= 9; i++) {
      const at = `2026-01-0${Math.ceil(i / 3)}`
      await events.insert(TENANT, {
        id: `e${i}`,
        at,
        status: i % 2 ? 'odd' : 'even',
        flow: i < 4 ? 'a' : 'b',
        ...customer,
      })
    }
    await events.insert(TENANT, { id: 'e0', at: '2026-01-09', status: 'odd', flow: 'a', customer_id: 'otto' })
    await events.insert(OTHER, { id: 'e0', at: '2026-01-09', status: 'odd', flow: 'a', ...customer })
  })

  it('a page holds the documents that agree in the fields of `within`, in order', async () => {
    const page = await events.page(TENANT, { where: customer, limit: 4 })
    expect(idsOf(page)).to.deep.equal(['e9', 'e8', 'e7', 'e6'])
    expect(page[0]?.version).to.equal(1)
    expect(idsOf(await events.page(TENANT, { where: { customer_id: 'nobody' }, limit: 4 }))).to.deep.equal([])
  })

  it('D2.7: the next page begins after the last document, also among equal values', async () => {
    const seen: unknown[] = []
    for (let after: [string, string] | undefined; ; ) {
      const page = await events.page(TENANT, { where: customer, limit: 2, ...(after && { after }) })
      seen.push(...idsOf(page))
      const last = page.at(-1)?.doc
      if (!last) break
      after = [String(last['at']), String(last['id'])]
    }
    expect(seen).to.deep.equal(['e9', 'e8', 'e7', 'e6', 'e5', 'e4', 'e3', 'e2', 'e1'])
  })

  it('a page can be limited to a range of the first ordered field, and to filters', async () => {
    const range = { after: ['2026-01-03'], until: ['2026-01-02'] }
    expect(idsOf(await events.page(TENANT, { where: customer, limit: 9, ...range }))).to.deep.equal(['e6', 'e5', 'e4'])
    const even = { ...customer, status: 'even' }
    expect(idsOf(await events.page(TENANT, { where: even, limit: 9 }))).to.deep.equal(['e8', 'e6', 'e4', 'e2'])
    expect(idsOf(await events.page(TENANT, { where: even, limit: 9, ...range }))).to.deep.equal(['e6', 'e4'])
    const ofFlow = { ...customer, flow: 'b' }
    expect(idsOf(await events.page(TENANT, { where: ofFlow, limit: 4 }))).to.deep.equal(['e9', 'e8', 'e7', 'e6'])
    const both = { ...even, flow: 'b' }
    expect(idsOf(await events.page(TENANT, { where: both, limit: 9 }))).to.deep.equal(['e8', 'e6', 'e4'])
    const rest = { where: both, limit: 9, after: ['2026-01-02', 'e6'], until: ['2026-01-01'] }
    expect(idsOf(await events.page(TENANT, rest))).to.deep.equal(['e4'])
    const upTo = { where: customer, limit: 9, after: ['2026-01-03'], until: ['2026-01-02', 'e5'] }
    expect(idsOf(await events.page(TENANT, upTo))).to.deep.equal(['e6', 'e5'])
  })

  it('numbers are ordered as numbers, ascending where the collection declares it', async () => {
    const steps = store().collection(STEPS)
    for (const step of [10, 9, 100, 1]) await steps.insert(TENANT, { plan: 'p', step })
    const numbersOf = async (query = {}) =>
      (await steps.page(TENANT, { where: { plan: 'p' }, limit: 9, ...query })).map(({ doc }) => doc['step'])
    expect(await numbersOf()).to.deep.equal([1, 9, 10, 100])
    expect(await numbersOf({ after: [9] })).to.deep.equal([10, 100])
    expect(await numbersOf({ after: [1], until: [10] })).to.deep.equal([9, 10])
  })

  it('a query without the fields of `within`, or with a limit outside 1 to 1,000, throws', async () => {
    for (const query of [{ limit: 1 }, { where: customer, limit: 0 }, { where: customer, limit: 1001 }])
      expect(await events.page(TENANT, query).catch(String)).to.match(/Error/)
  })
}

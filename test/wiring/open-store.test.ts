import { readdir } from 'node:fs/promises'
import { expect } from 'chai'
import { openClusterStore } from '../../services/wiring/open-store.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { record, step } from '../work/plans/plan-setup.ts'
import { useOpening } from './opening.ts'

describe('the store of a process', () => {
  const opening = useOpening()

  it('D1.3 DATA_DIR: the standalone form keeps it in one file there, which the next process reads', async () => {
    const first = await opening.store()
    await first.memories.add(TENANT, 'ada', { content: 'likes boats', run_id: 'run_1' })
    await first.close()
    expect(await readdir(opening.dir)).to.include('agent-engine.db')
    const second = await opening.store()
    expect((await second.memories.last(TENANT, 'ada', 1)).map(({ content }) => content)).to.deep.equal(['likes boats'])
  })

  it('D32: sessions are stored unless DURABILITY is off', async () => {
    expect((await opening.store({ DURABILITY: 'off' })).sessions).to.equal(undefined)
  })

  it('PLANS_PER_TENANT: one plan more is refused', async () => {
    const { plans } = await opening.store({ PLANS_PER_TENANT: '1' })
    await plans.create(TENANT, record([step('a')]))
    const refused = await plans.create(TENANT, record([step('a')])).catch((cause: unknown) => cause)
    expect(refused).to.include({ status: 429 })
  })

  it('the cluster has none without MONGODB_URL, and says what is lost', async () => {
    const { store } = opening.settings({ REDIS_URL: 'redis://127.0.0.1:1' }, 'cluster')
    expect(await openClusterStore(store, opening.log)).to.equal(undefined)
    expect(opening.lines.join()).to.include('set MONGODB_URL')
  })
})

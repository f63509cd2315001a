import { expect } from 'chai'
import { countLoads, mergeLoads } from '../../../shared/cluster/commands/tenant-loads.ts'
import { tenantId } from '../../support/tenant.ts'

const of = (name: string) => ({ tenant: tenantId(name) })
const run = (name: string, status = 'running') => ({ ...of(name), status })
const load = (name: string, live_runs: number, waiting_runs: number, sessions: number) => ({
  ...of(name),
  ...{ live_runs, waiting_runs, sessions },
})

describe('what processes hold of each tenant', () => {
  const held = {
    runs: [run('b'), run('a'), run('b', 'waiting'), run('d')],
    sessions: [of('b'), of('c'), of('b')],
  }

  it('is counted by tenant, in the order of their names', () => {
    expect(countLoads(held, { after: '', limit: 10 })).to.deep.equal([
      load('a', 1, 0, 0),
      load('b', 2, 1, 2),
      load('c', 0, 0, 1),
      load('d', 1, 0, 0),
    ])
  })

  it('begins behind a name, and ends at the limit', () => {
    expect(countLoads(held, { after: 'a', limit: 2 }).map(({ tenant }) => tenant)).to.deep.equal(['b', 'c'])
    expect(countLoads(held, { after: 'd', limit: 2 })).to.deep.equal([])
  })

  it('is added up over processes, of which each has answered for its first tenants', () => {
    const range = { after: '', limit: 2 }
    const other = countLoads({ runs: [run('c'), run('b')], sessions: [of('a')] }, range)
    expect(mergeLoads([countLoads(held, range), other], range)).to.deep.equal([load('a', 1, 0, 1), load('b', 3, 1, 2)])
    expect(mergeLoads([], range)).to.deep.equal([])
  })
})

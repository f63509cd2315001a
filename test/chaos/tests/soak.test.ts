import { expect } from 'chai'
import { Random } from '../../harness/seed.ts'
import { refusals } from '../scenarios/soak/availability.ts'
import { type PlannedFault, planFaults } from '../scenarios/soak/faults/plan.ts'
import { Windows } from '../scenarios/soak/faults/windows.ts'
import { invariantRows } from '../scenarios/soak/invariants.ts'
import { entriesOf } from '../scenarios/soak/load/permissions.ts'

const RUN = { run: 'run_1', request: 'perm_1' }
const YES = { isAllow: true, t: 1 }
const firstFaults = (seed: number, canShift = true): PlannedFault[] => {
  const faults = planFaults(new Random(seed), canShift)
  return Array.from({ length: 200 }, () => faults.next().value as PlannedFault)
}

describe('the parts of a soak', () => {
  it('the faults of a seed are always the same, and hit every kind of process in every way', () => {
    expect(firstFaults(7)).to.deep.equal(firstFaults(7))
    expect(firstFaults(7)).to.not.deep.equal(firstFaults(8))
    const kinds = new Set(firstFaults(7).map(({ target, kind }) => `${kind} ${target}`))
    for (const target of ['gateway', 'worker', 'executor'])
      for (const kind of ['kill', 'freeze', 'partition', 'latency', 'reset', 'clock'])
        expect(kinds).to.include(`${kind} ${target}`)
    expect(kinds).to.include.members(['kill redis', 'freeze redis', 'kill mongo', 'freeze mongo', 'step-down mongo'])
    expect(firstFaults(7, false).some(({ kind }) => kind === 'clock')).to.equal(false)
  })

  it('a fault touches what needs its process until the cluster has recovered; a shifted clock touches nothing', () => {
    const windows = new Windows()
    windows.all.push({ target: 'worker', name: 'worker 1', kind: 'kill', from: 10_000, until: 11_000 })
    windows.all.push({ target: 'gateway', name: 'gateway 1', kind: 'clock', from: 0, until: 90_000 })
    expect(windows.touches(0, 9_000, { targets: ['worker'] })).to.equal(false)
    expect(windows.touches(9_000, 10_500, { targets: ['worker'] })).to.equal(true)
    expect(windows.touches(16_000, 16_100, { names: ['worker 1'] })).to.equal(true)
    expect(windows.touches(18_000, 19_000, { targets: ['worker'] })).to.equal(false)
    expect(windows.touches(9_000, 20_000, { targets: ['redis'], names: ['gateway 1'] })).to.equal(false)
    expect(windows.noticed()).to.have.length(1)
  })

  it('a 429 counts as a refusal even while a fault could be noticed, a 503 only when none could', () => {
    const windows = new Windows()
    windows.all.push({ target: 'worker', name: 'worker 1', kind: 'kill', from: 10_000, until: 11_000 })
    const [touched, free] = [10_500, 30_000]
    const probe = (from: number, word: string) => ({
      route: 'a run',
      names: [],
      targets: ['worker' as const],
      from,
      to: from,
      word,
    })
    const counted = [probe(touched, 'status 429 share'), probe(free, '429 {}'), probe(free, '503 {}')]
    const others = [probe(touched, '503 {}'), probe(free, 'ok'), probe(free, 'worker_lost 429')]
    expect(refusals([...counted, ...others], windows)).to.deep.equal([
      'a run: status 429 share',
      'a run: 429 {}',
      'a run: 503 {}',
    ])
  })

  it('a decision counts only where it is certain which reply won', () => {
    const kindsOf = (asked: Parameters<typeof entriesOf>[0]) => entriesOf(asked).map(({ kind }) => kind)
    const won = { isAllow: true, status: 200, t: 1 }
    const late = { isAllow: false, status: 409, t: 1 }
    const lost = { isAllow: true, status: 0, t: 1 }
    expect(kindsOf({ ...RUN, replies: [won, late], decision: YES })).to.deep.equal(['reply', 'reply', 'decision'])
    expect(kindsOf({ ...RUN, replies: [lost], decision: YES })).to.deep.equal(['reply'])
    expect(kindsOf({ ...RUN, replies: [won], decision: undefined })).to.deep.equal([])
    expect(kindsOf({ ...RUN, replies: [won, won], decision: undefined })).to.deep.equal(['reply', 'reply'])
  })

  it('every invariant has a row, and a violation breaks that of its rule', () => {
    const rows = invariantRows([{ rule: 'stream-altered', what: 'a hole', evidence: [] }], { N5: 'of 3 streams' })
    expect(rows.map(({ title }) => title.split(' ')[0])).to.deep.equal(
      Array.from({ length: 10 }, (_, n) => `N${n + 1}`),
    )
    expect(rows.filter(({ value }) => value > 0)).to.deep.include.members([
      {
        title: 'N5 holes and changes in streams',
        value: 1,
        unit: '',
        goal: { atMost: 0 },
        detail: 'of 3 streams; a hole',
      },
    ])
  })
})

import { expect } from 'chai'
import { lessLoadedOfTwo, Ring } from '../../../shared/broker/placement/ring.ts'

const KEYS = Array.from({ length: 20_000 }, (_, i) => `t_default sess_${i.toString(16)}`)
const upTo = (count: number) => Array.from({ length: count }, (_, i) => 1_790_000_000 + i * 7)
const ownersIn = (ring: Ring) => KEYS.map((key) => ring.ownerOf(key))

describe('placement', () => {
  it('an empty ring has no owner, a ring of one has one', () => {
    expect(Ring.EMPTY.ownerOf('x')).to.equal(undefined)
    expect(new Set(ownersIn(Ring.of([7])))).to.deep.equal(new Set([7]))
  })

  it('all gateways place alike, whatever order they learnt of the members in', () => {
    const members = upTo(20)
    const built = Ring.of(members)
    const grown = members.toReversed().reduce((ring, member) => ring.join(member), Ring.EMPTY)
    expect(ownersIn(grown)).to.deep.equal(ownersIn(built))
  })

  it('performance G12: a join moves only keys that become the new member’s, about one share of them', () => {
    const before = Ring.of(upTo(100))
    const [old, now] = [ownersIn(before), ownersIn(before.join(42))]
    const moved = now.filter((owner, i) => owner !== old[i])
    expect(new Set(moved)).to.deep.equal(new Set([42]))
    expect(moved.length).to.be.lessThan((1.35 * KEYS.length) / 101)
  })

  it('performance G12: a leave moves only the keys of the one that left', () => {
    const before = Ring.of(upTo(100))
    const gone = upTo(100)[50] as number
    const [old, now] = [ownersIn(before), ownersIn(before.leave(gone))]
    expect(now.every((owner, i) => owner === old[i] || old[i] === gone)).to.equal(true)
    expect(now).not.to.include(gone)
    expect(ownersIn(before.leave(gone).join(gone))).to.deep.equal(old)
  })

  it('performance G12: at 100 workers the fullest has at most 1.35 times the mean', () => {
    const counts = new Map<number | undefined, number>()
    const ring = Ring.of(upTo(100))
    for (let i = 0; i < 200_000; i++) {
      const owner = ring.ownerOf(`tenant${i % 17} sess_${i * 2654435761}`)
      counts.set(owner, (counts.get(owner) ?? 0) + 1)
    }
    expect(counts.size).to.equal(100)
    expect(Math.max(...counts.values())).to.be.at.most(1.35 * 2000)
  })

  it('design §4.7: of two workers the less loaded is taken, of none nobody', () => {
    const workers = [{ load: 5 }, { load: 1 }]
    const draws = [0, 0.9]
    expect(lessLoadedOfTwo(workers, () => draws.shift() ?? 0)).to.equal(workers[1])
    expect(lessLoadedOfTwo([], Math.random)).to.equal(undefined)
  })
})

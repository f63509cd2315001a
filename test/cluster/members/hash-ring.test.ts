import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { HashRing } from '../../../shared/cluster/members/hash-ring.ts'
import { Random } from '../../harness/seed.ts'

const KEYS = Array.from({ length: 20_000 }, (_, i) => `t_default sess_${i.toString(16)}`)
const upTo = (count: number) => Array.from({ length: count }, (_, i) => 1_790_000_000 + i * 7)
const sampleOf = (ring: HashRing) => KEYS.slice(0, 500).map((key) => ring.ownerOf(key))
const ownersIn = (ring: HashRing) => KEYS.map((key) => ring.ownerOf(key))

describe('ring', () => {
  it('an empty ring has no owner, a ring of one member has only that one', () => {
    expect(HashRing.of([]).ownerOf('x')).to.equal(undefined)
    expect(new Set(ownersIn(HashRing.of([7])))).to.deep.equal(new Set([7]))
  })

  it('the owner of a key does not depend on the order of the members', () => {
    const members = upTo(20)
    expect(ownersIn(HashRing.of(members.toReversed()))).to.deep.equal(ownersIn(HashRing.of(members)))
  })

  it('a point that two members share belongs to the lower epoch, whatever their order', () => {
    const [lower, higher, key] = [568, 1325, 'sess_1421'] // Both have the point 896240, the first after the key's hash.
    for (const ring of [HashRing.of([lower, higher]), HashRing.of([higher, lower])]) {
      expect(ring.ownerOf(key)).to.equal(lower)
      expect(ring.ownerOf(key, lower)).to.equal(higher)
    }
    for (const left of [lower, higher]) {
      const ring = HashRing.of([lower, higher])
      ring.follow(new Set([lower, higher]).difference(new Set([left])))
      expect(ring.ownerOf(key)).to.equal(left === lower ? higher : lower)
    }
  })

  it('the next owner of a key is the one that it has on a ring without its owner', () => {
    const ring = HashRing.of(upTo(20))
    for (const [owner, keys] of Map.groupBy(KEYS.slice(0, 2_000), (key) => ring.ownerOf(key))) {
      const others = HashRing.of(upTo(20).filter((member) => member !== owner))
      expect(keys.map((key) => ring.ownerOf(key, owner))).to.deep.equal(keys.map((key) => others.ownerOf(key)))
    }
    expect(HashRing.of([7]).ownerOf('x', 7)).to.equal(undefined)
  })

  it('a key whose hash is exactly a point belongs to the member with that point', () => {
    const ring = HashRing.of(upTo(100))
    expect(ring.ownerOf('sess_178330')).to.equal(1_790_000_294)
    expect(ring.ownerOf('sess_363823')).to.equal(1_790_000_350)
  })

  it('a key whose hash is above the last point belongs to the member with the first point', () => {
    expect(HashRing.of(upTo(100)).ownerOf('sess_20748')).to.equal(1_790_000_665)
  })

  it('a key has the same owner in every release, so that the gateways of a rolling deploy agree', () => {
    const owners = ownersIn(HashRing.of(upTo(100))).join()
    expect(createHash('sha256').update(owners).digest('hex')).to.equal(
      '444e79b1567878f78c74f8e79f6447bd9b9e8b085fd982e0cbeee8d3936715b3',
    )
  })

  it('a join moves only keys that the new member gets, about one share of them', () => {
    const before = HashRing.of(upTo(100))
    const [old, now] = [ownersIn(before), ownersIn(HashRing.of([...upTo(100), 42]))]
    const moved = now.filter((owner, i) => owner !== old[i])
    expect(new Set(moved)).to.deep.equal(new Set([42]))
    expect(moved.length).to.be.lessThan((1.35 * KEYS.length) / 101)
  })

  it('a leave moves only the keys of the member that left', () => {
    const before = HashRing.of(upTo(100))
    const gone = upTo(100)[50] as number
    const [old, now] = [ownersIn(before), ownersIn(HashRing.of(upTo(100).filter((member) => member !== gone)))]
    expect(now.every((owner, i) => owner === old[i] || old[i] === gone)).to.equal(true)
    expect(now).not.to.include(gone)
  })

  it('after random joins and leaves the ring owns each key as one that is built anew does, after each step', () => {
    const random = new Random(1)
    let members = new Set<number>()
    const ring = new HashRing()
    for (let round = 0; round < 30; round++) {
      const left = random.shuffle([...members]).slice(0, random.between(0, 12))
      const joined = Array.from({ length: random.between(0, 12) }, () => random.between(0, 2 ** 32 - 1))
      members = members.difference(new Set(left)).union(new Set(joined))
      for (let isComplete = false; !isComplete; ) {
        const before = new Set(ring.members)
        isComplete = ring.follow(members)
        expect(isComplete).to.equal(ring.members.size === members.size)
        expect(ring.members.isSubsetOf(members)).to.equal(true)
        expect(ring.members.difference(before).size).to.be.at.most(8)
        expect(sampleOf(ring)).to.deep.equal(sampleOf(HashRing.of(random.shuffle([...ring.members]))))
      }
    }
  })

  it('a ring whose members have all left has no owner', () => {
    const ring = HashRing.of(upTo(3))
    expect(ring.follow(new Set())).to.equal(true)
    expect([ring.ownerOf('x'), ring.members.size]).to.deep.equal([undefined, 0])
  })

  it('of 100 workers none owns more than 1.35 times the mean', () => {
    const counts = new Map<number | undefined, number>()
    const ring = HashRing.of(upTo(100))
    for (let i = 0; i < 50_000; i++) {
      const owner = ring.ownerOf(`tenant${i % 17} sess_${i * 2654435761}`)
      counts.set(owner, (counts.get(owner) ?? 0) + 1)
    }
    expect(counts.size).to.equal(100)
    expect(Math.max(...counts.values())).to.be.at.most(1.35 * 500)
  })
})

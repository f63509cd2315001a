import { expect } from 'chai'
import { HELD_SECS, type Owners, RESERVED_SECS } from '../../shared/cluster/owners/owners.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { tenantId } from '../support/tenant.ts'

export const S1 = { tenant: DEFAULT_TENANT, id: 's1' }
const claimOf = (epoch: number, token = `t${epoch}`) => ({ epoch, token })
const [FIRST, SECOND, THIRD] = [claimOf(1), claimOf(2), claimOf(3)]

/** `secsLeft`: for how long the claim of S1 still lasts. */
export type OwnersSetup = { owners: Owners; secsLeft(): Promise<number> }

/** The tests that every `Owners` passes. */
export function ownersContract(open: () => OwnersSetup): void {
  let owners: Owners
  let secsLeft: OwnersSetup['secsLeft']
  beforeEach(() => {
    ;({ owners, secsLeft } = open())
  })

  it('of many claims of one session at the same time one wins, and every claimant learns which', async () => {
    const claims = Array.from({ length: 20 }, (_, i) => claimOf(1, `t${i}`))
    const winners = await Promise.all(claims.map((claim) => owners.claim(S1, claim, RESERVED_SECS)))
    expect(new Set(winners.map(({ token }) => token))).to.have.property('size', 1)
    expect(await owners.find(S1)).to.deep.equal(winners[0])
  })

  it('claims of another tenant and of another session are independent', async () => {
    const other = { tenant: tenantId('other'), id: 's1' }
    expect(await owners.claim(S1, FIRST, HELD_SECS)).to.deep.equal(FIRST)
    expect(await owners.claim(other, SECOND, HELD_SECS)).to.deep.equal(SECOND)
    expect(await owners.claim({ ...S1, id: 's10' }, THIRD, HELD_SECS)).to.deep.equal(THIRD)
    expect(await owners.find({ ...S1, id: 's2' })).to.equal(undefined)
  })

  it('a reserved claim lasts half a minute, and a day from when its worker claims it; no other claim extends it', async () => {
    await owners.claim(S1, FIRST, RESERVED_SECS)
    expect(await secsLeft()).to.be.within(RESERVED_SECS - 5, RESERVED_SECS)
    for (const other of [SECOND, claimOf(1, 'later')]) {
      expect(await owners.claim(S1, other, HELD_SECS)).to.deep.equal(FIRST)
      expect(await secsLeft()).to.be.within(1, RESERVED_SECS)
    }
    expect(await owners.claim(S1, FIRST, HELD_SECS)).to.deep.equal(FIRST)
    expect(await secsLeft()).to.be.within(HELD_SECS - 60, HELD_SECS)
  })

  it('a claim is released by its own epoch and token only', async () => {
    await owners.claim(S1, FIRST, HELD_SECS)
    for (const other of [SECOND, claimOf(1, 'earlier')]) {
      expect(await owners.release(S1, other)).to.equal(false)
      expect(await owners.find(S1)).to.deep.equal(FIRST)
    }
    for (let repeated = 0; repeated < 2; repeated++) {
      expect(await owners.release(S1, FIRST)).to.equal(true)
      expect(await owners.find(S1)).to.equal(undefined)
    }
  })

  it('a worker that releases a session which it has handed over learns that another worker owns it', async () => {
    const moved = claimOf(2, FIRST.token)
    await owners.claim(S1, FIRST, HELD_SECS)
    await owners.replace(S1, { from: FIRST, to: moved }, HELD_SECS)
    expect(await owners.release(S1, FIRST)).to.equal(false)
    expect(await owners.find(S1)).to.deep.equal(moved)
  })

  it("a dead worker's claim is taken over whatever its token is, however often that is repeated, and so is a session without one; no other claim is", async () => {
    const takeOver = { from: 1, to: SECOND }
    expect(await owners.takeOver(S1, takeOver, HELD_SECS)).to.equal(true)
    expect(await owners.find(S1)).to.deep.equal(SECOND)
    await owners.release(S1, SECOND)
    for (const other of [claimOf(11), claimOf(3, '1')]) {
      await owners.claim(S1, other, HELD_SECS)
      expect(await owners.takeOver(S1, takeOver, HELD_SECS)).to.equal(false)
      expect(await owners.find(S1)).to.deep.equal(other)
      await owners.release(S1, other)
    }
    await owners.claim(S1, claimOf(1, 'any'), HELD_SECS)
    for (let repeated = 0; repeated < 2; repeated++) {
      expect(await owners.takeOver(S1, takeOver, RESERVED_SECS)).to.equal(true)
      expect(await owners.find(S1)).to.deep.equal(SECOND)
    }
    expect(await secsLeft()).to.be.within(RESERVED_SECS - 5, RESERVED_SECS)
    expect(await owners.takeOver(S1, { from: 1, to: THIRD }, HELD_SECS)).to.equal(false)
    expect(await owners.find(S1)).to.deep.equal(SECOND)
  })

  it('only the claim that was expected is replaced, however often the change is repeated', async () => {
    const toSecond = { from: FIRST, to: SECOND }
    expect(await owners.replace(S1, toSecond, HELD_SECS)).to.equal(false)
    expect(await owners.find(S1)).to.equal(undefined)
    await owners.claim(S1, FIRST, HELD_SECS)
    for (const from of [THIRD, claimOf(1, 'earlier')]) {
      expect(await owners.replace(S1, { from, to: SECOND }, HELD_SECS)).to.equal(false)
    }
    for (let repeated = 0; repeated < 2; repeated++) {
      expect(await owners.replace(S1, toSecond, HELD_SECS)).to.equal(true)
      expect(await owners.find(S1)).to.deep.equal(SECOND)
    }
    expect(await secsLeft()).to.be.within(HELD_SECS - 60, HELD_SECS)
    await owners.replace(S1, { from: SECOND, to: THIRD }, HELD_SECS)
    expect(await owners.replace(S1, toSecond, HELD_SECS)).to.equal(false)
    expect(await owners.find(S1)).to.deep.equal(THIRD)
  })
}

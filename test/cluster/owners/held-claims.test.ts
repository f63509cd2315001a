import { expect } from 'chai'
import { HeldClaims, type HeldSession } from '../../../shared/cluster/owners/held-claims.ts'
import { createClaimTable, createMemoryOwners } from '../../../shared/cluster/owners/memory-owners.ts'
import { type Claim, HELD_SECS, type Owners } from '../../../shared/cluster/owners/owners.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { until } from '../../support/until.ts'

const OWN = 7
const OTHER = 8
const KEY = { tenant: DEFAULT_TENANT, id: 's1' }
const sessionOf = (token: string): HeldSession => ({ ...KEY, token })

/** The claims of worker 7, which holds these sessions. `before` comes before each change that it makes. */
function setUp(held: HeldSession[] = [], before: () => void = () => {}) {
  const owners = createMemoryOwners({ ask: async (act) => act() }, createClaimTable(10))
  const tried: Owners = {
    ...owners,
    claim: async (...args) => (before(), owners.claim(...args)),
    replace: async (...args) => (before(), owners.replace(...args)),
    release: async (...args) => (before(), owners.release(...args)),
  }
  const state = { alive: [OWN, OTHER], isDraining: false, epoch: OWN }
  const dropped: HeldSession[] = []
  const claims = new HeldClaims<HeldSession>({
    owners: tried,
    epoch: () => state.epoch,
    sessions: () => held,
    isAlive: (epoch) => state.alive.includes(epoch),
    find: ({ id }) => held.find((session) => session.id === id),
    isDraining: () => state.isDraining,
    drop: (session) => dropped.push(session),
  })
  return { claims, owners, state, held, dropped, holder: () => owners.find(KEY) }
}

const claim = (epoch: number, token: string): Claim => ({ epoch, token })

describe('the claims of a worker on its sessions', () => {
  it('name its epoch: one of an earlier epoch is not found', async () => {
    const { claims, owners, state } = setUp()
    await owners.claim(KEY, claim(OWN, 'a'), HELD_SECS)
    expect(await claims.find(KEY)).to.equal('a')
    state.epoch = 9
    expect(await claims.find(KEY)).to.equal(undefined)
  })

  it('are confirmed as long as no other worker has claimed the session', async () => {
    const { claims } = setUp()
    expect(await claims.confirm(sessionOf('a'))).to.equal(true)
    expect(await claims.confirm(sessionOf('b'))).to.equal(false)
  })

  it('are restored for the session that is here, after a gateway has claimed its id anew', async () => {
    const { claims, owners, holder } = setUp([sessionOf('held')])
    await owners.claim(KEY, claim(OWN, 'new'), HELD_SECS)
    await claims.restore(sessionOf('new'))
    expect(await holder()).to.deep.equal(claim(OWN, 'held'))
  })

  it('are taken over from the worker that offers the session, and from no other', async () => {
    const session = sessionOf('a')
    const { claims, owners, holder } = setUp([session])
    await owners.claim(KEY, claim(OTHER, 'a'), HELD_SECS)
    expect(await claims.takeOver(session, 9)).to.equal(false)
    expect(await claims.takeOver(session, OTHER)).to.equal(true)
    expect(await holder()).to.deep.equal(claim(OWN, 'a'))
  })

  it('have a new token once they are taken back, so that an offer of before is not taken over any more', async () => {
    const session = sessionOf('a')
    const { claims, owners, holder } = setUp([session])
    await claims.confirm(session)
    expect(await claims.takeBack(session)).to.equal(true)
    expect(session.token).to.not.equal('a')
    expect(await holder()).to.deep.equal(claim(OWN, session.token))
    const offered = { from: claim(OWN, 'a'), to: claim(OTHER, 'a') }
    expect(await owners.replace(KEY, offered, HELD_SECS)).to.equal(false)
  })

  it('are released when the session was removed while they were taken back', async () => {
    const session = sessionOf('a')
    const { claims, owners, holder } = setUp([])
    await owners.claim(KEY, claim(OWN, 'a'), HELD_SECS)
    expect(await claims.takeBack(session)).to.equal(false)
    expect(await holder()).to.equal(undefined)
  })

  it('tell a late offer by the session of the same id that this worker owns', async () => {
    const { claims } = setUp([sessionOf('new')])
    expect(await claims.isReplaced(sessionOf('new'))).to.equal(false)
    expect(await claims.isReplaced(sessionOf('old'))).to.equal(false)
    await claims.confirm(sessionOf('new'))
    expect(await claims.isReplaced(sessionOf('old'))).to.equal(true)
  })

  it('are made again for all sessions but those that are only offered here', async () => {
    const [own, offered] = [sessionOf('a'), { ...sessionOf('b'), id: 's2' }]
    const { claims, owners, held, holder } = setUp([own, offered])
    await owners.claim(offered, claim(OTHER, 'b'), HELD_SECS)
    const taking = claims.takeOver(offered, OTHER)
    claims.claimAll()
    await taking
    await until(async () => (await holder()) !== undefined, { what: 'the claim of the own session' })
    expect(await holder()).to.deep.equal(claim(OWN, 'a'))
    expect(held).to.have.length(2)
  })

  it('of an earlier epoch, or of a worker that has left with the same token, are replaced', async () => {
    const session = sessionOf('a')
    for (const earlier of [claim(OWN, 'old'), claim(OTHER, 'a')]) {
      const { claims, owners, holder } = setUp([session])
      await owners.claim(KEY, earlier, HELD_SECS)
      expect(await claims.claimAgain(session)).to.equal(true)
      expect(await holder()).to.deep.equal(claim(OWN, 'a'))
    }
  })

  it('are repeated until Redis has answered, and not after the worker has left', async () => {
    let failures = 1
    const { claims } = setUp([], () => {
      if (failures-- > 0) throw new AppError('unavailable', 'away')
    })
    expect(await claims.release(sessionOf('a'))).to.equal(true)
    failures = 9
    claims.close()
    const failed = await claims.release(sessionOf('a')).catch((cause: unknown) => cause)
    expect(failed).to.include({ kind: 'unavailable' })
  })
})

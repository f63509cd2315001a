import { syncBuiltinESMExports } from 'node:module'
import { mock } from 'node:test'
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
function setUp(held: HeldSession[] = [], before: (change: string, session: { id: string }) => void = () => {}) {
  const owners = createMemoryOwners({ ask: async (act) => act() }, createClaimTable(10))
  const tried: Owners = {
    ...owners,
    claim: async (...args) => (before('claim', args[0]), owners.claim(...args)),
    replace: async (...args) => (before('replace', args[0]), owners.replace(...args)),
    release: async (...args) => (before('release', args[0]), owners.release(...args)),
  }
  const state = { alive: [OWN, OTHER], gone: [] as number[], isDraining: false, epoch: OWN }
  const dropped: HeldSession[] = []
  const claims = new HeldClaims<HeldSession>({
    owners: tried,
    epoch: () => state.epoch,
    sessions: () => held,
    isAlive: (epoch) => state.alive.includes(epoch),
    isGone: (epoch) => state.gone.includes(epoch),
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
    expect(await claims.find({ ...KEY, id: 'other' })).to.equal(undefined)
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
    await claims.restore({ ...sessionOf('new'), id: 'none of this worker' })
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
    expect(await setUp().claims.isReplaced(sessionOf('old'))).to.equal(false)
  })

  it('tell a late offer by a session of the same id that is removed while they are asked', async () => {
    const { claims, held } = setUp([sessionOf('new')])
    const asked = claims.isReplaced(sessionOf('old'))
    held.length = 0
    expect(await asked).to.equal(true)
  })

  it('are made again for all sessions but those that are only offered here', async () => {
    const [own, offered] = [sessionOf('a'), { ...sessionOf('b'), id: 's2' }]
    const changes: string[] = []
    const { claims, owners, holder, dropped } = setUp([own, offered], (change, { id }) =>
      changes.push(`${change} ${id}`),
    )
    await owners.claim(offered, claim(OTHER, 'b'), HELD_SECS)
    const taking = claims.takeOver(offered, 9)
    claims.claimAll()
    expect(await taking).to.equal(false)
    await until(async () => (await holder()) !== undefined, { what: 'the claim of the own session' })
    expect(await holder()).to.deep.equal(claim(OWN, 'a'))
    expect(changes).to.deep.equal(['replace s2', 'claim s1'])
    claims.claimAll()
    expect(changes.slice(2), 'once it was not taken over').to.deep.equal(['claim s1', 'claim s2'])
    await new Promise(setImmediate)
    expect(dropped).to.deep.equal([])
  })

  it('are made again for a session that was taken over while all were: Redis may have lost the new claim', async () => {
    for (const isLost of [false, true]) {
      const session = sessionOf('a')
      const changes: string[] = []
      const { claims, owners } = setUp([session], (change) => changes.push(change))
      await owners.claim(KEY, claim(OTHER, 'a'), HELD_SECS)
      const taking = claims.takeOver(session, OTHER)
      if (isLost) claims.claimAll()
      expect(await taking).to.equal(true)
      expect(changes).to.deep.equal(isLost ? ['replace', 'claim'] : ['replace'])
    }
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

  it('take the place of that from which the session was taken over, also while this worker hands it over itself', async () => {
    const session = sessionOf('a')
    const { claims, owners, state, holder } = setUp([session])
    await owners.claim(KEY, claim(OTHER, 'a'), HELD_SECS)
    await claims.takeOver(session, OTHER)
    await claims.takeBack(session)
    state.isDraining = true
    await owners.replace(KEY, { from: claim(OWN, session.token), to: claim(OTHER, 'a') }, HELD_SECS)
    expect(await claims.claimAgain(session)).to.equal(true)
    expect(await holder()).to.deep.equal(claim(OWN, session.token))
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

describe('the claim of a session that another worker has', () => {
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    syncBuiltinESMExports()
  })
  afterEach(() => {
    mock.timers.reset()
    syncBuiltinESMExports()
  })
  const TRIES_MS = 500

  /** Lets so many tries pass, each with its answers. */
  async function pass(tries: number): Promise<void> {
    for (let i = 0; i < tries; i++) {
      await new Promise(setImmediate)
      mock.timers.tick(TRIES_MS)
    }
    await new Promise(setImmediate)
  }

  /** Session `a` of worker 7 while worker 8 has the claim. `result` is what `claimAgain` returns, once it has. */
  async function setUpTaken(token: string, before?: Parameters<typeof setUp>[1]) {
    const session = sessionOf('a')
    const parts = setUp([session], before)
    await parts.owners.claim(KEY, claim(OTHER, token), HELD_SECS)
    const seen: { result?: boolean } = {}
    const start = () => void parts.claims.claimAgain(session).then((result) => (seen.result = result))
    return { ...parts, session, seen, start }
  }

  it('is left to a worker that lives, and the session is dropped here after ten tries', async () => {
    const { claims, holder, dropped, session } = await setUpTaken('b')
    claims.claimAll()
    await pass(8)
    expect(dropped).to.deep.equal([])
    await pass(1)
    expect(dropped).to.deep.equal([session])
    expect(await holder()).to.deep.equal(claim(OTHER, 'b'))
  })

  it('is taken from a worker that has died, after five tries: it may only not be registered again yet', async () => {
    const { start, state, holder, seen } = await setUpTaken('b')
    state.alive = [OWN]
    start()
    await pass(4)
    expect(await holder()).to.deep.equal(claim(OTHER, 'b'))
    await pass(1)
    expect([seen.result, await holder()]).to.deep.equal([true, claim(OWN, 'a')])
  })

  it('is taken at once from a worker that is known to be gone', async () => {
    const { start, state, holder } = await setUpTaken('b')
    Object.assign(state, { alive: [OWN], gone: [OTHER] })
    start()
    await pass(0)
    expect(await holder()).to.deep.equal(claim(OWN, 'a'))
  })

  it('is taken from a worker that dies in the meantime, up to the last try', async () => {
    const { start, state, holder, seen } = await setUpTaken('b')
    start()
    await pass(8)
    state.alive = [OWN]
    expect(await holder()).to.deep.equal(claim(OTHER, 'b'))
    await pass(1)
    expect([seen.result, await holder()]).to.deep.equal([true, claim(OWN, 'a')])
  })

  it('is not taken by a worker that hands its sessions over from the one that has the session from it', async () => {
    const { start, state, holder, seen } = await setUpTaken('a')
    state.isDraining = true
    start()
    await pass(9)
    expect([seen.result, await holder()]).to.deep.equal([false, claim(OTHER, 'a')])
  })

  it('is not made any more once the session was removed here', async () => {
    const { start, state, holder, seen, held } = await setUpTaken('b')
    state.alive = [OWN]
    start()
    await pass(3)
    held.length = 0
    await pass(1)
    expect([seen.result, await holder()]).to.deep.equal([true, claim(OTHER, 'b')])
  })

  it('is made as soon as Redis is back', async () => {
    let failures = 2
    const { claims, holder } = setUp([sessionOf('a')], () => {
      if (failures-- > 0) throw new AppError('unavailable', 'away')
    })
    claims.claimAll()
    await pass(2)
    expect(await holder()).to.deep.equal(claim(OWN, 'a'))
  })

  it('is not made for a session that was removed while Redis was away', async () => {
    let isAway = true
    const { claims, held, holder } = setUp([sessionOf('a')], () => {
      if (isAway) throw new AppError('unavailable', 'away')
    })
    claims.claimAll()
    await pass(2)
    held.length = 0
    isAway = false
    await pass(2)
    expect(await holder()).to.equal(undefined)
  })

  it('is made for all sessions again every hour, until the worker leaves', async () => {
    const { claims, owners, holder } = setUp([sessionOf('a')])
    claims.start()
    mock.timers.tick(3_600_000)
    await new Promise(setImmediate)
    expect(await holder()).to.deep.equal(claim(OWN, 'a'))
    await owners.release(KEY, claim(OWN, 'a'))
    claims.close()
    mock.timers.tick(3_600_000)
    await new Promise(setImmediate)
    expect(await holder()).to.equal(undefined)
  })
})

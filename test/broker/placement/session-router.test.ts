import { expect } from 'chai'
import type { Owners } from '../../../shared/broker/placement/owners.ts'
import { SessionRouter, type SessionRouterDeps } from '../../../shared/broker/placement/session-router.ts'
import { AppError, conflict, type ErrorCode, notFound } from '../../../shared/errors.ts'
import { DEFAULT_TENANT } from '../../../shared/tenant.ts'

const TENANT = DEFAULT_TENANT
const ID = 's1'

type Options = Partial<SessionRouterDeps> & { alive?: number[]; owner?: number; transfer?: Owners['transfer'] }

/** A router over workers 1 and 2, of which 1 is the owner by hashing; `claims` stands for the keys in Redis. */
function setUp({ alive = [1, 2], owner, transfer, ...deps }: Options = {}) {
  const claims = new Map<string, number>()
  if (owner !== undefined) claims.set(ID, owner)
  const owners: Owners = {
    async claim(_tenant, id, epoch) {
      if (!claims.has(id)) claims.set(id, epoch)
      return claims.get(id) ?? 0
    },
    find: async (_tenant, id) => claims.get(id),
    transfer:
      transfer ??
      (async (_tenant, id, { from, to }) => {
        const isOwner = claims.get(id) === from
        if (isOwner) claims.set(id, to)
        return isOwner
      }),
    async release(_tenant, id, epoch) {
      if (claims.get(id) === epoch) claims.delete(id)
    },
  }
  const workers = {
    isAlive: (epoch: number) => alive.includes(epoch),
    ownerOf: (_key: string, without?: number) => alive.find((epoch) => epoch !== without),
  }
  const router = new SessionRouter({
    workers,
    owners,
    discoverWorker: async () => false,
    isRebuilt: async () => true,
    ...deps,
  })
  return { router, claims }
}

const unavailable = (code: ErrorCode) => new AppError('unavailable', 'refused', { code })

const failureOf = async (act: Promise<unknown>): Promise<unknown> => {
  try {
    await act
  } catch (cause) {
    return cause
  }
  throw new Error('the call was not refused')
}

/** Creates the session where `refuse` does not throw; returns the epochs that were called. */
function creation(refuse: (epoch: number) => void = () => {}) {
  const [created, undone]: [number[], number[]] = [[], []]
  const create = async (epoch: number) => {
    created.push(epoch)
    refuse(epoch)
    return epoch
  }
  return { created, undone, create, undo: (epoch: number) => undone.push(epoch) }
}

describe('session router: creating a session', () => {
  it('a session is created on the worker it hashes to, which owns the claim from then on', async () => {
    const { router, claims } = setUp()
    expect(await router.create(TENANT, ID, creation())).to.equal(1)
    expect([...claims]).to.deep.equal([[ID, 1]])
  })

  it('a session id that an alive worker has claimed is a conflict, and the claim stays', async () => {
    const { router, claims } = setUp({ owner: 2 })
    const call = creation()
    expect(await failureOf(router.create(TENANT, ID, call))).to.include({ kind: 'conflict' })
    expect(call.created).to.deep.equal([])
    expect(claims.get(ID)).to.equal(2)
  })

  it('the claim of a dead worker is taken over', async () => {
    const { router, claims } = setUp({ owner: 9 })
    expect(await router.create(TENANT, ID, creation())).to.equal(1)
    expect(claims.get(ID)).to.equal(1)
  })

  it('when the claim of a dead worker is taken over by another gateway first, the session id is a conflict', async () => {
    const { router } = setUp({ owner: 9, transfer: async () => false })
    expect(await failureOf(router.create(TENANT, ID, creation()))).to.include({ kind: 'conflict' })
  })

  it('a refused creation releases its claim, but a conflict keeps it: the worker has the session', async () => {
    const refused = setUp()
    const full = creation(() => {
      throw new AppError('rate_limit', 'full')
    })
    expect(await failureOf(refused.router.create(TENANT, ID, full))).to.include({ kind: 'rate_limit' })
    expect(refused.claims.has(ID)).to.equal(false)
    expect([full.created, full.undone]).to.deep.equal([[1], []])

    const existing = setUp()
    const taken = creation(() => {
      throw conflict('exists')
    })
    expect(await failureOf(existing.router.create(TENANT, ID, taken))).to.include({ kind: 'conflict' })
    expect(existing.claims.get(ID)).to.equal(1)
  })

  it('when the worker does not answer, the creation is undone there and made on the next worker', async () => {
    const { router, claims } = setUp()
    const call = creation((epoch) => {
      if (epoch === 1) throw unavailable('worker_silent')
    })
    expect(await router.create(TENANT, ID, call)).to.equal(2)
    expect([call.created, call.undone]).to.deep.equal([[1, 2], [1]])
    expect(claims.get(ID)).to.equal(2)
  })

  it('when the next worker does not answer either, the session is 503 and has no claim', async () => {
    const { router, claims } = setUp()
    const call = creation(() => {
      throw unavailable('worker_silent')
    })
    expect(await failureOf(router.create(TENANT, ID, call))).to.include({ kind: 'unavailable' })
    expect(call.created).to.deep.equal([1, 2])
    expect(claims.has(ID)).to.equal(false)
  })

  it('without a worker, or while claims are written again, a creation is 503 and claims nothing', async () => {
    for (const deps of [{ alive: [] }, { isRebuilt: async () => false }]) {
      const { router, claims } = setUp(deps)
      expect(await failureOf(router.create(TENANT, ID, creation()))).to.include({ status: 503, retryAfterSecs: 2 })
      expect(claims.has(ID)).to.equal(false)
    }
  })
})

describe('session router: calling the owner', () => {
  it('calls the worker that the claim names, even if the session hashes to another', async () => {
    const { router } = setUp({ owner: 2 })
    expect(await router.callOwner(TENANT, ID, async (epoch) => epoch)).to.equal(2)
  })

  it('an unclaimed session is 404; while claims are written again it is 503', async () => {
    const call = async () => expect.fail('no worker may be called')
    expect(await failureOf(setUp().router.callOwner(TENANT, ID, call))).to.include({ status: 404 })
    const rebuilding = setUp({ isRebuilt: async () => false })
    expect(await failureOf(rebuilding.router.callOwner(TENANT, ID, call))).to.include({ status: 503 })
  })

  it('a session of a dead worker is 404, even while claims are written again', async () => {
    const { router } = setUp({ owner: 9, isRebuilt: async () => false })
    const call = async () => expect.fail('no worker may be called')
    expect(await failureOf(router.callOwner(TENANT, ID, call))).to.include({ status: 404 })
  })

  it('an owner that is not on the member list yet is called once it is discovered', async () => {
    const discovered: number[] = []
    const discoverWorker = async (epoch: number) => discovered.push(epoch) > 0
    const { router } = setUp({ owner: 9, discoverWorker })
    expect(await router.callOwner(TENANT, ID, async (epoch) => epoch)).to.equal(9)
    expect(discovered).to.deep.equal([9])
  })

  it('the owner’s refusal is returned at once, without another call', async () => {
    const { router } = setUp({ owner: 1 })
    const called: number[] = []
    const call = async (epoch: number) => {
      called.push(epoch)
      throw notFound('deleted')
    }
    expect(await failureOf(router.callOwner(TENANT, ID, call))).to.include({ kind: 'not_found' })
    expect(called).to.deep.equal([1])
  })

  it('a session that moves during the call is called again at its new owner', async () => {
    const { router, claims } = setUp({ owner: 1 })
    const result = await router.callOwner(TENANT, ID, async (epoch) => {
      if (epoch === 2) return 'answer'
      claims.set(ID, 2)
      throw notFound('handed over')
    })
    expect(result).to.equal('answer')
  })

  it('a draining owner is called again until it has handed the session over', async () => {
    const { router, claims } = setUp({ owner: 1 })
    const called: number[] = []
    const result = await router.callOwner(TENANT, ID, async (epoch) => {
      called.push(epoch)
      if (called.length === 2) claims.set(ID, 2)
      if (epoch === 1) throw unavailable('worker_draining')
      return 'answer'
    })
    expect(result).to.equal('answer')
    expect(called).to.deep.equal([1, 1, 2])
  })
})

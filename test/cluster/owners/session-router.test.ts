import { expect } from 'chai'
import { type Claim, isSameClaim, type Owners } from '../../../shared/cluster/owners/owners.ts'
import { SessionRouter, type SessionRouterDeps } from '../../../shared/cluster/owners/session-router.ts'
import { AppError, conflict, type ErrorCode, notFound } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { until } from '../../support/until.ts'

const SESSION = { tenant: DEFAULT_TENANT, id: 's1' }
const ID = SESSION.id

type Options = Partial<SessionRouterDeps> & { alive?: number[]; owner?: number } & Partial<
    Pick<Owners, 'replace' | 'release'>
  >

/** A router over workers 1 and 2, of which 1 is the owner by hashing; `claims` stands for the keys in Redis. */
function setUp({ alive = [1, 2], owner, replace, release, ...deps }: Options = {}) {
  const claims = new Map<string, Claim>()
  if (owner !== undefined) claims.set(ID, { epoch: owner, token: 'first' })
  const owners: Owners = {
    async claim({ id }, claim) {
      const holder = claims.get(id) ?? claim
      claims.set(id, holder)
      return holder
    },
    find: async ({ id }) => claims.get(id),
    replace:
      replace ??
      (async ({ id }, { from, to }) => {
        const isOwner = isSameClaim(claims.get(id), from)
        if (isOwner) claims.set(id, to)
        return isOwner
      }),
    takeOver: async () => expect.fail('a router takes no session over'),
    release:
      release ??
      (async ({ id }, claim) => {
        if (isSameClaim(claims.get(id), claim)) claims.delete(id)
        return true
      }),
  }
  const workers = {
    isAlive: (epoch: number) => alive.includes(epoch),
    ownerOf: (_key: string, without?: number) => alive.find((epoch) => epoch !== without),
  }
  const router = new SessionRouter({
    workers,
    owners,
    isMember: async () => false,
    isRebuilt: async () => true,
    ...deps,
  })
  return { router, claims, ownerOf: (id: string) => claims.get(id)?.epoch }
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
  const tokens: string[] = []
  const create = async ({ epoch, token }: Claim) => {
    created.push(epoch)
    tokens.push(token)
    refuse(epoch)
    return epoch
  }
  return { created, undone, tokens, create, undo: ({ epoch }: Claim) => undone.push(epoch) }
}

describe('session router: creating a session', () => {
  it('D36.4: a refused creation leaves its id free, also when the release had no answer at first', async () => {
    let isDeaf = true
    const made = setUp({
      async release({ id }, claim) {
        if (isDeaf) throw unavailable('worker_silent')
        if (isSameClaim(made.claims.get(id), claim)) made.claims.delete(id)
        return true
      },
    })
    const full = creation(() => {
      throw conflict('no')
    })
    expect(await failureOf(made.router.create(SESSION, full))).to.include({ kind: 'conflict' })
    expect(made.claims.size).to.equal(1)
    isDeaf = false
    await until(() => made.claims.size === 0, { what: 'the claim to be released' })
  })

  it('a session is created on the worker it hashes to, which owns the claim from then on', async () => {
    const { router, claims } = setUp()
    const call = creation()
    expect(await router.create(SESSION, call)).to.equal(1)
    expect([...claims]).to.deep.equal([[ID, { epoch: 1, token: call.tokens[0] }]])
  })

  it('a session id that an alive worker has claimed is a conflict, and the claim stays, whether the id hashes there or not', async () => {
    for (const owner of [1, 2]) {
      const { router, claims } = setUp({ owner })
      const call = creation()
      expect(await failureOf(router.create(SESSION, call))).to.include({ kind: 'conflict' })
      expect(call.created).to.deep.equal([])
      expect(claims.get(ID)).to.deep.equal({ epoch: owner, token: 'first' })
    }
  })

  it('a session id that a worker has claimed which this gateway does not know yet is a conflict', async () => {
    const asked: number[] = []
    const { router, ownerOf } = setUp({ owner: 9, isMember: async (epoch) => asked.push(epoch) > 0 })
    expect(await failureOf(router.create(SESSION, creation()))).to.include({ kind: 'conflict' })
    expect([asked, ownerOf(ID)]).to.deep.equal([[9], 9])
  })

  it('the claim of a dead worker is taken over', async () => {
    const { router, ownerOf } = setUp({ owner: 9 })
    expect(await router.create(SESSION, creation())).to.equal(1)
    expect(ownerOf(ID)).to.equal(1)
  })

  it('when the claim of a dead worker is taken over by another gateway first, the session id is a conflict', async () => {
    const { router } = setUp({ owner: 9, replace: async () => false })
    expect(await failureOf(router.create(SESSION, creation()))).to.include({ kind: 'conflict' })
  })

  it('a refused creation releases its own claim, and no claim that was made meanwhile', async () => {
    const refused = setUp({ alive: [1] })
    const full = creation(() => {
      throw new AppError('rate_limit', 'full')
    })
    expect(await failureOf(refused.router.create(SESSION, full))).to.include({ kind: 'rate_limit' })
    expect(refused.claims.has(ID)).to.equal(false)
    expect([full.created, full.undone]).to.deep.equal([[1], []])

    const existing = setUp()
    const taken = creation(() => {
      existing.claims.set(ID, { epoch: 1, token: 'held' }) // The worker has the session under this claim.
      throw conflict('exists')
    })
    expect(await failureOf(existing.router.create(SESSION, taken))).to.include({ kind: 'conflict' })
    expect(existing.claims.get(ID)).to.deep.equal({ epoch: 1, token: 'held' })
  })

  it('D1.3 SESSIONS_PER_WORKER: when the worker has no room, the session is created on the next worker', async () => {
    const { router, ownerOf } = setUp()
    const call = creation((epoch) => {
      if (epoch === 1) throw new AppError('rate_limit', 'full')
    })
    expect(await router.create(SESSION, call)).to.equal(2)
    expect([call.created, call.undone]).to.deep.equal([[1, 2], []])
    expect(ownerOf(ID)).to.equal(2)
  })

  it('when the worker does not answer, the creation is undone there and made on the next worker with another token', async () => {
    const { router, ownerOf } = setUp()
    const call = creation((epoch) => {
      if (epoch === 1) throw unavailable('worker_silent')
    })
    expect(await router.create(SESSION, call)).to.equal(2)
    expect([call.created, call.undone]).to.deep.equal([[1, 2], [1]])
    expect(new Set(call.tokens)).to.have.property('size', 2)
    expect(ownerOf(ID)).to.equal(2)
  })

  it('when the worker drains, the session is created on the next one, and nothing is undone', async () => {
    const { router, ownerOf } = setUp()
    const call = creation((epoch) => {
      if (epoch === 1) throw unavailable('worker_draining')
    })
    expect(await router.create(SESSION, call)).to.equal(2)
    expect([call.created, call.undone]).to.deep.equal([[1, 2], []])
    expect(ownerOf(ID)).to.equal(2)
  })

  it('a creation that was not answered is not repeated elsewhere when its claim is gone', async () => {
    const { router, claims } = setUp()
    const call = creation(() => {
      claims.set(ID, { epoch: 2, token: 'later' })
      throw unavailable('worker_silent')
    })
    expect(await failureOf(router.create(SESSION, call))).to.include({ kind: 'unavailable' })
    expect([call.created, call.undone]).to.deep.equal([[1], [1]])
    expect(claims.get(ID)).to.deep.equal({ epoch: 2, token: 'later' })
  })

  it('when the next worker does not answer either, the session is 503 and has no claim', async () => {
    const { router, claims } = setUp()
    const call = creation(() => {
      throw unavailable('worker_silent')
    })
    expect(await failureOf(router.create(SESSION, call))).to.include({ kind: 'unavailable' })
    expect([call.created, call.undone]).to.deep.equal([
      [1, 2],
      [1, 2],
    ])
    expect(claims.has(ID)).to.equal(false)
  })

  it('a session id that is stored is a conflict, whose claim is released, also when the store does not answer', async () => {
    const away = new AppError('unavailable', 'the store is away')
    const failing = { isStored: () => Promise.reject(away) }
    for (const [deps, kind] of [
      [{ isStored: async () => true }, 'conflict'] as const,
      [failing, 'unavailable'] as const,
    ]) {
      const { router, claims } = setUp(deps)
      const call = creation()
      expect(await failureOf(router.create(SESSION, call))).to.include({ kind })
      expect([call.created, claims.has(ID)]).to.deep.equal([[], false])
    }
  })

  it('a claim that cannot be released changes no answer: it expires by itself', async () => {
    const away = new AppError('unavailable', 'Redis is away')
    const release = () => Promise.reject(new Error('Redis is away'))
    const full = creation(() => {
      throw new AppError('rate_limit', 'full')
    })
    expect(await failureOf(setUp({ release }).router.create(SESSION, full))).to.include({ kind: 'rate_limit' })
    for (const [isStored, kind] of [
      [async () => true, 'conflict'],
      [() => Promise.reject(away), 'unavailable'],
    ] as const)
      expect(await failureOf(setUp({ release, isStored }).router.create(SESSION, creation()))).to.include({ kind })
  })

  it('a creation that is refused for what it asks, or fails by a bug, is made nowhere else and has no claim', async () => {
    for (const cause of [conflict('it does not fit'), new Error('a bug')]) {
      const { router, claims } = setUp()
      const call = creation(() => {
        throw cause
      })
      expect(await failureOf(router.create(SESSION, call))).to.equal(cause)
      expect([call.created, call.undone, claims.has(ID)]).to.deep.equal([[1], [], false])
    }
  })

  it('without a worker, or while claims are written again, a creation is 503 and claims nothing', async () => {
    for (const deps of [{ alive: [] }, { isRebuilt: async () => false }]) {
      const { router, claims } = setUp(deps)
      expect(await failureOf(router.create(SESSION, creation()))).to.include({ status: 503, retryAfterSecs: 2 })
      expect(claims.has(ID)).to.equal(false)
    }
  })
})

describe('session router: calling the owner', () => {
  it('calls the worker that the claim names, even if the session hashes to another', async () => {
    const { router } = setUp({ owner: 2 })
    expect(await router.callOwner(SESSION, async ({ epoch }) => epoch)).to.equal(2)
  })

  it('an unclaimed session is 404; while claims are written again it is 503', async () => {
    const call = async () => expect.fail('no worker may be called')
    expect(await failureOf(setUp().router.callOwner(SESSION, call))).to.include({ status: 404 })
    const rebuilding = setUp({ isRebuilt: async () => false })
    expect(await failureOf(rebuilding.router.callOwner(SESSION, call))).to.include({ status: 503 })
  })

  it('a session of a dead worker is 404; while claims are written again it is 503: the claim may be older than that of its worker', async () => {
    const call = async () => expect.fail('no worker may be called')
    for (const [isRebuilt, status] of [
      [true, 404],
      [false, 503],
    ] as const) {
      const { router } = setUp({ owner: 9, isRebuilt: async () => isRebuilt })
      expect(await failureOf(router.callOwner(SESSION, call))).to.include({ status })
    }
  })

  it('an owner that is not on the member list yet is called if Redis knows it as a member', async () => {
    const asked: number[] = []
    const { router } = setUp({ owner: 9, isMember: async (epoch) => asked.push(epoch) > 0 })
    expect(await router.callOwner(SESSION, async ({ epoch }) => epoch)).to.equal(9)
    expect(asked).to.deep.equal([9])
  })

  it('the owner’s refusal is returned at once, without another call', async () => {
    const { router } = setUp({ owner: 1 })
    const called: number[] = []
    const call = async ({ epoch }: Claim) => {
      called.push(epoch)
      throw notFound('deleted')
    }
    expect(await failureOf(router.callOwner(SESSION, call))).to.include({ kind: 'not_found' })
    expect(called).to.deep.equal([1])
  })

  it('a session that is gone when the answer to its deletion does not come was deleted; one that was unknown before is 404', async () => {
    const { router, claims } = setUp({ owner: 1 })
    await router.remove(SESSION, async () => {
      claims.delete(ID)
      throw unavailable('worker_silent')
    })
    expect(await failureOf(router.remove(SESSION, async () => {}))).to.include({ kind: 'not_found' })
    const other = setUp({ owner: 1 })
    const silent = async () => {
      throw unavailable('worker_silent')
    }
    expect(await failureOf(other.router.remove(SESSION, silent))).to.include({ code: 'worker_silent' })
  })

  it('a deletion without an answer was made when the session is known nowhere, and not while claims are written again', async () => {
    const moved = setUp({ owner: 1 })
    await moved.router.remove(SESSION, async ({ epoch }) => {
      if (epoch === 2) throw notFound('deleted by the first call, and handed over')
      moved.claims.set(ID, { epoch: 2, token: 'first' })
      throw unavailable('worker_silent')
    })
    const lost = setUp({ owner: 1, isRebuilt: async () => false })
    const silent = async () => {
      lost.claims.delete(ID)
      throw unavailable('worker_silent')
    }
    expect(await failureOf(lost.router.remove(SESSION, silent))).to.include({ code: 'worker_silent' })
  })

  it('a deletion that was refused is no deletion, though the session is gone', async () => {
    const { router, claims } = setUp({ owner: 1 })
    const refuse = async () => {
      claims.delete(ID)
      throw conflict('it runs')
    }
    expect(await failureOf(router.remove(SESSION, refuse))).to.include({ kind: 'conflict' })
  })

  it('an owner that does not know the session is believed only when no claims are written again', async () => {
    const { router } = setUp({ owner: 1, isRebuilt: async () => false })
    const gone = () => Promise.reject(notFound('handed over'))
    expect(await failureOf(router.callOwner(SESSION, gone))).to.include({ status: 503, retryAfterSecs: 2 })
    const busy = () => Promise.reject(conflict('it runs'))
    expect(await failureOf(router.callOwner(SESSION, busy))).to.include({ kind: 'conflict' })
  })

  it('a claim that is written again while that is asked for is found: its session is not taken for unknown', async () => {
    const { router, claims } = setUp({
      isRebuilt: async () => {
        claims.set(ID, { epoch: 2, token: 'again' })
        return true
      },
    })
    expect(await router.callOwner(SESSION, async ({ token }) => token)).to.equal('again')
  })

  it('a stored session without a worker is claimed for the one that it hashes to, which is called', async () => {
    for (const owner of [undefined, 9]) {
      const asked: string[] = []
      const { router, ownerOf } = setUp({
        ...(owner !== undefined && { owner }),
        isStored: async ({ id }) => asked.push(id) > 0,
      })
      expect(await router.callOwner(SESSION, async ({ epoch }) => epoch)).to.equal(1)
      expect([asked, ownerOf(ID)]).to.deep.equal([[ID], 1])
    }
  })

  it('whether a session is stored is not asked of one that is known to be, nor of one with an owner', async () => {
    const isStored = async () => expect.fail('it was asked')
    expect(await setUp({ isStored }).router.callOwner(SESSION, async ({ epoch }) => epoch, { isKnown: true })).to.equal(
      1,
    )
    expect(await setUp({ isStored, owner: 2 }).router.callOwner(SESSION, async ({ epoch }) => epoch)).to.equal(2)
  })

  it('a stored session that another gateway claims first is called at the worker of that claim', async () => {
    const { router, claims } = setUp({
      isStored: async () => {
        claims.set(ID, { epoch: 2, token: 'faster' })
        return true
      },
    })
    expect(await router.callOwner(SESSION, async ({ token }) => token)).to.equal('faster')
  })

  it('a stored session of a dead worker whose claim another gateway replaces first is called there, and is 503 without one', async () => {
    const call = async ({ token }: Claim) => token
    const faster = setUp({
      owner: 9,
      isStored: async () => true,
      replace: async () => {
        faster.claims.set(ID, { epoch: 2, token: 'faster' })
        return false
      },
    })
    expect(await faster.router.callOwner(SESSION, call)).to.equal('faster')
    const gone = setUp({
      owner: 9,
      isStored: async () => true,
      replace: async () => {
        gone.claims.delete(ID)
        return false
      },
    })
    expect(await failureOf(gone.router.callOwner(SESSION, call))).to.include({ status: 503, retryAfterSecs: 2 })
  })

  it('a session that moves during the call is called again at its new owner', async () => {
    const { router, claims } = setUp({ owner: 1 })
    const result = await router.callOwner(SESSION, async ({ epoch }) => {
      if (epoch === 2) return 'answer'
      claims.set(ID, { epoch: 2, token: 'first' })
      throw notFound('handed over')
    })
    expect(result).to.equal('answer')
  })

  it('a draining owner is called again until it has handed the session over', async () => {
    const { router, claims } = setUp({ owner: 1 })
    const called: number[] = []
    const result = await router.callOwner(SESSION, async ({ epoch }) => {
      called.push(epoch)
      if (called.length === 2) claims.set(ID, { epoch: 2, token: 'first' })
      if (epoch === 1) throw unavailable('worker_draining')
      return 'answer'
    })
    expect(result).to.equal('answer')
    expect(called).to.deep.equal([1, 1, 2])
  })

  it('an owner that is alive and does not answer is called once more; one that is not alive, or whose claim is gone, is not', async () => {
    const silent = async (set: ReturnType<typeof setUp>, onCall = () => {}) => {
      const called: number[] = []
      const call = async ({ epoch }: Claim) => {
        called.push(epoch)
        onCall()
        throw unavailable('worker_silent')
      }
      expect(await failureOf(set.router.callOwner(SESSION, call))).to.include({ code: 'worker_silent' })
      return called
    }
    expect(await silent(setUp({ owner: 1 }))).to.deep.equal([1, 1])
    expect(await silent(setUp({ owner: 9, isMember: async () => true }))).to.deep.equal([9])
    const gone = setUp({ owner: 1 })
    expect(await silent(gone, () => gone.claims.delete(ID))).to.deep.equal([1])

    let calls = 0
    const busy = async () => (++calls === 1 ? Promise.reject(unavailable('worker_silent')) : 'answer')
    expect(await setUp({ owner: 1 }).router.callOwner(SESSION, busy)).to.equal('answer')
  })
})

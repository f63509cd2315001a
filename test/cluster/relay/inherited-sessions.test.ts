import { expect } from 'chai'
import { openInherited } from '../../../shared/cluster/relay/gateway/open-inherited.ts'
import type { WorkerCalls } from '../../../shared/cluster/relay/gateway/worker-calls.ts'
import { inherit } from '../../../shared/cluster/relay/worker/inherit.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as tenant } from '../../../shared/kernel/tenant.ts'

type Asked = { epoch: number; lost: number; ids: string[] }

/** Sessions with an even number hash to worker 2, the others to worker 3. `answer` is what a worker says to a call. */
function setUp(answer: (asked: Asked) => boolean[]) {
  const asked: Asked[] = []
  const call = async ({ epoch }: { epoch: number }, _method: string, [lost, keys]: [number, { id: string }[]]) => {
    asked.push({ epoch, lost, ids: keys.map(({ id }) => id) })
    return answer({ epoch, lost, ids: keys.map(({ id }) => id) })
  }
  const parts = {
    workers: { ownerOf: (key: string) => 2 + (Number(key.split(' s')[1]) % 2) },
    calls: { call: call as unknown as WorkerCalls['call'] },
  }
  return { asked, open: (count: number) => openInherited(7, sessionsOf(count), parts) }
}

const sessionsOf = (count: number) => Array.from({ length: count }, (_, n) => ({ tenant, id: `s${n}`, mark: `m${n}` }))

describe('the sessions of a dead worker', () => {
  it('D32.8: are opened many at a time, each by the worker that it hashes to', async () => {
    const { asked, open } = setUp(({ ids }) => ids.map(() => true))
    expect((await open(200)).map(({ mark }) => mark)).to.have.members(sessionsOf(200).map(({ mark }) => mark))
    expect(asked.flatMap(({ ids }) => ids).toSorted()).to.deep.equal(
      sessionsOf(200)
        .map(({ id }) => id)
        .toSorted(),
    )
    for (const { epoch, lost, ids } of asked) {
      expect([lost, ids.length <= 32]).to.deep.equal([7, true])
      expect(ids.every((id) => 2 + (Number(id.slice(1)) % 2) === epoch)).to.equal(true)
    }
    expect(asked).to.have.length(8)
  })

  it('D32.8: which a worker does not open, or of which it does not answer, are left', async () => {
    const { open } = setUp(({ epoch, ids }) => {
      if (epoch === 3) throw new AppError('unavailable', 'silent')
      return ids.map((id) => id !== 's2')
    })
    expect((await open(6)).map(({ id }) => id)).to.deep.equal(['s0', 's4'])
  })
})

describe('a worker that is to open the sessions of a dead one', () => {
  const setUpWorker = ({ isMember = false, isRebuilt = true } = {}) => {
    const claimed: string[] = []
    const parts = {
      membership: { isMember: async () => isMember, isRebuilt: async () => isRebuilt },
      claims: { inherit: async ({ id }: { id: string }) => (claimed.push(id), true) },
      worker: {
        find: ({ id }: { id: string }) => (id === 's0' ? {} : undefined),
        inbox: {
          async getSession(_tenant: string, id: string) {
            if (id === 's2') throw new AppError('not_found', 'another worker has it')
          },
        },
      },
    }
    const open = (from = 9) =>
      inherit({ lost: 7, from }, sessionsOf(3), parts as unknown as Parameters<typeof inherit>[2])
    return { claimed, open }
  }

  it('D32.8: claims those that it does not have, and says which are open', async () => {
    const { claimed, open } = setUpWorker()
    expect([await open(), claimed]).to.deep.equal([
      [true, true, false],
      ['s1', 's2'],
    ])
  })

  it('D32.8: claims none while the other one is a member, or Redis has lost its keys', async () => {
    for (const state of [{ isMember: true }, { isRebuilt: false }]) {
      const { claimed, open } = setUpWorker(state)
      expect([await open(), claimed]).to.deep.equal([[false, false, false], []])
    }
  })

  it('D37.4: claims those of a member that drains and asks for it itself', async () => {
    const { claimed, open } = setUpWorker({ isMember: true })
    expect([await open(7), claimed]).to.deep.equal([
      [true, true, false],
      ['s1', 's2'],
    ])
  })
})

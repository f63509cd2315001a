import { expect } from 'chai'
import { type CommonParts, openClusterProcess, type RoleParts } from '../../services/wiring/cluster-process.ts'
import { useRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { useOpening } from './opening.ts'

describe('a process of the cluster', () => {
  const redis = useRedis()
  const opening = useOpening()
  const readiness = { isBusAway: false, isMember: true }

  async function open(changes: Partial<RoleParts> = {}) {
    const closed: string[] = []
    const closer = (common: CommonParts<undefined>, name: string) => common.closer(name, () => closed.push(name), 500)
    const member = await openClusterProcess(
      {
        role: 'worker',
        settings: opening.settings({ REDIS_URL: redis.url }, 'cluster'),
        log: opening.log,
        openStore: async () => undefined,
      },
      async (common) => ({
        relay: { epoch: 7, readiness: () => ({ ...readiness }) as never, stop: async () => void closed.push('relay') },
        work: [closer(common, 'work')],
        rest: [closer(common, 'rest')],
        closeTools: async () => void closed.push('tools'),
        ...changes,
      }),
    )
    const close = async () => {
      for (const { close: end } of member.closers.splice(0)) await end()
    }
    opening.closing(close)
    /** The answer of /readyz: empty when the process is ready. */
    const failing = async () => {
      const response = await fetch(`${String(member.ready['ops_url'])}/readyz`)
      return response.status === 200 ? '' : JSON.stringify(await response.json())
    }
    return { ...member, close, closed, failing }
  }

  it('is named by its role and its epoch in the cluster, and is ready when it is a member', async () => {
    const { ready, failing } = await open({ url: 'http://127.0.0.1:1' })
    expect(ready).to.include({ role: 'worker', id: 'wk_7', url: 'http://127.0.0.1:1' })
    expect(await failing()).to.equal('')
  })

  it('closes its work first, then leaves the cluster, and its Redis last but the ops pages', async () => {
    const { closers, close, closed } = await open()
    const names = closers.map(({ name }) => name)
    expect(names.slice(1, -1)).to.deep.equal([
      ...['work', 'membership', 'rest', 'queue', 'tools', 'tenant configuration', 'events', 'store', 'redis'],
    ])
    expect(closers[1]?.deadlineMs).to.equal(5_500)
    await close()
    expect(closed).to.deep.equal(['work', 'relay', 'rest', 'tools'])
  })

  it('is not ready before its role says so, and not while it is no member', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { failing } = await open({ whenReady: promise })
    expect(await failing()).to.include('starting')
    resolve()
    await until(async () => (await failing()) === '', { what: 'the process to be ready' })
    readiness.isMember = false
    expect(await failing()).to.include('membership')
    readiness.isBusAway = true
    expect(await failing())
      .to.include('redis')
      .and.not.include('membership') // Without Redis nobody can be a member.
    Object.assign(readiness, { isBusAway: false, isMember: true })
  })
})

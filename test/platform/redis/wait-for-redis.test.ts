import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { waitForRedis } from '../../../shared/platform/redis/wait-for-redis.ts'
import { Child } from '../../support/child.ts'
import { useRedis } from '../../support/redis.ts'

const log = { warn: () => {} }
const late = () => new AppError('unavailable', 'try again', { cause: new Error('Command timed out') })

describe('waiting for Redis at the start of a process', () => {
  it('repeats a request that was not answered in time, and none that failed otherwise', async () => {
    const outcomes = [late(), new Error('connect ETIMEDOUT'), 'done']
    const answer = async () => {
      const outcome = outcomes.shift()
      if (outcome instanceof Error) throw outcome
      return outcome
    }
    expect(await waitForRedis(answer, { log })).to.equal('done')
    let asked = 0
    const refuse = async () => {
      asked++
      throw new Error('connect ECONNREFUSED 127.0.0.1:1')
    }
    const failure = await waitForRedis(refuse, { log }).catch((cause: unknown) => cause)
    expect(failure).to.match(/ECONNREFUSED/)
    expect(asked).to.equal(1)
  })

  it('gives up with the last failure', async () => {
    const failure = await waitForRedis(() => Promise.reject(late()), { log, withinMs: 1 }).catch(
      (cause: unknown) => cause,
    )
    expect(failure).to.be.instanceOf(AppError)
  })
})

describe('processes that start while Redis does not answer', () => {
  const redis = useRedis()

  for (const role of ['worker', 'gateway'])
    it(`a ${role} waits, and listens when Redis answers again`, async () => {
      await redis.server.kill('SIGSTOP')
      const main = new URL(`../../../services/${role}/main.ts`, import.meta.url).pathname
      const env = { REDIS_URL: redis.url, MODEL_PROVIDER: 'demo', HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0' }
      const child = new Child(process.execPath, [main], { ...env, DRAIN_SECS: '0', DATA_DIR: '/nonexistent' })
      try {
        await child.line(/the start waits for it/)
        await redis.server.kill('SIGCONT')
        await child.line(/"msg":"listening"/)
        expect(await child.end()).to.equal(0)
      } finally {
        await child.end('SIGKILL')
      }
    })
})

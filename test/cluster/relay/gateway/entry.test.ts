// Tests gateway.ts: gateways that join, lose Redis and enter again.

import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { useRedis } from '../../../support/redis.ts'
import { createTestRelay, type Gateway } from '../../../support/relay.ts'
import { until } from '../../../support/until.ts'

const TENANT = DEFAULT_TENANT

async function statusOfRun({ broker }: Gateway): Promise<string> {
  try {
    const { frames } = await broker.startRun(TENANT, { prompt: '/say hi' })
    let text = ''
    for await (const chunk of frames) text += Buffer.from(chunk.text)
    return text.includes('event: done') ? 'done' : text
  } catch (cause) {
    return String(cause)
  }
}

describe('entering the cluster over Redis', () => {
  const redis = useRedis()
  const relay = createTestRelay(() => redis.url)
  afterEach(() => relay.close())

  it('an evicted gateway whose subscription fails once enters again, and reaches the workers as before', async () => {
    await relay.worker()
    const gateway = await relay.gateway()
    const { epoch, link } = gateway
    const subscribe = link.subscribe
    let failures = 0
    link.subscribe = async (...args) => {
      link.subscribe = subscribe
      failures++
      throw new Error(`no subscription to ${args[0]}`)
    }
    await redis.connect().hdel('ae:{members}', String(epoch))
    await until(() => gateway.epoch !== epoch, { what: 'the gateway to enter again' })
    expect([failures, await statusOfRun(gateway)]).to.deep.equal([1, 'done'])
  })

  it('an evicted gateway enters under a new epoch before its streams end, so that they are detached under the new one', async () => {
    await relay.worker()
    const gateway = await relay.gateway()
    const { epoch } = gateway
    const { frames } = await gateway.broker.startRun(TENANT, { prompt: '/sleep 60000' })
    await redis.connect().hdel('ae:{members}', String(epoch))
    for await (const chunk of frames) {
      if (Buffer.from(chunk.text).includes('relay_unavailable')) expect(gateway.epoch).not.to.equal(epoch)
    }
    expect(await statusOfRun(gateway)).to.equal('done')
  })

  it('a gateway that knows no worker lists the members before it refuses a run or a session', async () => {
    const [gateway, other] = [await relay.gateway(), await relay.gateway()]
    await relay.worker()
    const { session_id: id } = await other.broker.createSession(TENANT)
    expect([await statusOfRun(gateway), id.slice(0, 5)]).to.deep.equal(['done', 'sess_'])
  })
})

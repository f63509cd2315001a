import { expect } from 'chai'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { idsOf, statusOf, textOf } from '../support/broker-answers.ts'
import { elapsedMs } from '../support/elapsed.ts'
import { useRedis } from '../support/redis.ts'
import { createTestRelay } from '../support/relay.ts'
import { until } from '../support/until.ts'

const TENANT = DEFAULT_TENANT

describe('the queue of a session on a draining worker', () => {
  const redis = useRedis()
  const relay = createTestRelay(() => redis.url)
  afterEach(() => relay.close())

  /** A session on a worker that drains while the session's first message waits for permission. */
  async function setUp({ graceMs = 20_000, hasSuccessor = true, resumeMs = 300 } = {}) {
    const leaving = await relay.worker({ limits: { runResumeMs: resumeMs } })
    const { broker } = await relay.gateway()
    const { session_id: id } = await broker.createSession(TENANT)
    const send = async (prompt: string) => {
      const { runId, frames } = await broker.sendMessage(TENANT, id, { prompt })
      return { runId, text: textOf(frames) }
    }
    const first = await send('/tool Ask {}')
    await until(async () => (await broker.getRun(TENANT, first.runId)).status === 'waiting', { what: 'the question' })
    const staying = hasSuccessor ? await relay.worker() : undefined
    const drained = leaving.drain(graceMs)
    await until(() => leaving.worker.isDraining(), { what: 'the drain' })
    return { leaving, staying, broker, id, send, first, drained }
  }

  const countOf = async (broker: Broker, id: string) => (await broker.getSession(TENANT, id)).message_count

  it('D4.6: messages that wait when their worker drains, or are sent then, are answered in order by the next worker', async () => {
    const { leaving, staying, broker, id, send, first, drained } = await setUp()
    const sentAt = elapsedMs()
    const later = [await send('/say two'), await send('/say three')]
    expect(elapsedMs() - sentAt, 'they are accepted at once').to.be.lessThan(1_000)
    const other = (await relay.gateway()).broker
    const [second] = later
    expect((await other.getRun(TENANT, second?.runId ?? '')).status).to.equal('waiting')
    const followed = textOf(await other.followRun(TENANT, second?.runId ?? '', 0))
    await broker.cancelRun(TENANT, first.runId)
    const texts = await Promise.all(later.map(({ text }) => text))
    for (const [i, text] of texts.entries()) {
      expect(text).to.include('event: done').and.include(['two', 'three'][i])
      expect(idsOf(text)).to.deep.equal(idsOf(text).map((_, at) => at + 1))
    }
    expect(await followed).to.equal(texts[0])
    await drained
    await leaving.leave()
    expect(Array.from(staying?.worker.sessions() ?? [], (session) => session.id)).to.deep.equal([id])
    for (const { runId } of later) {
      const isFound = async () => (await statusOf(other.getRun(TENANT, runId))) === 200
      await until(isFound, { what: 'the gateway to notice that the worker has left' })
      expect(await other.getRun(TENANT, runId)).to.include({ run_id: runId, status: 'done' })
      expect(await textOf(await other.followRun(TENANT, runId, 0))).to.include('event: done')
    }
    expect(await countOf(broker, id)).to.equal(5)
  })

  it('D4.6: a message that waits when the drain time is over is answered by the next worker, and the one before it is cut', async () => {
    const { send, first, drained } = await setUp({ graceMs: 800 })
    const second = await send('/say two')
    expect(await first.text).to.include('"code":"worker_draining"')
    expect(await second.text)
      .to.include('event: done')
      .and.include('two')
    await drained
  })

  it('D4.12: a permission request of a run that was handed over is listed and can be answered', async () => {
    const { leaving, broker, id, send, first, drained } = await setUp()
    const second = await send('/tool Ask {}')
    await broker.cancelRun(TENANT, first.runId)
    await first.text
    await drained
    await leaving.leave()
    const listed = async () => (await broker.listPermissions(TENANT, { limit: 10 })).permissions[0]
    const request = await until(listed, { what: 'the request of the second run' })
    expect(request).to.include({ session_id: id, run_id: second.runId })
    await broker.replyPermission(TENANT, id, request.id, { allow: true })
    expect(await second.text).to.include('event: done')
  })

  it('a run that was handed over is found again after Redis has lost its keys', async () => {
    const { leaving, broker, send, first, drained } = await setUp()
    const second = await send('/tool Ask {}')
    await broker.cancelRun(TENANT, first.runId)
    await first.text
    await drained
    await leaving.leave()
    await redis.connect().flushall()
    const isFound = async () => (await statusOf(broker.getRun(TENANT, second.runId))) === 200
    await until(isFound, { what: 'the run to be found' })
    await broker.cancelRun(TENANT, second.runId)
    await second.text
  })

  it('a message that waits is cancelled on either worker, and the next one is answered', async () => {
    const { broker, send, first, drained } = await setUp()
    const [second, third, fourth] = [await send('/say two'), await send('/tool Ask {}'), await send('/say four')]
    await broker.cancelRun(TENANT, second.runId)
    expect(await second.text).to.include('"code":"cancelled"')
    await broker.cancelRun(TENANT, first.runId)
    await drained
    await until(async () => (await broker.getRun(TENANT, third.runId)).status === 'waiting', { what: 'the third run' })
    await broker.cancelRun(TENANT, third.runId)
    expect(await third.text).to.include('"code":"cancelled"')
    expect(await fourth.text).to.include('event: done')
  })

  it('without another worker the messages that wait are answered within the drain time', async () => {
    const { broker, send, first, drained } = await setUp({ hasSuccessor: false })
    const second = await send('/say two')
    await broker.cancelRun(TENANT, first.runId)
    expect(await second.text).to.include('event: done')
    await drained
  })

  it('a worker that took a session over too late does not answer its messages a second time', async () => {
    const { staying, broker, id, send, first, drained, leaving } = await setUp({ graceMs: 12_000 })
    const second = await send('/say two')
    const run = staying?.link.run
    const isHeldBack = Promise.withResolvers<void>()
    if (staying && run) {
      staying.link.run = async (...args) => {
        if (args[0].name === 'aeReplaceClaim') await isHeldBack.promise
        return run(...args)
      }
    }
    await broker.cancelRun(TENANT, first.runId)
    expect(await second.text, 'the draining worker takes the session back').to.include('event: done')
    isHeldBack.resolve()
    await until(() => [...(staying?.worker.sessions() ?? [])].length === 0, { what: 'the late session to be dropped' })
    expect(await countOf(broker, id)).to.equal(3)
    expect([...leaving.worker.sessions()]).to.have.length(1)
    await drained
  })

  it('D4.5b: a run that ends on a draining worker can be followed for RUN_RESUME_SECS before the worker leaves', async () => {
    const { leaving, staying, broker, first, drained } = await setUp({ resumeMs: 2_000 })
    await broker.cancelRun(TENANT, first.runId)
    await first.text
    const endedAt = performance.now()
    const left = drained.then(() => leaving.leave())
    await until(() => [...(staying?.worker.sessions() ?? [])].length > 0, { what: 'the session to move' })
    expect(await statusOf(broker.getRun(TENANT, first.runId))).to.equal(200)
    expect(await textOf(await broker.followRun(TENANT, first.runId, 0))).to.include('"code":"cancelled"')
    await left
    expect(performance.now() - endedAt).to.be.at.least(1_900)
  })

  it('a worker that drains leaves at once when there is no gateway to ask for its runs', async () => {
    const leaving = await relay.worker()
    const gateway = await relay.gateway()
    await textOf((await gateway.broker.startRun(TENANT, { prompt: '/say hi' })).frames)
    await gateway.stop()
    const since = elapsedMs()
    await leaving.drain(15_000)
    expect(elapsedMs() - since).to.be.lessThan(10_000)
  })
})

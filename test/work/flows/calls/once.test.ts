import { expect } from 'chai'
import { AppError, invalidRequest } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { createIdempotency, type Idempotency } from '../../../../shared/platform/store/idempotency.ts'
import { startOnce } from '../../../../shared/work/flows/calls/once.ts'
import type { Dispatch } from '../../../../shared/work/flows/port.ts'
import { newDispatch } from '../../../contract/dispatch-setup.ts'
import { useTestStore } from '../../../support/test-store.ts'
import { until } from '../../../support/until.ts'

const LOST = { status: 502, type: 'upstream_error', message: 'lost', code: 'worker_lost' }

describe('starting an execution once for each key', () => {
  const opened = useTestStore()
  let idempotency: Idempotency
  let keys = 0

  before(() => {
    idempotency = createIdempotency(opened.store)
  })

  /** Executions of one test: `execute` records that they were started. */
  function newTest() {
    const dispatches = new Map<string, Dispatch>()
    const key = `key-${++keys}`
    const closed: string[] = []
    const waiting = new Map<string, number>()
    const store = (traceId: string) =>
      dispatches.set(traceId, newDispatch(0, { trace_id: traceId, status: 'running', executor: 7 }))
    const start = (body: object, execute?: (traceId: string) => Promise<void>, onClose = () => {}) =>
      startOnce(
        TENANT,
        {
          key,
          body,
          find: async (traceId) => dispatches.get(traceId),
          async isWaiting(traceId) {
            const looks = waiting.get(traceId)
            if (looks !== undefined) waiting.set(traceId, looks + 1)
            return looks !== undefined
          },
          async execute(traceId) {
            await execute?.(traceId)
            store(traceId)
          },
          async close(traceId) {
            onClose()
            if (dispatches.has(traceId)) return false
            closed.push(traceId)
            return true
          },
        },
        idempotency,
      )
    return { dispatches, closed, waiting, store, start }
  }

  it('joins the execution of the same request, whatever the order of its fields', async () => {
    const { start, dispatches } = newTest()
    const first = await start({ a: 1, b: { c: 2, d: 3 } })
    expect(first.isReplayed).to.equal(false)
    expect(await start({ b: { d: 3, c: 2 }, a: 1 })).to.deep.equal({ traceId: first.traceId, isReplayed: true })
    expect(dispatches.size).to.equal(1)
  })

  it('executes one of 20 requests that come at the same time', async () => {
    const { start, dispatches } = newTest()
    const all = await Promise.all(Array.from({ length: 20 }, () => start({ a: 1 })))
    expect(dispatches.size).to.equal(1)
    expect(new Set(all.map(({ traceId }) => traceId)).size).to.equal(1)
    expect(all.filter(({ isReplayed }) => !isReplayed)).to.have.length(1)
  })

  it('refuses another request with 409', async () => {
    const { start } = newTest()
    await start({ a: 1 })
    const refusal = await start({ a: 2 }).catch((cause: unknown) => cause)
    expect(refusal).to.be.instanceOf(AppError)
    expect(refusal).to.include({ status: 409, code: 'idempotency_mismatch' })
  })

  it('does not use up the key of a request that is refused', async () => {
    const { start, dispatches } = newTest()
    const refused = start({ a: 1 }, async () => {
      throw invalidRequest('wrong')
    })
    expect(await refused.catch(({ message }: Error) => message)).to.equal('wrong')
    expect((await start({ a: 2 })).isReplayed).to.equal(false)
    expect(dispatches.size).to.equal(1)
  })

  it('executes again what was lost with its executor, once for several requests', async () => {
    const { start, dispatches } = newTest()
    const { traceId } = await start({ a: 1 })
    dispatches.set(traceId, newDispatch(0, { trace_id: traceId, status: 'error', error: LOST }))
    const all = await Promise.all(Array.from({ length: 5 }, () => start({ a: 1 })))
    expect(new Set(all.map((each) => each.traceId))).to.have.property('size', 1)
    expect(all[0]?.traceId).to.not.equal(traceId)
    expect(dispatches.size).to.equal(2)
  })

  it('takes the key over from a process that died before it had stored its execution', async () => {
    const { start, dispatches, closed } = newTest()
    const { traceId } = await start({ a: 1 })
    dispatches.delete(traceId)
    const again = await start({ a: 1 })
    expect(again.isReplayed).to.equal(false)
    expect(again.traceId).to.not.equal(traceId)
    expect(closed, 'so that the first process does not store it any more').to.deep.equal([traceId])
  })

  it('D54.5: joins an execution whose start waits for its place, for however long', async () => {
    const { start, dispatches, closed, waiting } = newTest()
    let first = ''
    const turn = Promise.withResolvers<void>()
    const starting = start({ a: 1 }, (traceId) => {
      first = traceId
      waiting.set(traceId, 0)
      return turn.promise
    })
    await until(() => first, { what: 'the first to wait' })
    const joining = start({ a: 1 })
    await until(() => Number(waiting.get(first)) > 5 || closed.length > 0, {
      what: 'the second to have looked for longer than a record takes to appear',
    })
    waiting.delete(first)
    turn.resolve()
    expect((await starting).traceId).to.equal(first)
    expect([await joining, dispatches.size, closed]).to.deep.equal([{ traceId: first, isReplayed: true }, 1, []])
  })

  it('D36.5: joins an execution that is stored just before its key would be taken over', async () => {
    const { start, dispatches, store } = newTest()
    const { traceId } = await start({ a: 1 })
    dispatches.delete(traceId)
    const again = await start({ a: 1 }, undefined, () => store(traceId))
    expect(again).to.deep.equal({ traceId, isReplayed: true })
    expect(dispatches.size).to.equal(1)
  })

  it('D36.5: keeps the key of a refused start whose execution is stored all the same: who sends it again joins', async () => {
    const { start, dispatches, store } = newTest()
    let asked = ''
    const execute = async (traceId: string) => {
      asked = traceId
      throw new AppError('unavailable', 'the store did not answer')
    }
    const refused = start({ a: 1 }, execute, () => store(asked))
    expect(await refused.catch(({ message }: Error) => message)).to.equal('the store did not answer')
    expect(await start({ a: 1 })).to.deep.equal({ traceId: asked, isReplayed: true })
    expect(dispatches.size).to.equal(1)
  })
})

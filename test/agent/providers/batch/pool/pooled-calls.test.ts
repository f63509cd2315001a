// Tests batch/pool/pooled-calls.ts: model calls of runs that wait for the batches of vendors, over their wire formats, with a clock that a test sets.

import { expect } from 'chai'
import { createProvider } from '../../../../../services/wiring/models/create-provider.ts'
import { apiBase } from '../../../../../shared/agent/providers/base-url.ts'
import { PoolDriver } from '../../../../../shared/agent/providers/batch/pool/driver.ts'
import { CallPool } from '../../../../../shared/agent/providers/batch/pool/pool.ts'
import { pooledCalls } from '../../../../../shared/agent/providers/batch/pool/pooled-calls.ts'
import { PoolStore } from '../../../../../shared/agent/providers/batch/pool/store.ts'
import { openVendorBatches } from '../../../../../shared/agent/providers/batch/vendors.ts'
import { createHttpSend } from '../../../../../shared/agent/providers/chat/transport.ts'
import { callModel } from '../../../../../shared/agent/providers/failures/failover.ts'
import { oneByOne } from '../../../../../shared/kernel/async/batch.ts'
import { newId } from '../../../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT } from '../../../../../shared/kernel/tenant.ts'
import type { CancelCode } from '../../../../../shared/work/runs/run-identity.ts'
import { type ModelServer, startModelServer } from '../../../../support/model-server/model-server.ts'
import { SILENT_LOG } from '../../../../support/silent-log.ts'
import { useTestStore } from '../../../../support/test-store.ts'
import { until } from '../../../../support/until.ts'
import { VendorBatchServer } from '../../../../support/vendor-batches.ts'

const HOUR_MS = 3_600_000
const PATHS = { openai: '/v1', anthropic: '/v1', google: '/v1beta' } as const
const send = createHttpSend({ connectMs: 1_000 })

describe('the model calls of runs without haste', () => {
  const opened = useTestStore({ perTest: true })
  let model: ModelServer
  let vendor: VendorBatchServer
  beforeEach(async () => {
    model = await startModelServer()
    model.otherwise(() => 'good')
    vendor = await new VendorBatchServer(model).listen()
  })
  afterEach(async () => {
    await vendor.close()
    await model.close()
  })

  async function open(type: keyof typeof PATHS = 'openai') {
    const clock = { ms: Date.now() }
    const now = () => new Date(clock.ms)
    const access = { type, baseUrl: vendor.origin + PATHS[type], apiKey: 'sk-1' }
    const pool = new CallPool({ store: new PoolStore(opened.store), now })
    const openVendor = async () => openVendorBatches({ ...access, headers: {}, send })
    const hooks = { assertBudget: async () => {}, onAnswered: async () => {} }
    const driver = new PoolDriver({ store: pool.store, openVendor, ...hooks, now, log: SILENT_LOG })
    const pauses: { go(): void; signal: AbortSignal }[] = []
    const plain = await createProvider({ ...access, send, fetch })
    const pooled = pooledCalls({
      ...{ pool, instance: 'main', base: apiBase(type, access.baseUrl).href, now, log: SILENT_LOG },
      open: (transportOf) => createProvider({ ...access, ...transportOf({ send, fetch }) }),
      pause: (_ms, signal) => {
        const { promise, resolve } = Promise.withResolvers<void>()
        pauses.push({ go: resolve, signal })
        signal.addEventListener('abort', () => resolve())
        return promise
      },
    })
    /** Once so many calls wait, some time goes by, and the pool is looked at. */
    const go = async (count: number, ms = 10_000) => {
      await until(() => pauses.length >= count, { what: 'the calls to wait' })
      clock.ms += ms
      await driver.look()
      await driver.settled()
      for (const { go: resume } of pauses.splice(0)) resume()
    }
    const callerOf = (runId: string = newId('run'), startMs = clock.ms) => ({
      unhurried: {
        ...{ tenant: TENANT, runId, untilMs: startMs + 8 * HOUR_MS, liveMs: startMs + 9 * HOUR_MS },
        ...{ expiresMs: startMs + 48 * HOUR_MS, asked: new Set<string>() },
      },
    })
    const call = async (caller = callerOf(), signal = new AbortController().signal) => {
      const request = {
        messages: [{ role: 'user' as const, text: caller.unhurried.runId }],
        tools: [],
        stopSequences: [],
      }
      const primary = { provider: { ...plain, pooled }, model: 'm-1', caller }
      const kinds: string[] = []
      let factor: number | undefined
      for await (const part of oneByOne(callModel({ primary, fallback: undefined, request, signal }))) {
        const kind = part.type === 'warning' ? part.code : part.type
        if (kinds.at(-1) !== kind) kinds.push(kind)
        if (part.type === 'finish') factor = part.usage?.priceFactor
      }
      return { kinds, factor }
    }
    return { call, callerOf, go, clock, pauses }
  }

  const ANSWERED = { kinds: ['waiting_for_batch', 'text_delta', 'text_end', 'finish'], factor: 0.5 }
  const LIVE = { kinds: ['text_delta', 'text_end', 'finish'], factor: undefined }

  for (const type of ['openai', 'anthropic', 'google'] as const)
    it(`D58.6: of many runs are one batch of ${type}, streamed as always, for half the price; what is asked once more goes live`, async () => {
      const { call, callerOf, go } = await open(type)
      const callers = [1, 2, 3].map(() => callerOf())
      const calls = Promise.all(callers.map((caller) => call(caller)))
      for (let step = 0; step < 2; step++) await go(3)
      expect(await calls).to.deep.equal([ANSWERED, ANSWERED, ANSWERED])
      expect([vendor.batches.map(({ lines }) => lines.length), vendor.liveCalls]).to.deep.equal([[3], 0])
      expect(await call(callers[0])).to.deep.equal(LIVE)
      expect(vendor.liveCalls).to.equal(1)
    })

  it('D58.6: of a run that another process goes on with join what is at the vendor', async () => {
    const { call, callerOf, go } = await open()
    vendor.isHeld = true
    const leaving = new AbortController()
    const caller = callerOf()
    const first = call(caller, leaving.signal)
    await go(1)
    leaving.abort('worker_draining' satisfies CancelCode)
    expect((await first).kinds).to.deep.equal(['waiting_for_batch'])
    for (const kept of vendor.batches) await vendor.release(kept)
    const next = call(callerOf(caller.unhurried.runId))
    await go(1)
    expect(await next).to.deep.equal(ANSWERED)
    expect([...vendor.submitted.values()]).to.deep.equal([1])
    expect(vendor.batches[0]?.isCancelled).to.equal(false)
  })

  it('D58.6: of a run that is cancelled are withdrawn', async () => {
    const { call, callerOf, go, pauses } = await open()
    vendor.isHeld = true
    const stop = new AbortController()
    const calling = call(callerOf(), stop.signal)
    await go(1)
    await until(() => pauses.length === 1, { what: 'the call to wait again' })
    stop.abort('cancelled' satisfies CancelCode)
    expect((await calling).kinds).to.deep.equal(['waiting_for_batch'])
    await go(0, 0)
    expect(vendor.batches.map(({ isCancelled }) => isCancelled)).to.deep.equal([true])
  })

  it('D58.6: go live where the vendor has failed, and near the deadline', async () => {
    const { call, callerOf, go, clock } = await open()
    model.answer({ status: 503 })
    const failing = call()
    for (let step = 0; step < 2; step++) await go(1)
    expect(await failing).to.deep.equal({ ...LIVE, kinds: ['waiting_for_batch', ...LIVE.kinds] })
    vendor.isHeld = true
    const late = call()
    await go(1)
    await go(1, 9 * HOUR_MS)
    expect(await late).to.deep.equal({ ...LIVE, kinds: ['waiting_for_batch', ...LIVE.kinds] })
    expect(await call(callerOf(undefined, clock.ms - 8 * HOUR_MS))).to.deep.equal(LIVE)
    expect(vendor.batches).to.have.length(2)
  })
})

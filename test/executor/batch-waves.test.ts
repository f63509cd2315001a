// Tests batch-waves.ts: the way of a chunk's calls through a vendor's batches, with a vendor and a clock that a test sets.

import { expect } from 'chai'
import { BatchWaves, type ChunkOfBatch } from '../../services/executor/batch-waves.ts'
import { PoolDriver } from '../../shared/agent/providers/batch/pool/driver.ts'
import { CallPool } from '../../shared/agent/providers/batch/pool/pool.ts'
import { PoolStore } from '../../shared/agent/providers/batch/pool/store.ts'
import type { Tool } from '../../shared/agent/tools/port.ts'
import { itemTraceId } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { type Batch, divide } from '../../shared/work/flows/batch/batch.ts'
import { BatchStore } from '../../shared/work/flows/batch/store.ts'
import { GOOD, ScriptedVendor } from '../support/scripted-vendor.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { useTestStore } from '../support/test-store.ts'

const HOUR_MS = 3_600_000
const SOON_MS = 10_000
const CHECKER = { findUnusable: async () => [], check: async () => [] }
const EPOCH = 7
const TOOLS: Record<string, Tool> = Object.fromEntries(
  ['look', 'file'].map((name) => [name, { name, usesFiles: name === 'file' } as Tool]),
)
const DEFINITION = { input_schema: {}, output_schema: {}, tools: [], sub_agents: [], evolve: false }

describe('the waves of a chunk', () => {
  const opened = useTestStore({ perTest: true })

  /** A chunk of three items, each of which makes `turns` calls. */
  async function open({ turns = 1 } = {}) {
    const clock = { ms: Date.now() }
    const id = `batch_${Math.random().toString(16).slice(2).padEnd(32, '0')}`
    const batch: Batch = {
      ...{
        batch_id: id,
        flow: { name: 'f', uid: 'u', version: 1 },
        subject: 'anna',
        model: 'm',
        vendor_instance: 'main',
      },
      ...{ request: { provider_instance: 'main' }, status: 'running', items: 3, chunks: 1, ended_at: null },
      created_at: new Date(clock.ms).toISOString(),
      deadline_at: new Date(clock.ms + 24 * HOUR_MS).toISOString(),
      expires_at: new Date(clock.ms + 720 * HOUR_MS).toISOString(),
    }
    const chunks = divide(
      id,
      [1, 2, 3].map((n) => ({ input: { n } })),
    )
    const batches = new BatchStore(opened.store)
    await batches.create(TENANT, batch, chunks)
    const now = () => new Date(clock.ms)
    const pool = new CallPool({ store: new PoolStore(opened.store), now })
    const vendor = new ScriptedVendor()
    const openVendor = async () => vendor
    const hooks = { assertBudget: async () => {}, onAnswered: async () => {} }
    const driver = new PoolDriver({ store: pool.store, openVendor, ...hooks, now, log: SILENT_LOG })
    const rehearsed: unknown[] = []
    const waves = new BatchWaves({
      ...{ pool, dispatches: { get: async () => undefined }, log: SILENT_LOG, now },
      checkers: { of: () => CHECKER, close: async () => {} },
      openVendor,
      ...{ toolBox: { find: (name) => TOOLS[name] }, executors: { isAlive: async (epoch) => epoch === EPOCH } },
      epoch: () => EPOCH,
      flows: {
        async rehearse(_tenant, { item: { traceId, answers }, input }) {
          rehearsed.push(input['n'])
          const ids = Array.from({ length: turns }, (_, turn) => `${traceId}-${turn}`)
          const next = ids.find((each) => !answers.has(each))
          return next === undefined ? [] : [{ id: next, path: '/chat/completions', body: { model: 'm', input } }]
        },
      },
    })
    const [chunk] = chunks
    if (!chunk) throw new Error('no chunk')
    const of: ChunkOfBatch = { batch, chunk, definition: DEFINITION }
    const advance = (changes: Partial<Batch> = {}, more: Partial<ChunkOfBatch> = {}) =>
      waves.advance(TENANT, { ...of, ...more, batch: { ...batch, ...changes } })
    /** Some time goes by, and the pool is looked at. */
    const go = async (ms = SOON_MS) => {
      clock.ms += ms
      await driver.look()
      await driver.settled()
    }
    return { advance, go, vendor, clock, pool, chunk, rehearsed }
  }

  it('D55.6a: a wave has the next call of each item, and the items are ready when they make no further one', async () => {
    const { advance, go, vendor, clock, pool, chunk } = await open({ turns: 2 })
    const add = pool.add.bind(pool)
    const keptUntil: number[] = []
    pool.add = (tenant, owner, added) => {
      keptUntil.push(added.expires_ms)
      return add(tenant, owner, added)
    }
    const dayBehindMs = clock.ms + 48 * HOUR_MS
    for (let turn = 0; turn < 2; turn++) {
      const { waiting, lookAtMs } = await advance()
      expect([[...waiting], lookAtMs - clock.ms]).to.deep.equal([[0, 1, 2], SOON_MS])
      await go()
      expect((await advance()).waiting.size).to.equal(3)
      expect(vendor.sent).to.have.length(turn + 1)
      vendor.answer(turn)
      await go()
    }
    const { waiting, answers } = await advance()
    expect([waiting.size, [...answers.values()].map(({ status }) => status)]).to.deep.equal([0, Array(6).fill(200)])
    expect(new Set(vendor.calls.flat()).size).to.equal(6)
    expect(keptUntil, 'answers are kept until a day behind the deadline').to.deep.equal([dayBehindMs, dayBehindMs])
    expect((await pool.store.waves(TENANT, chunk)).map(({ state }) => state)).to.deep.equal(['answered', 'answered'])
  })

  it('D55.6a: the items of one chunk are rehearsed before those of the next, so that it is at the vendor whatever happens then', async () => {
    const { advance, rehearsed } = await open()
    await Promise.all([advance(), advance()])
    expect(rehearsed).to.deep.equal([1, 2, 3, 1, 2, 3])
  })

  it('D58.5: a wave that an earlier version has sent is read to its end, and one that its vendor has not got is pooled', async () => {
    for (const isKept of [true, false]) {
      const { advance, go, vendor, clock, pool, chunk } = await open()
      const calls = [1, 2, 3].map((n) => `${itemTraceId(chunk.batch_id, n)}-0`)
      const old = { ...{ batch_id: chunk.batch_id, chunk: 0, wave: 0 }, at_ms: clock.ms, calls }
      await pool.store.addWave(TENANT, { ...old, state: 'submitting', vendor_id: null }, clock.ms + HOUR_MS)
      if (isKept)
        await vendor.submit(
          calls.map((id) => ({ id, path: '', body: {} })),
          `${chunk.batch_id}-0-0`,
        )
      const states = async () => (await pool.store.waves(TENANT, chunk)).map(({ state }) => state)
      expect([(await advance()).waiting.size, await states()]).to.deep.equal([3, ['submitting']])
      clock.ms += 200_000
      await advance()
      expect(await states()).to.deep.equal([isKept ? 'submitted' : 'pooled'])
      await go()
      vendor.answerAll()
      await go()
      const { waiting, answers } = await advance()
      expect([waiting.size, [...answers.keys()].toSorted()]).to.deep.equal([0, calls.toSorted()])
      expect(vendor.sent).to.have.length(1)
    }
  })

  it('D55.6b: a flow goes live whose tools use files; with others its items wait, for a tool that is away, too, and make no call where a process leaves', async () => {
    const { advance, go, vendor, rehearsed } = await open()
    const withTools = (...tools: string[]) => ({ definition: { ...DEFINITION, tools } })
    for (const tools of [['file'], ['look', 'file']])
      expect((await advance({}, withTools(...tools))).waiting.size).to.equal(0)
    const { definition } = withTools('look')
    for (const more of [withTools('look', 'gone'), { definition, leaving: AbortSignal.abort() }])
      expect((await advance({}, more)).waiting.size).to.equal(3)
    expect(rehearsed).to.deep.equal([])
    expect((await advance({}, { definition })).waiting.size).to.equal(3)
    await go()
    expect(vendor.sent).to.have.length(1)
  })

  it('D55.6c: near the deadline the vendor is left: what it has answered by then counts, and the rest goes live', async () => {
    const { advance, go, vendor } = await open()
    await advance()
    await go()
    await go(20 * HOUR_MS)
    expect([(await advance()).waiting.size, vendor.sent[0]?.isCancelled]).to.deep.equal([3, true])
    vendor.answer(0, [[String(vendor.calls[0]?.[0]), GOOD]])
    await go(HOUR_MS / 10)
    const { waiting, answers } = await advance()
    expect([waiting.size, [...answers.values()].map(({ status }) => status).toSorted()]).to.deep.equal([0, [0, 0, 200]])

    const silent = await open()
    await silent.advance()
    await silent.go()
    silent.clock.ms += 22 * HOUR_MS
    expect((await silent.advance()).waiting.size).to.equal(0)
    const late = await open()
    late.clock.ms += 20 * HOUR_MS
    expect((await late.advance()).waiting.size).to.equal(0)
    expect(await late.pool.store.waves(TENANT, late.chunk)).to.deep.equal([])
  })

  it('D55.4: a batch that is cancelled, or whose flow was deleted, is cancelled at the vendor, too', async () => {
    for (const isDeleted of [false, true]) {
      const { advance, go, vendor } = await open()
      await advance()
      await go()
      const { waiting } = await (isDeleted ? advance({}, { definition: undefined }) : advance({ status: 'cancelling' }))
      await go(0)
      expect([waiting.size, vendor.sent[0]?.isCancelled]).to.deep.equal([0, true])
    }
    const { advance, vendor, clock, pool, chunk } = await open()
    const old = { batch_id: chunk.batch_id, chunk: 0, wave: 0, at_ms: clock.ms, calls: ['a'] }
    await pool.store.addWave(TENANT, { ...old, state: 'submitting', vendor_id: null }, clock.ms + HOUR_MS)
    await vendor.submit([], `${chunk.batch_id}-0-0`)
    await advance({ status: 'cancelling' })
    expect(vendor.sent[0]?.isCancelled, 'that of an earlier version, whose answer was lost').to.equal(true)
  })
})

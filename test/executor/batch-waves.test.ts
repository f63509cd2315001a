// Tests batch-waves.ts: the way of a chunk's calls through a vendor's batches, with a vendor and a clock that a test sets.

import { expect } from 'chai'
import { BatchWaves, type ChunkOfBatch } from '../../services/executor/batch-waves.ts'
import {
  type BatchAnswer,
  type BatchCall,
  GOES_LIVE,
  type VendorBatches,
} from '../../shared/agent/providers/batch/port.ts'
import type { Tool } from '../../shared/agent/tools/port.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { type Batch, divide, markOf } from '../../shared/work/flows/batch/batch.ts'
import { BatchStore } from '../../shared/work/flows/batch/store.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { useTestStore } from '../support/test-store.ts'

const HOUR_MS = 3_600_000
const GOOD: BatchAnswer = { status: 200, body: { text: 'good' } }
const CHECKER = { findUnusable: async () => [], check: async () => [] }
const EPOCH = 7
const TOOLS: Record<string, Tool> = Object.fromEntries(
  ['look', 'file'].map((name) => [name, { name, usesFiles: name === 'file' } as Tool]),
)
const DEFINITION = { input_schema: {}, output_schema: {}, tools: [], sub_agents: [], evolve: false }

describe('the waves of a chunk', () => {
  const opened = useTestStore()

  /** A chunk of three items, each of which makes `turns` calls. The vendor keeps what it gets in `sent`, and answers when `answer` is called. */
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
    const sent: {
      mark: string
      calls: readonly BatchCall[]
      answers?: Map<string, BatchAnswer> | 'refused'
      isCancelled?: boolean
    }[] = []
    const vendorFaults: { find?: 'unsure'; read?: AppError } = {}
    const fails: unknown[] = []
    const budget: { refusal?: AppError } = {}
    const rehearsed: unknown[] = []
    const vendor: VendorBatches = {
      async submit(calls, mark) {
        const [cause] = fails.splice(0, 1)
        if (!(cause instanceof AppError)) sent.push({ mark, calls })
        if (cause) throw cause
        return String(sent.length - 1)
      },
      async find({ mark }) {
        const at = sent.findIndex((each) => each.mark === mark)
        return vendorFaults.find ?? (at < 0 ? undefined : { id: String(at) })
      },
      async read(at) {
        if (vendorFaults.read) throw vendorFaults.read
        return sent[Number(at)]?.answers
      },
      async cancel(at) {
        const kept = sent[Number(at)]
        if (kept) kept.isCancelled = true
      },
    }
    const waves = new BatchWaves({
      ...{ batches, dispatches: { get: async () => undefined }, log: SILENT_LOG, now: () => new Date(clock.ms) },
      checkers: { of: () => CHECKER, close: async () => {} },
      openVendor: async () => vendor,
      ...{ toolBox: { find: (name) => TOOLS[name] }, executors: { isAlive: async (epoch) => epoch === EPOCH } },
      epoch: () => EPOCH,
      async assertBudget() {
        if (budget.refusal) throw budget.refusal
      },
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
    const answer = (
      at: number,
      answers = sent[at]?.calls.map(({ id: call }): [string, BatchAnswer] => [call, GOOD]),
    ) => {
      const kept = sent[at]
      if (kept) kept.answers = new Map(answers)
    }
    const advance = (changes: Partial<Batch> = {}, more: Partial<ChunkOfBatch> = {}) =>
      waves.advance(TENANT, { ...of, ...more, batch: { ...batch, ...changes } })
    const advanceDeleted = () => waves.advance(TENANT, { ...of, definition: undefined })
    return { advance, advanceDeleted, answer, sent, fails, budget, vendorFaults, clock, batches, chunk, rehearsed }
  }

  it('D55.6a: a wave has the next call of each item, and the items are ready when they make no further one', async () => {
    const { advance, answer, sent, clock, batches } = await open({ turns: 2 })
    const add = batches.addAnswers.bind(batches)
    const keptUntil: string[] = []
    batches.addAnswers = (tenant, chunk, given) => {
      keptUntil.push(given.expires_at)
      return add(tenant, chunk, given)
    }
    for (let turn = 0; turn < 2; turn++) {
      const { waiting, lookAtMs } = await advance()
      expect([[...waiting], lookAtMs - clock.ms]).to.deep.equal([[0, 1, 2], 10_000])
      expect((await advance()).waiting.size).to.equal(3)
      expect(sent).to.have.length(turn + 1)
      answer(turn)
    }
    const { waiting, answers } = await advance()
    expect([waiting.size, [...answers.values()].map(({ status }) => status)]).to.deep.equal([0, Array(6).fill(200)])
    const ids = sent.flatMap(({ calls }) => calls.map(({ id }) => id))
    expect(new Set(ids).size).to.equal(6)
    expect(new Set(keptUntil), 'a day behind the deadline').to.deep.equal(
      new Set([new Date(clock.ms + 48 * HOUR_MS).toISOString()]),
    )
  })

  it('D55.6a: the items of one chunk are rehearsed before those of the next, so that it is at the vendor whatever happens then', async () => {
    const { advance, rehearsed } = await open()
    await Promise.all([advance(), advance()])
    expect(rehearsed).to.deep.equal([1, 2, 3, 1, 2, 3])
  })

  it('D55.6d: a submission whose answer was lost is found, or sent again where the vendor has not got it, and the next wave goes its way', async () => {
    for (const isKept of [true, false]) {
      const { advance, answer, sent, fails, vendorFaults, clock, batches, chunk } = await open({ turns: 2 })
      fails.push(new Error('the answer is lost'))
      expect((await advance()).waiting.size).to.equal(3)
      if (!isKept) sent[0] = { mark: '', calls: [] }
      clock.ms += 60_000
      await advance()
      expect(sent, 'another process may be at it').to.have.length(1)
      clock.ms += 60_000
      vendorFaults.find = 'unsure'
      await advance()
      expect(sent, 'the vendor may have it').to.have.length(1)
      delete vendorFaults.find
      await advance()
      expect(sent).to.have.length(isKept ? 1 : 2)
      for (let turn = 0; turn < 2; turn++) {
        answer(sent.length - 1)
        await advance()
      }
      expect((await advance()).waiting.size).to.equal(0)
      expect(sent).to.have.length(isKept ? 2 : 3)
      const [last] = (await batches.waves(TENANT, chunk)).slice(-1)
      expect(last && [last.state, markOf(last)]).to.deep.equal(['answered', sent.at(-1)?.mark])
    }
  })

  it('D55.6d: a wave for which the vendor has no room is sent again after a while, whenever the vendor says so', async () => {
    const { advance, answer, sent, fails, clock, batches, chunk } = await open()
    fails.push(new AppError('rate_limit', 'too many'))
    for (const submissions of [0, 1]) {
      const { waiting, lookAtMs } = await advance()
      expect([waiting.size, lookAtMs - clock.ms, sent.length]).to.deep.equal([3, 300_000, submissions])
      expect(await batches.waves(TENANT, chunk)).to.deep.equal([])
      if (submissions === 1) break
      await advance()
      const [first] = sent
      if (first) first.answers = 'refused'
    }
    await advance()
    answer(1)
    expect((await advance()).waiting.size).to.equal(0)
  })

  it('D55.6b: while the vendor cannot be read its answers are waited for, and a batch that it does not know any more goes live', async () => {
    const { advance, vendorFaults, clock } = await open()
    await advance()
    for (const [kind, afterMs, waits] of [
      ['unavailable', 3_600_000, 3],
      ['rate_limit', 3_600_000, 3],
      ['upstream', 3_600_000, 3],
      ['not_found', 0, 0],
    ] as const) {
      vendorFaults.read = new AppError(kind, 'not now')
      clock.ms += afterMs
      expect((await advance()).waiting.size, kind).to.equal(waits)
    }
    const young = await open()
    await young.advance()
    young.vendorFaults.read = new AppError('not_found', 'not yet')
    expect((await young.advance()).waiting.size).to.equal(3)
  })

  it('D55.6b: what the vendor refuses, has not answered or has failed at goes live', async () => {
    const refused = await open()
    refused.fails.push(new AppError('upstream', 'there is no such endpoint'))
    const { waiting, answers } = await refused.advance()
    expect([waiting.size, [...answers.values()].map(({ status }) => status)]).to.deep.equal([0, Array(3).fill(0)])

    const { advance, answer, sent } = await open()
    await advance()
    const [first, second] = sent[0]?.calls.map(({ id }) => id) ?? []
    answer(0, [
      [String(first), GOOD],
      [String(second), { status: 503, body: {} }],
    ])
    const after = await advance()
    expect([after.waiting.size, after.answers.get(String(first)), after.answers.get(String(second))]).to.deep.equal([
      0,
      GOOD,
      GOES_LIVE,
    ])
    expect([...after.answers.values()].filter(({ status }) => status === 0)).to.have.length(2)
  })

  it('D55.6b: a flow goes live whose tools use files; with others its items wait, for a tool that is away, too, and make no call where a process leaves', async () => {
    const { advance, sent, rehearsed } = await open()
    const withTools = (...tools: string[]) => ({ definition: { ...DEFINITION, tools } })
    for (const tools of [['file'], ['look', 'file']])
      expect((await advance({}, withTools(...tools))).waiting.size).to.equal(0)
    const { definition } = withTools('look')
    for (const more of [withTools('look', 'gone'), { definition, leaving: AbortSignal.abort() }])
      expect((await advance({}, more)).waiting.size).to.equal(3)
    expect([sent.length, rehearsed.length]).to.deep.equal([0, 0])
    expect((await advance({}, { definition })).waiting.size).to.equal(3)
    expect(sent).to.have.length(1)
  })

  it('D55.6e: nothing more is sent to the vendor when the budget is used up, and what it has answered counts', async () => {
    const { advance, answer, sent, budget } = await open({ turns: 2 })
    await advance()
    budget.refusal = new AppError('rate_limit', 'used up')
    expect((await advance()).waiting.size, 'it is paid for').to.equal(3)
    answer(0)
    const { waiting, answers } = await advance()
    expect([waiting.size, answers.size, sent.length]).to.deep.equal([0, 3, 1])
    const fresh = await open()
    fresh.budget.refusal = new AppError('unavailable', 'it cannot be read')
    expect(await fresh.advance().catch((cause: unknown) => cause), 'it is not known').to.include({
      kind: 'unavailable',
    })
    expect([fresh.rehearsed, fresh.sent]).to.deep.equal([[], []])
  })

  it('D55.6c: near the deadline the vendor is left: what it has answered by then counts, and the rest goes live', async () => {
    const { advance, answer, sent, clock } = await open()
    await advance()
    clock.ms += 20 * HOUR_MS
    expect((await advance()).waiting.size).to.equal(3)
    expect(sent[0]?.isCancelled).to.equal(true)
    answer(0, [[String(sent[0]?.calls[0]?.id), GOOD]])
    const { waiting, answers } = await advance()
    expect([waiting.size, [...answers.values()].map(({ status }) => status).toSorted()]).to.deep.equal([0, [0, 0, 200]])

    const silent = await open()
    await silent.advance()
    silent.clock.ms += 22 * HOUR_MS
    expect((await silent.advance()).waiting.size).to.equal(0)
    const late = await open()
    late.clock.ms += 20 * HOUR_MS
    expect([(await late.advance()).waiting.size, late.sent.length]).to.deep.equal([0, 0])
  })

  it('D55.4: a batch that is cancelled, or whose flow was deleted, is cancelled at the vendor, too', async () => {
    for (const [isDeleted, isLost] of [
      [false, false],
      [true, false],
      [false, true],
    ]) {
      const { advance, advanceDeleted, sent, fails } = await open()
      if (isLost) fails.push(new Error('the answer is lost'))
      await advance()
      const { waiting } = isDeleted ? await advanceDeleted() : await advance({ status: 'cancelling' })
      expect([waiting.size, sent[0]?.isCancelled]).to.deep.equal([0, true])
    }
  })
})

// Tests checker.ts and schema-queue.ts: checks in real threads, and their limits.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { createSchemaCheckers } from '../../../shared/platform/schemas/checker.ts'
import type { SchemaChecker, SchemaCheckers } from '../../../shared/platform/schemas/port.ts'
import { failureOf } from '../../support/failure-of.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'

const ACME = tenantId('acme')
const SMALL = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
/** Compiles in a moment; a value of depth n takes 2^n evaluations. */
const EXPENSIVE: JsonObject = { properties: { a: { anyOf: [1, 2].map(() => ({ allOf: [{ $ref: '#' }, false] })) } } }
const DEEP = JSON.parse(`${'{"a":'.repeat(60)}{}${'}'.repeat(60)}`) as JsonObject
/** Takes some 10 ms to compile, and ten times as much as the first one of a thread. */
const LARGE = { properties: Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`p${at}`, { type: 'string' }])) }

/** Resolves with the next thread that starts. */
const nextThread = async (): Promise<Worker> => {
  const [worker] = await once(process, 'worker')
  return worker as Worker
}

/** Threads that use the CPU until they are terminated. */
async function startBusyThreads(count: number): Promise<Worker[]> {
  const spin = `require('node:worker_threads').parentPort.postMessage(''); for (;;);`
  const threads = Array.from({ length: count }, () => new Worker(spin, { eval: true }))
  await Promise.all(threads.map((thread) => once(thread, 'message')))
  return threads
}

describe('the schema checker', () => {
  const closing: SchemaCheckers[] = []
  const threads: Worker[] = []
  const record = (worker: Worker) => threads.push(worker)
  before(() => process.on('worker', record))
  after(() => process.off('worker', record))

  function openAll(limits: Parameters<typeof createSchemaCheckers>[0] = {}): SchemaCheckers {
    const checkers = createSchemaCheckers({
      newSchemasMs: 10_000,
      taskMs: 10_000,
      totalMs: 20_000,
      waitMs: 20_000,
      threads: 1,
      ...limits,
    })
    closing.push(checkers)
    return checkers
  }

  const open = (limits: Parameters<typeof createSchemaCheckers>[0] = {}): SchemaChecker => openAll(limits).of(ACME)

  afterEach(async () => {
    await Promise.all(closing.splice(0).map((checkers) => checkers.close()))
    threads.length = 0
  })

  it('checks values, and says why a schema cannot be used', async () => {
    const checker = open()
    expect(await checker.findUnusable([SMALL])).to.deep.equal([])
    expect(await checker.check(SMALL, { a: 'x' })).to.deep.equal([])
    expect(await checker.check(SMALL, { a: 1 })).to.deep.equal([
      { path: '/a', message: 'must be a string, not a number' },
    ])
    expect(await checker.check(SMALL, undefined)).to.deep.equal([
      { path: '', message: 'must be an object, not undefined' },
    ])
    const wrong = await checker.findUnusable([SMALL, { items: { type: 'x' } }, { type: 'x' }])
    expect(wrong.map(({ at, problem }) => [at, problem.path])).to.deep.equal([
      [1, '/items/type'],
      [2, '/type'],
    ])
    const unwanted = await checker.findUnusable([{ items: { pattern: '(?=a)' } }])
    expect(unwanted[0]?.problem.path).to.equal('/items/pattern')
  })

  it('throws for a schema that cannot be used, also for one that only the compiler refuses', async () => {
    const checker = open()
    const error = await failureOf(checker.check({ type: 'x' }, {}))
    expect(error).to.include({ status: 400 })
    expect(error.message).to.match(/^the schema cannot be used: \/type must be one of array, /)
    expect((await failureOf(checker.check({ pattern: '(' }, {}))).message).to.include('/pattern must be in RE2 syntax')
  })

  it('a value that is not JSON, too large or too deep is a problem, and reaches no thread', async () => {
    const checker = open({ waiting: { max: 0, maxPerTenant: 0 } })
    const messageOf = async (value: unknown) => (await checker.check({}, value))[0]
    expect(await messageOf({ a: [() => {}] })).to.deep.equal({ path: '/a/0', message: 'is not JSON' })
    expect(await messageOf(1n)).to.deep.equal({ path: '', message: 'is not JSON' })
    expect((await messageOf('x'.repeat(11_000_000)))?.message).to.equal('is larger than 10 MB: send less')
    expect((await messageOf(Array(200_001).fill(0)))?.message).to.equal('has more than 200000 values: send less')
    expect((await messageOf(Array.from({ length: 100_000 }, () => [])))?.message).to.match(
      /^has more than 100000 objects and arrays/,
    )
    const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) as unknown
    expect(await messageOf(deep)).to.deep.equal({
      path: '/0'.repeat(64),
      message: 'is nested deeper than 64 levels: send a flatter value',
    })
  })

  it('a schema object is read for its first check only', async () => {
    const checker = open()
    let reads = 0
    const schema = {
      ...SMALL,
      get type() {
        reads++
        return 'object'
      },
    }
    await checker.check(schema, {})
    const readsOfFirst = reads
    expect(await checker.check(schema, { a: 1 })).to.have.length(1)
    expect([readsOfFirst > 0, reads - readsOfFirst]).to.deep.equal([true, 0])
  })

  it('equal schemas share one validator, and a schema that was forgotten is compiled again', async () => {
    const checker = open()
    for (let at = 0; at < 40; at++) {
      const schema = { description: 'x'.repeat(60_000), properties: { [`p${at % 20}`]: { type: 'string' } } }
      expect(await checker.check(schema, { [`p${at % 20}`]: 1 })).to.have.length(1)
    }
  })

  it('a check that takes too long ends with one problem, and the spare thread takes over', async () => {
    const limits = { taskMs: 150, totalMs: 300 }
    const checker = open(limits)
    const first = nextThread()
    expect(await checker.findUnusable([SMALL])).to.deep.equal([])
    const ended = once(await first, 'exit')
    expect(threads).to.have.length(2)
    const problems = await checker.check(EXPENSIVE, DEEP)
    expect(problems).to.deep.equal([{ path: '', message: 'cannot be checked within 150 ms: send a smaller value' }])
    await ended
    expect(await checker.check(SMALL, { a: 1 })).to.have.length(1)
    expect(threads).to.have.length(3) // Only the next spare was started.
    expect(await checker.check(EXPENSIVE, { a: 5 })).to.not.deep.equal(problems)
    expect(await checker.check(EXPENSIVE, DEEP)).to.deep.equal(problems) // The thread holds the schema this time.
  })

  it('a short value that was valid needs no thread again, for the same tenant and schema', async () => {
    const checkers = openAll()
    const [acme, other] = [checkers.of(ACME), checkers.of(tenantId('other'))]
    const [valid, long, wrong] = [{ a: 'x' }, { a: 'x'.repeat(3_000) }, { a: 1 }]
    for (const value of [valid, long, wrong]) await acme.check(SMALL, value)
    await checkers.close() // From now on there are no threads.
    expect(await acme.check({ ...SMALL }, { ...valid })).to.deep.equal([])
    const others = [
      other.check(SMALL, valid),
      acme.check(LARGE, valid),
      ...[long, wrong].map((v) => acme.check(SMALL, v)),
    ]
    for (const each of others) expect(await failureOf(each)).to.include({ status: 503 })
  })

  it('a schema that takes too long to compile is too expensive', async () => {
    const checker = open({ newSchemasMs: 1, taskMs: 2 })
    const problem = { path: '', message: 'is too expensive: it cannot be compiled within 1 ms; simplify it' }
    expect(await checker.findUnusable([LARGE])).to.deep.equal([{ at: 0, problem, isSlow: true }])
    const accepted = await failureOf(checker.findUnusable([LARGE], { wereAccepted: true }))
    expect(accepted).to.include({ status: 503, retryAfterSecs: 1 })
    expect(accepted.message).to.include('it cannot be compiled within 2 ms')
    const error = await failureOf(checker.check(LARGE, {}))
    expect(error).to.include({ status: 503, retryAfterSecs: 1 })
    expect(error.message).to.match(/^the schema cannot be used: it is too expensive/)
  })

  it('a schema is not too expensive because other work uses the CPU', async () => {
    const newSchemasMs = 150
    const checker = open({ newSchemasMs })
    let attempts = 0
    /** Compiles a new schema beside so many busy threads. Returns for how long, or `undefined` when it was too expensive. */
    const compileBeside = async (count: number): Promise<number | undefined> => {
      await checker.findUnusable([SMALL]) // Starts a thread, if the last one was given up.
      await using others = new AsyncDisposableStack()
      for (const busy of await startBusyThreads(count)) others.defer(async () => void (await busy.terminate()))
      const name = `attempt ${attempts++}: `
      const properties = Array.from({ length: 200 }, (_, at) => [name + at, { type: 'string' }] as const)
      const start = performance.now()
      const unusable = await checker.findUnusable([{ properties: Object.fromEntries(properties) }])
      return unusable.length > 0 ? undefined : performance.now() - start
    }
    // How many it takes to make the compilation last longer than the limit depends on the machine and its other work.
    const isAccepted = async () => ((await compileBeside(2 ** (attempts % 5))) ?? 0) > newSchemasMs
    await until(isAccepted, { what: 'a schema that was compiled slowly to be accepted' })
  })

  it('several schemas have one time limit together', async () => {
    const checker = open({ newSchemasMs: 600 }) // The first one takes up to 150 ms on a busy machine.
    const many = Array.from({ length: 200 }, (_, at) => ({ ...LARGE, description: `schema ${at}` }))
    expect(await checker.findUnusable(many.slice(0, 1))).to.deep.equal([])
    const [unusable, ...behind] = await checker.findUnusable(many)
    expect(unusable?.at).to.be.above(0)
    expect(behind).to.deep.equal([])
    expect(unusable?.problem.message).to.include('within 600 ms together with the schemas before it')
  })

  it('a check that fails because its thread holds many other schemas is repeated in a new thread', async () => {
    const checker = open()
    const text = { type: 'string', minLength: 1, maxLength: 100 }
    for (let at = 0; at < 7; at++) {
      const names = Array.from({ length: 900 }, (_, i) => [`property-${at}-${i}`, text] as const)
      await checker.check({ properties: Object.fromEntries(names) }, {})
    }
    expect(threads).to.have.length(2)
    const wrong = { items: { anyOf: Array.from({ length: 40 }, (_, at) => ({ const: at })) } }
    expect(await checker.check(wrong, Array(8_800).fill(-1))).to.have.length(10)
    expect(threads).to.have.length(3)
  })

  it('a check that needs too much memory ends with one problem, and the next one is answered', async () => {
    const checker = open()
    const wrong = { items: { anyOf: Array.from({ length: 40 }, (_, at) => ({ const: at })) } }
    const problems = await checker.check(wrong, Array(100_000).fill(-1))
    expect(problems).to.deep.equal([
      { path: '', message: 'cannot be checked in the memory that a check may use: send a smaller value' },
    ])
    expect(await checker.check(SMALL, { a: 1 })).to.have.length(1)
  })

  it('a check is 503 with Retry-After when too many wait; the others are answered in order', async () => {
    const checker = open({ waiting: { max: 2, maxPerTenant: 2 } })
    const order: number[] = []
    const waiting = [0, 1].map((at) => checker.check(SMALL, { a: 'x' }).then(() => order.push(at)))
    expect(await failureOf(checker.check(SMALL, {}))).to.include({ status: 503, retryAfterSecs: 1 })
    await Promise.all(waiting)
    expect(order).to.deep.equal([0, 1])
  })

  it('a check that no thread begins with in time is 503, and leaves the queue', async () => {
    const checker = open({ waitMs: 1, waiting: { max: 1, maxPerTenant: 1 } })
    expect(await failureOf(checker.check(SMALL, {}))).to.include({ status: 503, retryAfterSecs: 1 })
    expect(await failureOf(checker.check(SMALL, {}))).to.include({ status: 503 })
  })

  it('the threads end when no check has come for a while, and start again for the next one', async () => {
    const checker = open({ idleMs: 1 })
    const started = nextThread()
    const first = checker.check(SMALL, { a: 1 })
    const ended = once(await started, 'exit')
    expect(await first).to.have.length(1)
    await ended
    expect(await checker.check(SMALL, { a: 1 })).to.have.length(1)
  })

  it('closing ends the threads and refuses what waits', async () => {
    const checkers = openAll()
    const checker = checkers.of(ACME)
    const started = nextThread()
    const waiting = failureOf(checker.check(SMALL, {}))
    const ended = once(await started, 'exit')
    await checkers.close()
    await ended
    expect(await waiting).to.include({ status: 503 })
    expect(await failureOf(checker.findUnusable([SMALL]))).to.include({ status: 503 })
  })
})

// Tests ../work/flows/store/dispatch-payloads.ts: through the dispatches, whose payloads it stores.

import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { JsonObject } from '../../shared/kernel/events.ts'
import type { CollectionSpec } from '../../shared/platform/store/port.ts'
import type { Dispatch, DispatchStore } from '../../shared/work/flows/port.ts'
import {
  DISPATCH_ANSWERS,
  DISPATCH_INPUTS,
  DISPATCH_OUTPUTS,
  DISPATCHES,
} from '../../shared/work/flows/store/dispatch-documents.ts'
import { StoredDispatches } from '../../shared/work/flows/store/dispatches.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import { dispatchListContract } from './dispatch-list.ts'
import { DAY_MS, FAILED, INPUT, newDispatch, OK, OUTPUT, START } from './dispatch-setup.ts'
import type { OpenStore } from './store.ts'
import { watchStore } from './watched-store.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
/** Longer than one that is a part of its record. */
const LONG_INPUT = { text: 'a long text '.repeat(200) }

/** The tests of the executions and their history, which every store passes. */
export function dispatchContract(open: OpenStore): void {
  let dispatches: DispatchStore
  let clock = START
  const now = () => new Date(clock)
  const store = useOpened(() => open(COLLECTIONS, () => clock))
  before(async () => {
    dispatches = new StoredDispatches(store, { now })
  })

  const queue = async (more: Partial<Dispatch> = {}, input: JsonObject = INPUT) => {
    const dispatch = newDispatch(clock, more)
    await dispatches.create(TENANT, dispatch, input)
    return dispatch
  }
  const run = async (more: Partial<Dispatch> = {}, input: JsonObject = INPUT) => {
    const { trace_id } = await queue(more, input)
    const running = await dispatches.begin(TENANT, trace_id, 7)
    if (!running) throw new Error('it did not begin')
    return running
  }
  const isStored = async (spec: CollectionSpec, key: Record<string, string>) =>
    (await store.collection(spec).get(TENANT, key)) !== undefined

  it('a dispatch is found with its input by its own tenant only, and creating it again changes nothing', async () => {
    const dispatch = await queue({ idempotency_key: 'key 1' })
    const { trace_id } = dispatch
    await dispatches.create(TENANT, { ...dispatch, model: 'changed' }, { text: 'changed' })
    expect(await dispatches.get(TENANT, trace_id)).to.deep.equal(dispatch)
    expect(await dispatches.input(TENANT, trace_id)).to.deep.equal(INPUT)
    expect(await dispatches.output(TENANT, dispatch)).to.equal(undefined)
    expect(await dispatches.get(OTHER, trace_id)).to.equal(undefined)
    expect(await dispatches.input(OTHER, trace_id)).to.equal(undefined)
    expect(await dispatches.begin(OTHER, trace_id, 7)).to.equal(undefined)
    expect(await dispatches.end(OTHER, trace_id, { executor: null, result: FAILED })).to.equal(undefined)
    expect(await dispatches.get(TENANT, trace_id)).to.deep.equal(dispatch)
  })

  it('an execution goes from queued over running to its end, with its time and its output', async () => {
    const queued = await queue()
    const running = await dispatches.begin(TENANT, queued.trace_id, 7)
    expect(running).to.deep.equal({ ...queued, status: 'running', executor: 7, has_acted: false })
    expect(await dispatches.get(TENANT, queued.trace_id)).to.deep.equal(running)
    clock += 1_500
    const ended = await dispatches.end(TENANT, queued.trace_id, { executor: 7, result: OK, output: OUTPUT })
    const { output_id, ...rest } = ended as Dispatch
    expect(rest).to.deep.equal({ ...running, ...OK, ended_at: now().toISOString(), duration_ms: 1_500 })
    expect(output_id).to.be.a('string')
    expect(await dispatches.get(TENANT, queued.trace_id)).to.deep.equal(ended)
    expect(await dispatches.output(TENANT, rest)).to.equal(undefined)
    expect(await dispatches.output(TENANT, ended as Dispatch)).to.deep.equal(OUTPUT)
    expect(await dispatches.output(OTHER, ended as Dispatch)).to.equal(undefined)
    expect(await dispatches.input(TENANT, queued.trace_id)).to.deep.equal(INPUT)
  })

  it('D58.7: one that waits for a vendor says when it is looked at, until it begins', async () => {
    const { trace_id } = await queue()
    expect(await dispatches.park(TENANT, trace_id, 5)).to.equal(true)
    expect(await dispatches.get(TENANT, trace_id)).to.include({ status: 'queued', look_at_ms: 5 })
    expect(await dispatches.begin(TENANT, trace_id, 7)).to.include({ status: 'running' })
    expect(await dispatches.park(TENANT, trace_id, 6)).to.equal(false)
  })

  it('of two executors that begin an execution one gets it', async () => {
    const rival = new StoredDispatches(store, { now })
    for (let round = 0; round < 20; round++) {
      const { trace_id } = await queue()
      const begun = await Promise.all([dispatches.begin(TENANT, trace_id, 1), rival.begin(TENANT, trace_id, 2)])
      expect(begun.filter(Boolean)).to.have.length(1)
      expect((await dispatches.get(TENANT, trace_id))?.executor).to.equal(begun[0] ? 1 : 2)
      expect(await dispatches.begin(TENANT, trace_id, 3)).to.equal(undefined)
    }
  })

  it('D34.2: of two executors that take an execution over one gets it, unless it has acted or has no key', async () => {
    const { trace_id } = await run({ idempotency_key: 'k' })
    const takers = [8, 9].map((executor) => dispatches.takeOver(TENANT, trace_id, { from: 7, executor }))
    const [taken, ...more] = (await Promise.all(takers)).filter((each) => each !== undefined)
    expect(more).to.deep.equal([])
    expect(taken).to.deep.include({ status: 'running', starts: 2 })
    expect(await dispatches.input(TENANT, trace_id)).to.deep.equal(INPUT)
    expect(await dispatches.noteAction(TENANT, trace_id, 7)).to.equal(false)
    const acted = await run({ idempotency_key: 'k2' })
    expect(await dispatches.noteAction(TENANT, acted.trace_id, 7)).to.equal(true)
    for (const { trace_id: id } of [acted, await run()])
      expect(await dispatches.takeOver(TENANT, id, { from: 7, executor: 8 })).to.equal(undefined)
    expect(await dispatches.end(TENANT, acted.trace_id, { executor: 7, result: OK })).to.include({ has_acted: true })
  })

  it('of several that end an execution one succeeds, and its output is the one that counts', async () => {
    const rival = new StoredDispatches(store, { now })
    for (let round = 0; round < 20; round++) {
      const { trace_id } = await run()
      const outputBy = (by: number) => ({ ...OUTPUT, output: { by } })
      const [one, two, lost] = await Promise.all([
        dispatches.end(TENANT, trace_id, { executor: 7, result: OK, output: outputBy(1) }),
        rival.end(TENANT, trace_id, { executor: 7, result: { ...OK, turns: 3 }, output: outputBy(2) }),
        rival.end(TENANT, trace_id, { executor: 7, result: FAILED }),
      ])
      expect([one, two, lost].filter(Boolean)).to.have.length(1)
      const ended = (await dispatches.get(TENANT, trace_id)) as Dispatch
      expect(ended).to.deep.equal(one ?? two ?? lost)
      expect((await dispatches.output(TENANT, ended))?.output).to.deep.equal(one ? { by: 1 } : two && { by: 2 })
    }
  })

  it('only the executor that runs an execution ends it, and only `null` ends one that is queued', async () => {
    const { trace_id } = await queue()
    expect(await dispatches.end(TENANT, trace_id, { executor: 7, result: OK })).to.equal(undefined)
    await dispatches.begin(TENANT, trace_id, 7)
    for (const executor of [null, 8])
      expect(await dispatches.end(TENANT, trace_id, { executor, result: FAILED })).to.equal(undefined)
    expect((await dispatches.end(TENANT, trace_id, { executor: 7, result: OK }))?.status).to.equal('ok')
    expect(await dispatches.end(TENANT, trace_id, { executor: 7, result: FAILED })).to.equal(undefined)
    const waiting = await queue()
    const cancelled = await dispatches.end(TENANT, waiting.trace_id, { executor: null, result: FAILED })
    expect(cancelled).to.include({ status: 'error', executor: null })
    expect(await dispatches.begin(TENANT, waiting.trace_id, 7)).to.equal(undefined)
  })

  it('a process that may no longer write ends nothing, and leaves an output that does not count', async () => {
    const { watched, writes } = watchStore(store)
    const paused = new StoredDispatches(watched, { now })
    const running = await run({}, LONG_INPUT)
    const { trace_id } = running
    const end = (mayWrite: () => boolean) =>
      paused.end(TENANT, trace_id, { executor: 7, result: OK, output: OUTPUT, mayWrite })
    expect(await end(() => false)).to.equal(undefined)
    expect(writes).to.deep.equal([])
    let asked = 0
    expect(await end(() => ++asked < 2)).to.equal(undefined)
    expect(writes).to.deep.equal(['insert dispatch_outputs'])
    expect(await dispatches.get(TENANT, trace_id)).to.deep.equal(running)
    const taken = await dispatches.end(TENANT, trace_id, { executor: 7, result: FAILED })
    expect(await dispatches.output(TENANT, taken as Dispatch)).to.equal(undefined)
  })

  it('an executor that ends an execution too late leaves no output behind', async () => {
    const { watched, operations } = watchStore(store)
    const late = new StoredDispatches(watched, { now })
    const { trace_id } = await queue({}, LONG_INPUT)
    await late.begin(TENANT, trace_id, 7)
    await dispatches.end(TENANT, trace_id, { executor: 7, result: FAILED })
    operations.length = 0
    expect(await late.end(TENANT, trace_id, { executor: 7, result: OK, output: OUTPUT })).to.equal(undefined)
    expect(operations).to.deep.equal(['insert dispatch_outputs', 'replace dispatches', 'delete dispatch_outputs'])
    expect(await dispatches.get(TENANT, trace_id)).to.include({ status: 'error' })
  })

  it('with short payloads an execution is three writes and no read, and any process finds them', async () => {
    const { watched, operations } = watchStore(store)
    const counted = new StoredDispatches(watched, { now })
    const dispatch = newDispatch(clock)
    const { trace_id } = dispatch
    await counted.create(TENANT, dispatch, INPUT)
    await counted.begin(TENANT, trace_id, 7)
    expect(await counted.input(TENANT, trace_id)).to.deep.equal(INPUT)
    await counted.end(TENANT, trace_id, { executor: 7, result: OK, output: OUTPUT })
    expect(await counted.get(TENANT, trace_id), 'one that has ended never changes').to.include({ status: 'ok' })
    expect(operations).to.deep.equal(['insert dispatches', 'update dispatches', 'replace dispatches'])
    const ended = (await dispatches.get(TENANT, trace_id)) as Dispatch
    expect(ended).to.include({ status: 'ok', executor: 7 }).and.not.have.any.keys('own_input', 'own_output')
    expect(await dispatches.input(TENANT, trace_id)).to.deep.equal(INPUT)
    expect(await dispatches.output(TENANT, ended)).to.deep.equal(OUTPUT)
  })

  it('long payloads are stored apart, the output before the end', async () => {
    const { watched, operations } = watchStore(store)
    const counted = new StoredDispatches(watched, { now })
    const dispatch = newDispatch(clock)
    const { trace_id } = dispatch
    await counted.create(TENANT, dispatch, LONG_INPUT)
    expect(operations.splice(0)).to.deep.equal(['insert dispatch_inputs', 'insert dispatches'])
    await counted.begin(TENANT, trace_id, 7)
    expect(operations.splice(0)).to.deep.equal(['update dispatches'])
    expect(await dispatches.input(TENANT, trace_id)).to.deep.equal(LONG_INPUT)
    await counted.end(TENANT, trace_id, { executor: 7, result: OK, output: OUTPUT })
    expect(operations).to.deep.equal(['insert dispatch_outputs', 'replace dispatches'])
    const ended = (await dispatches.get(TENANT, trace_id)) as Dispatch
    expect(await dispatches.output(TENANT, ended)).to.deep.equal(OUTPUT)
    const long = { ...OUTPUT, raw_output: 'x'.repeat(3_000) }
    const { trace_id: other } = await run()
    const apart = (await dispatches.end(TENANT, other, { executor: 7, result: OK, output: long })) as Dispatch
    expect(await isStored(DISPATCH_OUTPUTS, { output_id: apart.output_id ?? '' })).to.equal(true)
    expect(await dispatches.output(TENANT, apart)).to.deep.equal(long)
    expect(await dispatches.input(TENANT, other)).to.deep.equal(INPUT)
  })

  it('where no history is kept, the input is gone with the end, and the output is a part of the record without its raw text', async () => {
    const expires_at = new Date(clock + DAY_MS).toISOString()
    const { trace_id } = await run({ keeps_payloads: false, expires_at })
    const ended = (await dispatches.end(TENANT, trace_id, { executor: 7, result: OK, output: OUTPUT })) as Dispatch
    const stored = await store.collection(DISPATCHES).get(TENANT, { trace_id })
    expect(JSON.stringify(stored?.doc)).to.not.include(INPUT.text).and.not.include('raw_output":"{')
    expect(await dispatches.output(TENANT, ended)).to.deep.equal({ ...OUTPUT, raw_output: '' })
  })

  it('the process that has created a dispatch can take it once without reading it, and others cannot', async () => {
    const { watched, operations } = watchStore(store)
    const counted = new StoredDispatches(watched, { now })
    const dispatch = newDispatch(clock)
    const { trace_id } = dispatch
    await counted.create(TENANT, dispatch, INPUT)
    operations.length = 0
    expect(dispatches.takeCreated(TENANT, trace_id)).to.equal(undefined)
    expect(counted.takeCreated(TENANT, trace_id)).to.deep.equal(dispatch)
    expect(counted.takeCreated(TENANT, trace_id)).to.equal(undefined)
    expect(operations).to.deep.equal([])
  })

  it('begin notices that another process has begun or ended a dispatch that `get` has returned', async () => {
    const counted = new StoredDispatches(store, { now })
    const [begun, cancelled] = [await queue(), await queue()]
    for (const dispatch of [begun, cancelled]) await counted.get(TENANT, dispatch.trace_id)
    await dispatches.begin(TENANT, begun.trace_id, 7)
    await dispatches.end(TENANT, cancelled.trace_id, { executor: null, result: FAILED })
    for (const dispatch of [begun, cancelled]) {
      expect(await counted.begin(TENANT, dispatch.trace_id, 8)).to.equal(undefined)
      expect(await counted.end(TENANT, dispatch.trace_id, { executor: null, result: OK })).to.equal(undefined)
    }
    expect(await dispatches.get(TENANT, begun.trace_id)).to.include({ status: 'running', executor: 7 })
    expect(await dispatches.get(TENANT, cancelled.trace_id)).to.include({ status: 'error' })
  })

  it('without payloads the input is deleted at the end, and the output is kept for 24 hours without its raw text', async () => {
    const dispatch = await run({ keeps_payloads: false })
    const { trace_id } = dispatch
    const ended = await dispatches.end(TENANT, trace_id, { executor: 7, result: OK, output: OUTPUT })
    expect(await isStored(DISPATCH_INPUTS, { trace_id })).to.equal(false)
    const output_id = ended?.output_id ?? ''
    expect(await isStored(DISPATCH_OUTPUTS, { output_id })).to.equal(false)
    expect(await isStored(DISPATCH_ANSWERS, { output_id })).to.equal(true)
    expect(await dispatches.output(TENANT, ended as Dispatch)).to.deep.equal({ ...OUTPUT, raw_output: '' })
    clock += DAY_MS
    expect(await dispatches.output(TENANT, ended as Dispatch)).to.equal(undefined)
    expect(await dispatches.get(TENANT, trace_id)).to.deep.equal(ended)
  })

  it('without payloads the input of an execution that never began is deleted, too, or expires after 24 hours', async () => {
    const [cancelled, forgotten] = [await queue({ keeps_payloads: false }), await queue({ keeps_payloads: false })]
    await dispatches.end(TENANT, cancelled.trace_id, { executor: null, result: FAILED })
    expect(await isStored(DISPATCH_INPUTS, { trace_id: cancelled.trace_id })).to.equal(false)
    expect(await dispatches.input(TENANT, forgotten.trace_id)).to.deep.equal(INPUT)
    clock += DAY_MS
    expect(await dispatches.input(TENANT, forgotten.trace_id)).to.equal(undefined)
  })

  it('a record expires with its payloads, and not before', async () => {
    const dispatch = await run({ expires_at: new Date(clock + 2 * DAY_MS).toISOString() })
    const { trace_id } = dispatch
    const ended = (await dispatches.end(TENANT, trace_id, { executor: 7, result: OK, output: OUTPUT })) as Dispatch
    const found = async () => [
      await dispatches.get(TENANT, trace_id),
      await dispatches.input(TENANT, trace_id),
      await dispatches.output(TENANT, ended),
    ]
    clock += 2 * DAY_MS - 1
    expect(await found()).to.deep.equal([ended, INPUT, OUTPUT])
    clock += 1
    expect(await found()).to.deep.equal([undefined, undefined, undefined])
  })

  it('D6.5: a rejected request is recorded with its input, whatever it names', async () => {
    const error = { status: 400, type: 'invalid_request_error', message: 'x'.repeat(1e6) }
    const names = { provider_instance: 'i'.repeat(9e6), model: '\0\ud800' }
    const rejected = newDispatch(clock, { status: 'rejected', error, ...names, ended_at: now().toISOString() })
    await dispatches.create(TENANT, rejected, { text: 'x'.repeat(9e6) })
    const found = await dispatches.get(TENANT, rejected.trace_id)
    expect(found).to.include({ status: 'rejected', model: '\0\ud800' })
    expect(found?.provider_instance).to.have.length.below(1_000)
    expect(found?.error?.message).to.have.length.below(5_000)
    expect(await dispatches.input(TENANT, rejected.trace_id)).to.equal(undefined)
    const short = newDispatch(clock, { status: 'rejected' })
    await dispatches.create(TENANT, short, INPUT)
    expect(await dispatches.input(TENANT, short.trace_id)).to.deep.equal(INPUT)
    const secret = newDispatch(clock, { status: 'rejected', keeps_payloads: false })
    await dispatches.create(TENANT, secret, INPUT)
    expect(await dispatches.input(TENANT, secret.trace_id)).to.equal(undefined)
  })

  it('an input above the limit of the store is refused with 413, and no dispatch is stored', async () => {
    const dispatch = newDispatch(clock)
    const failure = await dispatches.create(TENANT, dispatch, { text: 'x'.repeat(9e6) }).catch((cause) => cause)
    expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'invalid_request', status: 413, param: '/input' })
    expect(await dispatches.get(TENANT, dispatch.trace_id)).to.equal(undefined)
  })

  it('a new dispatch of which one write fails is not there, unless an earlier call has stored it', async () => {
    for (const failing of ['insert dispatches', 'insert dispatch_inputs']) {
      const { watched, failAt } = watchStore(store)
      failAt(failing)
      const dispatch = newDispatch(clock)
      const create = () => new StoredDispatches(watched).create(TENANT, dispatch, LONG_INPUT)
      expect(await create().catch((cause: Error) => cause.message)).to.equal('stopped')
      expect(await dispatches.get(TENANT, dispatch.trace_id)).to.equal(undefined)
      await dispatches.create(TENANT, dispatch, LONG_INPUT)
      expect(await create().catch((cause: Error) => cause.message)).to.equal('stopped')
      expect(await dispatches.get(TENANT, dispatch.trace_id)).to.deep.equal(dispatch)
      expect(await dispatches.input(TENANT, dispatch.trace_id)).to.deep.equal(LONG_INPUT)
    }
  })

  it('an output above the limit of the store ends the execution with an error that says so', async () => {
    const { trace_id } = await run()
    const output = { ...OUTPUT, output: { text: 'x'.repeat(9e6) }, raw_output: 'x'.repeat(9e6) }
    const ended = await dispatches.end(TENANT, trace_id, { executor: 7, result: OK, output })
    expect(ended).to.include({ status: 'error', turns: OK.turns })
    expect(ended?.error).to.include({ status: 502, type: 'upstream_error' })
    expect(ended?.error?.message).to.include('cannot be stored')
    expect((await dispatches.output(TENANT, ended as Dispatch))?.output).to.equal(null)
  })

  dispatchListContract(() => ({ dispatches, now: () => clock }))
}

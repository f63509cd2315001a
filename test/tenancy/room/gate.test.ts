// Tests gate.ts, door.ts and allowance.ts: calls at one gate, whose rooms are in memory.

import { expect } from 'chai'
import fc from 'fast-check'
import { PRIORITIES, type Priority } from '../../../shared/agent/providers/port.ts'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import type { GateCall } from '../../../shared/tenancy/room/door.ts'
import { FairQueue, type QueuedCall } from '../../../shared/tenancy/room/fair-queue.ts'
import { ModelGate } from '../../../shared/tenancy/room/gate.ts'
import type { RoomRequest, Turn } from '../../../shared/tenancy/room/port.ts'
import { capsOf, MemoryRooms, NO_CAPS } from '../../../shared/tenancy/room/rooms.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'

const SIGNAL = new AbortController().signal
const queued = (tenant: string, priority: Priority = 'normal', customer = 'c', tokens = 100): QueuedCall => ({
  ...{ tenant: tenantId(tenant), caller: { priority, customer }, tokens },
})

describe('the order of model calls that wait', () => {
  /** The next calls, as if each was answered at once. */
  function turns(queue: FairQueue<QueuedCall>, count: number, at = 0): QueuedCall[] {
    return Array.from({ length: count }, () => {
      const next = queue.next(at)
      if (!next) throw new Error('nothing waits')
      queue.take(next.call, at)
      return next.call
    })
  }

  it('gives equal tokens to tenants and to the customers of each, however many calls each of them has', () => {
    const calls = fc.array(
      fc.tuple(fc.constantFrom('t_1', 't_2', 't_3'), fc.constantFrom('a', 'b'), fc.integer({ min: 1, max: 500 })),
      {
        ...{ minLength: 100, maxLength: 400 },
      },
    )
    fc.assert(
      fc.property(calls, (given) => {
        const queue = new FairQueue<QueuedCall>()
        for (const [tenant, customer, tokens] of given) queue.push(queued(tenant, 'normal', customer, tokens), 0)
        const [served, left] = [new Map<string, number>(), new Map<string, number>()]
        for (const [tenant] of given) left.set(tenant, (left.get(tenant) ?? 0) + 1)
        while ([...left.values()].every((count) => count > 0)) {
          const [call] = turns(queue, 1)
          if (!call) break
          served.set(call.tenant, (served.get(call.tenant) ?? 0) + call.tokens)
          left.set(call.tenant, (left.get(call.tenant) ?? 0) - 1)
        }
        const sums = [...left.keys()].map((tenant) => served.get(tenant) ?? 0)
        expect(Math.max(...sums) - Math.min(...sums)).to.be.at.most(500)
      }),
      { numRuns: 50 },
    )
  })

  it('gives a tenant of twice the weight twice the tokens, and so a customer', () => {
    const queue = new FairQueue<QueuedCall>((tenant) => (tenant === 't_1' ? 2 : 1))
    for (let at = 0; at < 60; at++) for (const tenant of ['t_1', 't_2']) queue.push(queued(tenant), 0)
    expect(turns(queue, 60).filter(({ tenant }) => tenant === 't_1')).to.have.length.within(39, 41)
    const ofCustomers = new FairQueue<QueuedCall>((_tenant, customer) => (customer === 'a' ? 2 : 1))
    for (let at = 0; at < 60; at++) for (const name of ['a', 'b']) ofCustomers.push(queued('t_1', 'normal', name), 0)
    expect(turns(ofCustomers, 60).filter(({ caller }) => caller.customer === 'a')).to.have.length.within(39, 41)
  })

  it('saves no turns for a tenant that did not wait', () => {
    const queue = new FairQueue<QueuedCall>()
    for (let at = 0; at < 50; at++) queue.push(queued('t_1'), 0)
    turns(queue, 20)
    for (let at = 0; at < 20; at++) queue.push(queued('t_2'), 0)
    expect(turns(queue, 10).filter(({ tenant }) => tenant === 't_1')).to.have.length.within(4, 6)
  })

  it('puts interactive calls before normal ones and batches, of which one has its turn at least every five seconds', () => {
    const queue = new FairQueue<QueuedCall>()
    for (const priority of PRIORITIES.toReversed())
      for (let at = 0; at < 3; at++) queue.push(queued('t_1', priority), 0)
    expect(turns(queue, 2).map(({ caller }) => caller.priority)).to.deep.equal(['interactive', 'interactive'])
    expect(turns(queue, 2, 6_000).map(({ caller }) => caller.priority)).to.deep.equal(['normal', 'interactive'])
  })
})

describe('the turns of model calls', () => {
  const gates: ModelGate[] = []
  afterEach(() => gates.splice(0).forEach((gate) => gate.close()))

  function open(rooms = new MemoryRooms()) {
    const asked: RoomRequest[] = []
    const counting = {
      ask: (scope: string, model: string, request: RoomRequest) => (
        asked.push(request), rooms.ask(scope, model, request)
      ),
      look: (scope: string) => rooms.look(scope),
    }
    const gate = new ModelGate({ rooms: counting, metrics: NO_METRICS, log: SILENT_LOG })
    gates.push(gate)
    const enter = (part: Partial<GateCall> = {}, signal = SIGNAL) =>
      Promise.resolve(
        gate.enter(
          {
            ...{ scope: 's', model: 'm', caps: NO_CAPS, tenant: tenantId('t_1'), tokens: 100, ...part },
            caller: part.caller ?? { priority: 'interactive' },
          },
          signal,
        ),
      )
    const begin = async (...args: Parameters<typeof enter>): Promise<Turn> => {
      const turn = await enter(...args)
      if ('retryAfterMs' in turn) throw new Error('the call was refused')
      return turn
    }
    return { asked, enter, begin, state: gate.stateOf({ scope: 's', model: 'm', caps: NO_CAPS }) }
  }
  const ANSWERED = {}

  it('ask for no room in nine of ten calls where no limit is known', async () => {
    const { asked, begin } = open()
    for (let at = 0; at < 100; at++) {
      const turn = await begin()
      turn.tell(ANSWERED)
      turn.end(100)
    }
    expect(asked.length).to.be.within(1, 12)
  })

  it('ask for room in one of five calls far from a limit that the provider tells', async () => {
    const { asked, begin } = open()
    for (let at = 0; at < 100; at++) {
      const turn = await begin()
      turn.tell({ tokens: { limit: 1_000_000, left: 990_000, resetMs: 600 } })
      turn.end(100)
    }
    expect(asked.length).to.be.at.most(20)
  })

  it('wait while the provider has closed, and go on afterwards, one ahead of the others', async () => {
    const { begin, enter } = open()
    const first = await begin()
    first.refused(60, undefined)
    first.end(undefined)
    const from = performance.now()
    await Promise.all([enter(), enter()])
    expect(performance.now() - from).to.be.at.least(50)
  })

  it('are refused at once when the provider is closed for longer than they may wait, with the time until it opens', async () => {
    const { begin, enter } = open()
    const first = await begin()
    first.refused(50_000, undefined)
    first.end(undefined)
    for (const most of [{ maxWaitMs: 30_000 }, { waitMs: 30_000 }])
      expect(await enter(most))
        .to.have.property('retryAfterMs')
        .that.is.within(40_000, 50_000)
  })

  it('are no more at a time than the instance allows, and one that ends gives its place to the next', async () => {
    const { begin } = open()
    const caps = capsOf({ concurrent: 2 })
    const [one, two] = [await begin({ caps }), await begin({ caps })]
    let isThird = false
    const third = begin({ caps }).then((turn) => ((isThird = true), turn))
    two.tell(ANSWERED)
    expect(isThird).to.equal(false)
    one.end(100)
    ;(await third).end(100)
  })

  it('are lost by a call that is aborted while it waits, which leaves nothing behind', async () => {
    const { begin, enter } = open()
    const caps = capsOf({ concurrent: 1 })
    const one = await begin({ caps })
    const controller = new AbortController()
    const waiting = enter({ caps }, controller.signal)
    controller.abort()
    await waiting
    one.end(100)
    ;(await begin({ caps })).end(100)
  })

  it('go to interactive calls first, and between the processes that share the room', async () => {
    const rooms = new MemoryRooms()
    const [first, second] = [open(rooms), open(rooms)]
    const caps = capsOf({ concurrent: 1 })
    const one = await first.begin({ caps })
    const order: string[] = []
    const begun = (name: string, entered: Promise<Turn>) => entered.then((turn) => (order.push(name), turn.end(100)))
    const all = [
      begun('batch', first.begin({ caps, caller: { priority: 'batch' } })),
      begun('interactive', first.begin({ caps })),
    ]
    one.end(100)
    await Promise.all(all)
    expect(order).to.deep.equal(['interactive', 'batch'])
    let isSecond = false
    void second.begin({ caps }).then(() => (isSecond = true))
    await until(() => isSecond, { what: 'the other process to have its turn' })
  })

  it('D56: are not taken at a model that fails, at no process; one of all calls finds out whether it answers again', async () => {
    let at = 1_000
    const rooms = new MemoryRooms(() => at)
    const processes = [open(rooms), open(rooms)].map(({ state }) => state.health)
    const [first, second] = processes
    for (let failed = 0; failed < 3; failed++) first?.note('failed', performance.now())
    expect(await first?.isPassedOver(performance.now())).to.equal(true)
    await until(async () => second?.isPassedOver(performance.now()), { what: 'the other process to know it' })
    at += 30_000
    const later = performance.now() + 31_000
    const trials = await Promise.all(processes.map(async (health) => !(await health.isPassedOver(later))))
    expect(trials.filter(Boolean)).to.have.length(1)
    processes[trials.indexOf(true)]?.note('answered', later)
    await until(() => processes.every((health) => !health.rests(performance.now())), {
      what: 'the rest to end for both',
    })
  })

  it('D56: tell how many calls wait before the next one', async () => {
    const rooms = new MemoryRooms()
    const [first, second] = [open(rooms), open(rooms)]
    const caps = capsOf({ concurrent: 1 })
    const one = await first.begin({ caps })
    const waiting = [first.begin({ caps }), first.begin({ caps })]
    expect(first.state.waiting).to.equal(2)
    void second.begin({ caps })
    await until(() => second.state.waiting === 3, { what: 'the other process to know of those that wait' })
    one.end(100)
    for (const turn of waiting) (await turn).end(100)
    expect(first.state.waiting).to.be.at.most(1)
  })
})

import { expect } from 'chai'
import fc from 'fast-check'
import type { Outcomes } from '../../../shared/agent/providers/health.ts'
import { openRedisLink, type Script } from '../../../shared/platform/redis/link.ts'
import { decide, newRoom } from '../../../shared/tenancy/room/decide.ts'
import type { Amount, RoomAnswer, RoomRequest, Rooms } from '../../../shared/tenancy/room/port.ts'
import { createRedisRooms } from '../../../shared/tenancy/room/redis-rooms.ts'
import { capsOf, MemoryRooms, NO_CAPS } from '../../../shared/tenancy/room/rooms.ts'
import { useOpened } from '../../support/fixture.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const ASK: RoomRequest = {
  ...{ process: 'p1', isFirst: false, next: [100, 1], want: [1_000, 10], caps: NO_CAPS, spent: [0, 0] },
  ...{ atWork: 1, waiting: 1, weight: 1 },
}
const told = (limit: number, left: number, resetMs?: number): RoomRequest['told'] => ({
  ...{ limits: [{ limit, left, resetMs }, undefined], ageMs: 0, sent: [0, 0] },
})
const TELL: RoomRequest = { ...ASK, next: [0, 0], want: [0, 0] }

const AGE: Script = {
  name: 'aeAgeRoom',
  keys: 1,
  lua: `local room = cjson.decode(redis.call('HGET', KEYS[1], 'm'))
  for name, at in pairs(room.health) do
    if (name == 'restsUntil' or name == 'trialUntil') and at > 0 then room.health[name] = at - ARGV[1] end
  end
  redis.call('HSET', KEYS[1], 'm', cjson.encode(room))`,
}

describe('the room at a model', () => {
  it('is given to the processes that wait by the weights of their tenants, however often each of them asks', () => {
    const room = newRoom(0)
    decide(room, { ...TELL, told: told(6_000_000, 6_000_000, 0) }, 0)
    const given = { p1: 0, p2: 0, p3: 0 }
    const ask = (process: keyof typeof given, now: number): boolean => {
      const weight = process === 'p3' ? 100 : 50
      const { granted } = decide(
        room,
        { ...ASK, process, waiting: 50, weight, next: [1_000, 1], want: [1_000, 1] },
        now,
      )
      given[process] += granted[0]
      return granted[1] > 0
    }
    for (let now = 0; now <= 60_000; now += 10) {
      if (now === 1_000) Object.assign(given, { p1: 0, p2: 0, p3: 0 }) // The first that asks is given the burst.
      while (ask('p1', now));
      if (now % 100 === 0) while (ask('p2', now) || ask('p3', now));
    }
    expect(given.p1 / given.p2).to.be.closeTo(1, 0.1)
    expect(given.p3 / given.p2).to.be.closeTo(2, 0.2)
    expect(given.p1 + given.p2 + given.p3).to.be.at.least(5_900_000)
  })

  const redis = useRedis()
  const link = useOpened(() => openRedisLink(redis.url))

  let number = 0
  /** `age` lets time pass for the health of a model. */
  const FORMS: [string, () => { rooms: Rooms; age(scope: string, ms: number): unknown }][] = [
    [
      'one process',
      () => {
        let passed = 0
        return { rooms: new MemoryRooms(() => Date.now() + passed), age: (_scope, ms) => (passed += ms) }
      },
    ],
    [
      'a cluster',
      () => ({ rooms: createRedisRooms(link.run), age: (scope, ms) => link.run(AGE, [`room:${scope}`], [ms]) }),
    ],
  ]
  for (const [form, open] of FORMS)
    describe(`of ${form}`, () => {
      const room = () => {
        const [{ rooms, age }, scope] = [open(), `t:${process.pid}-${number++}`]
        return {
          age: (ms: number) => age(scope, ms),
          ask: (part: Partial<RoomRequest>) => rooms.ask(scope, 'm', { ...ASK, ...part }),
          look: () => rooms.look(scope),
        }
      }

      it('is given without a limit where none is known', async () => {
        const answer = await room().ask({})
        expect(answer).to.include({ retryMs: 0, closedMs: 0 })
        expect(answer.granted).to.deep.equal([100, 1])
        expect(answer.limit).to.deep.equal([Infinity, Infinity])
      })

      it('is no more than the provider tells', async () => {
        const { ask } = room()
        await ask({ ...TELL, told: told(6_000, 350) })
        const answers = []
        for (let at = 0; at < 5; at++) answers.push(await ask({ want: [100, 1] }))
        expect(answers.filter(({ retryMs }) => retryMs === 0)).to.have.length(1) // 180 tokens are kept.
        expect(answers[4]?.retryMs).to.be.within(100, 1_500)
      })

      it('keeps a part for those that come first, who are not paced', async () => {
        const { ask } = room()
        await ask({ ...TELL, told: told(6_000, 350) })
        await ask({ want: [100, 1] })
        const first = await ask({ isFirst: true, next: [200, 1], want: [200, 1] })
        expect(first.retryMs).to.equal(0)
        expect((await ask({ isFirst: true, next: [200, 1], want: [200, 1] })).retryMs).to.be.greaterThan(0)
      })

      it('keeps less of it in the last seconds of a minute whose room then is whole again', async () => {
        const { ask } = room()
        const next: Amount = [80, 1]
        await ask({ ...TELL, told: told(6_000, 6_000, 9_100) })
        await ask({ ...TELL, told: told(6_000, 250, 9_000) })
        expect((await ask({ next, want: next })).retryMs).to.equal(0)
        expect((await ask({ next, want: next })).retryMs).to.be.within(1, 9_000)
      })

      it('is whole again when the provider says so, which may be sooner than after a minute, also for those that are paced', async () => {
        const { ask } = room()
        const next: Amount = [1_500, 1]
        await ask({ ...TELL, told: told(6_000, 6_000, 0) })
        await ask({ isFirst: true, next, want: next })
        await ask({ ...TELL, told: told(6_000, 0, 600) })
        const asked = () => ask({ next, want: next })
        expect((await asked()).retryMs).to.be.greaterThan(0)
        await until(async () => (await asked()).retryMs === 0, { what: 'the room to be whole', withinMs: 6_000 })
      })

      it('is asked for again after a minute where the provider says that it is whole in days', async () => {
        const { ask } = room()
        await ask({ ...TELL, told: told(6_000, 5_000, 1_000_000_000) })
        expect((await ask({ isFirst: true, next: [5_300, 1] })).retryMs).to.be.within(1, 60_000)
      })

      it('is closed after a refusal for as long as the provider says, for every process', async () => {
        const { ask } = room()
        await ask({ ...TELL, refusedMs: 5_000 })
        const answer = await ask({ process: 'p2', isFirst: true })
        expect(answer.closedMs).to.be.within(4_000, 5_000)
        expect(answer.granted).to.deep.equal([0, 0])
        expect(answer.refused).to.equal(1)
      })

      it('has a limit below what was sent when the provider that refuses tells none', async () => {
        const { ask } = room()
        await ask({ ...TELL, spent: [50_000, 150] })
        const { limit } = await ask({ ...TELL, refusedMs: 1 })
        expect(limit[0]).to.be.within(40_000, 46_000)
      })

      it('has no limit after a refusal of a few calls, which may have had another reason', async () => {
        const { ask } = room()
        await ask({ ...TELL, spent: [50_000, 50] })
        const { limit } = await ask({ ...TELL, refusedMs: 1 })
        expect(limit[0]).to.equal(Infinity)
      })

      it('has the limit of the tenant where the provider tells a wider one', async () => {
        const { ask } = room()
        const caps = capsOf({ requests_per_minute: 3 })
        const first = { caps, isFirst: true, want: [100, 1] as Amount }
        await ask({
          ...TELL,
          caps,
          told: { limits: [undefined, { limit: 60, left: 60, resetMs: 0 }], ageMs: 0, sent: [0, 0] },
        })
        const answers: RoomAnswer[] = []
        for (let at = 0; at < 5; at++) answers.push(await ask(first))
        expect(answers.map(({ retryMs }) => retryMs === 0)).to.deep.equal([true, true, true, false, false])
        expect(answers[4]?.retryMs).to.be.within(50_000, 60_000)
      })

      it('has places for so many calls at work at all processes, and gives the places of an ended call to others', async () => {
        const { ask } = room()
        const caps = capsOf({ concurrent: 2 })
        expect((await ask({ caps })).retryMs).to.equal(0)
        expect((await ask({ caps, process: 'p2' })).retryMs).to.equal(0)
        expect((await ask({ caps, process: 'p2', atWork: 2 })).retryMs).to.be.greaterThan(0)
        await ask({ ...TELL, caps, atWork: 0 })
        expect((await ask({ caps, process: 'p2', atWork: 2 })).retryMs).to.equal(0)
      })

      it('is shown with its limits, what was used, who waits and what was refused', async () => {
        const { ask, look } = room()
        await ask({ ...TELL, spent: [500, 5], atWork: 2, told: told(6_000, 5_000), waiting: 3, refusedMs: 1 })
        const [shown] = await look()
        expect(shown?.model).to.equal('m')
        const expected = {
          ...{ limit: [6_000, Infinity], used: [500, 5], atWork: 2, waiting: 3, refused: 1 },
          ...{ state: 'healthy', errorRate: 0 },
        }
        expect(shown?.state).to.deep.equal(expected)
      })

      it('D56: knows the health of its model by the calls of all processes, and gives the trial behind a rest to one', async () => {
        const { ask, look, age } = room()
        const tell = (process: string, ...outcomes: Outcomes) => ask({ ...TELL, process, outcomes })
        await tell('p1', 5, 1, 1)
        const { health, now } = await tell('p2', 0, 2, 2)
        expect(health.restsUntil - now).to.equal(30_000)
        expect((await look())[0]?.state).to.deep.include({ state: 'unhealthy' })
        expect((await look())[0]?.state.errorRate).to.be.closeTo(3 / 8, 0.01)
        expect((await ask({ ...TELL, isTrial: true })).isTrial).to.equal(false)
        await age(30_001)
        expect((await look())[0]?.state).to.deep.include({ state: 'half_open' })
        const trials = [await ask({ ...TELL, isTrial: true }), await ask({ ...TELL, process: 'p2', isTrial: true })]
        expect(trials.map(({ isTrial }) => isTrial)).to.deep.equal([true, false])
        await tell('p1', 0, 1, 1)
        await age(30_001)
        await tell('p2', 1, 0, 0)
        expect((await look())[0]?.state).to.deep.include({ state: 'healthy', errorRate: 0 })
      })

      // The clocks differ by the time of a request: there is much room, or none for seconds.
      it('decides like the other form', async () => {
        const { ask } = room()
        const own = newRoom(Date.now())
        const steps = fc.array(
          fc.record({
            ...{ process: fc.constantFrom('p1', 'p2', 'p3'), isFirst: fc.boolean(), atWork: fc.nat(5) },
            ...{
              waiting: fc.nat(3),
              weight: fc.nat(3),
              next: fc.tuple(fc.integer({ min: 500, max: 900 }), fc.constantFrom(0, 1)),
            },
            want: fc.tuple(fc.nat(3_000), fc.nat(16)),
            spent: fc.tuple(fc.nat(3_000), fc.nat(9)),
            outcomes: fc.constantFrom<Outcomes>([0, 0, 0], [1, 0, 0], [9, 2, 0], [0, 1, 0], [0, 1, 1], [1, 3, 2]),
            caps: fc.constantFrom(NO_CAPS, capsOf({ tokens_per_minute: 90_000_000, concurrent: 4 })),
            told: fc.option(
              fc.record({
                limits: fc.tuple(
                  fc.option(
                    fc.oneof(
                      fc.record({
                        ...{
                          limit: fc.integer({ min: 6_000_000, max: 9_000_000 }),
                          left: fc.integer({ min: 1e6, max: 6e6 }),
                        },
                        resetMs: fc.constantFrom(undefined, 20_000, 59_000),
                      }),
                      fc.constant({ limit: 6_000, left: 0, resetMs: undefined }),
                    ),
                    { nil: undefined },
                  ),
                  fc.constant(undefined),
                ),
                ...{ ageMs: fc.nat(50), sent: fc.constant([0, 0] as const) },
              }),
              { nil: undefined },
            ),
          }),
          { minLength: 60, maxLength: 60 },
        )
        for (const step of fc.sample(steps, { numRuns: 2, seed: 7 }).flat()) {
          const [theirs, ours] = [await ask(step), decide(own, step, Date.now())]
          expect(Boolean(theirs.retryMs)).to.equal(Boolean(ours.retryMs), JSON.stringify(step))
          expect(theirs.limit).to.deep.equal(ours.limit)
          expect(theirs.atWork).to.equal(ours.atWork)
          expect(theirs.waiting).to.equal(ours.waiting)
          expect(theirs.health.inRow).to.equal(ours.health.inRow)
          expect(theirs.health.restsUntil > 0).to.equal(ours.health.restsUntil > 0, JSON.stringify(step))
        }
      })
    })
})

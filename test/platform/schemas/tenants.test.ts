// Tests schema-places.ts: the threads of the tenants, with real threads.

import { expect } from 'chai'
import type { AppError } from '../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { createSchemaCheckers } from '../../../shared/platform/schemas/checker.ts'
import type { SchemaCheckers } from '../../../shared/platform/schemas/port.ts'

const [ACME, GLOBEX] = ['acme', 'globex'] as [TenantId, TenantId]
const SMALL = { type: 'object', properties: { a: { type: 'string' } } }
/** A value of depth n takes 2^n evaluations. */
const EXPENSIVE: JsonObject = { properties: { a: { anyOf: [1, 2].map(() => ({ allOf: [{ $ref: '#' }, false] })) } } }
const DEEP = JSON.parse(`${'{"a":'.repeat(60)}{}${'}'.repeat(60)}`) as JsonObject
const TIMED_OUT = 'cannot be checked within 100 ms: send a smaller value'
const ENDLESS = { newSchemasMs: 10_000, taskMs: 600_000, totalMs: 600_000, waitMs: 600_000 }

describe('the tenants of the schema checkers', () => {
  const closing: SchemaCheckers[] = []
  afterEach(() => Promise.all(closing.splice(0).map((checkers) => checkers.close())))

  function open(limits: Parameters<typeof createSchemaCheckers>[0] = {}): SchemaCheckers {
    const checkers = createSchemaCheckers({ ...ENDLESS, threads: 1, ...limits })
    closing.push(checkers)
    return checkers
  }

  /** Checks that do not end by themselves. They are refused when the checkers are closed. */
  const beginEndless = (checkers: SchemaCheckers, tenant: TenantId, count: number): Promise<AppError[]> =>
    Promise.all(
      Array.from({ length: count }, () =>
        checkers
          .of(tenant)
          .check(EXPENSIVE, DEEP)
          .then(
            () => expect.fail('it has ended'),
            (error: AppError) => error,
          ),
      ),
    )

  for (const threads of [1, 3])
    it(`a tenant whose checks have all of ${threads} threads that it can get does not make another one wait for their end`, async () => {
      const checkers = open({ threads })
      const endless = beginEndless(checkers, ACME, 20)
      for (const a of ['x', 'y']) expect(await checkers.of(GLOBEX).check(SMALL, { a })).to.deep.equal([])
      await checkers.close()
      expect((await endless).map(({ status }) => status)).to.deep.equal(Array(20).fill(503))
    })

  it('a tenant with its share of the checks that wait is refused with 429, and no other tenant is', async () => {
    const checkers = open({ waiting: { max: 8, maxPerTenant: 4 } })
    const endless = beginEndless(checkers, ACME, 4)
    const refusal = await checkers
      .of(ACME)
      .check(SMALL, {})
      .catch((cause: AppError) => cause)
    expect(refusal).to.include({ status: 429, retryAfterSecs: 1 })
    expect(refusal).to.have.property('message').that.includes('this tenant has its share')
    expect(await checkers.of(GLOBEX).check(SMALL, { a: 1 })).to.have.length(1)
    await checkers.close()
    await endless
  })

  it('tenants whose checks wait take turns', async () => {
    const checkers = open()
    const order: TenantId[] = []
    const check = async (tenant: TenantId) => {
      await checkers.of(tenant).check(SMALL, {})
      order.push(tenant)
    }
    await Promise.all([...Array(20).fill(ACME), ...Array(4).fill(GLOBEX)].map(check))
    expect(order.slice(0, 12).filter((tenant) => tenant === GLOBEX)).to.have.length(4)
  })

  it('a tenant whose checks end their threads leaves the thread that holds the schemas of another one', async () => {
    const checkers = open({ taskMs: 100, totalMs: 200 })
    const sent: number[] = []
    let count = 0
    const counted = Object.defineProperty({ ...SMALL }, 'toJSON', {
      value: () => {
        count++
        return SMALL
      },
    })
    for (let i = 0; i < 4; i++) {
      const slow = [1, 2].map(() => checkers.of(ACME).check(EXPENSIVE, DEEP))
      await checkers.of(GLOBEX).check(counted, {})
      expect((await Promise.all(slow)).map(([problem]) => problem?.message)).to.deep.equal([TIMED_OUT, TIMED_OUT])
      sent.push(count)
    }
    expect(sent.slice(1)).to.deep.equal(Array(3).fill(sent[0])) // All three threads run only after the first round.
  })

  it('a thread that had to be ended is replaced, and no check that waits is lost', async () => {
    const checkers = open({ taskMs: 100, totalMs: 200 })
    const slow = Array.from({ length: 4 }, () => checkers.of(ACME).check(EXPENSIVE, DEEP))
    const quick = [ACME, GLOBEX].flatMap((tenant) =>
      Array.from({ length: 4 }, () => checkers.of(tenant).check(SMALL, {})),
    )
    expect((await Promise.all(quick)).flat()).to.deep.equal([])
    expect((await Promise.all(slow)).map(([problem]) => problem?.message)).to.deep.equal(Array(4).fill(TIMED_OUT))
  })
})

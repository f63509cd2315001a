// Tests driver.ts and pool.ts: calls that wait for the batches of vendors, with a vendor and a clock that a test sets.

import { expect } from 'chai'
import { PoolDriver } from '../../../../../shared/agent/providers/batch/pool/driver.ts'
import { CallPool } from '../../../../../shared/agent/providers/batch/pool/pool.ts'
import { type CallOwner, nameOf, PoolStore } from '../../../../../shared/agent/providers/batch/pool/store.ts'
import { GOES_LIVE } from '../../../../../shared/agent/providers/batch/port.ts'
import { AppError, type ErrorKind } from '../../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT, type TenantId } from '../../../../../shared/kernel/tenant.ts'
import type { Collection, Store } from '../../../../../shared/platform/store/port.ts'
import { GOOD, ScriptedVendor } from '../../../../support/scripted-vendor.ts'
import { SILENT_LOG } from '../../../../support/silent-log.ts'
import { tenantId } from '../../../../support/tenant.ts'
import { useTestStore } from '../../../../support/test-store.ts'

const HOUR_MS = 3_600_000
const SOON_MS = 10_000
const LATER_MS = 300_000

describe('the pool of calls for vendors’ batches', () => {
  const opened = useTestStore({ perTest: true })

  /** A pool, and a process that drives it. `add` adds calls of an owner by their ids. */
  function open() {
    const clock = { ms: Date.now() }
    const now = () => new Date(clock.ms)
    const vendor = new ScriptedVendor()
    const told: string[] = []
    const access = { vendor: vendor as ScriptedVendor | undefined }
    const budget: { refusal?: AppError } = {}
    const assertBudget = async () => {
      if (budget.refusal) throw budget.refusal
    }
    const processOn = (base: Store) => {
      const store = new PoolStore(base)
      const openVendor = async () => access.vendor
      const onAnswered = async (_tenant: TenantId, waves: readonly CallOwner[]) =>
        void told.push(...waves.map(({ batch_id }) => batch_id))
      const driver = new PoolDriver({ store, openVendor, assertBudget, onAnswered, now, log: SILENT_LOG })
      return { pool: new CallPool({ store, now }), driver }
    }
    const { pool, driver } = processOn(opened.store)
    const add = (
      owner: string,
      ids: readonly string[],
      { model = 'm', instance = 'main', tenant = TENANT, hours = 24 } = {},
    ) => {
      const calls = ids.map((id) => ({ id, path: '/chat/completions', body: { model } }))
      const terms = { instance, until_ms: clock.ms + hours * HOUR_MS, expires_ms: clock.ms + 48 * HOUR_MS }
      return pool.add(tenant, ownerOf(owner), { calls, number: 0, ...terms })
    }
    /** Some time goes by, and the process looks. */
    const go = async (ms = SOON_MS) => {
      clock.ms += ms
      await driver.look()
      await driver.settled()
    }
    const statusesOf = async (owner: string) =>
      [...(await pool.store.answers(TENANT, ownerOf(owner))).values()].map(({ status }) => status)
    const waveOf = async (owner: string) =>
      (await pool.store.waves(TENANT, ownerOf(owner)))[0] ?? expect.fail('no wave')
    return { clock, vendor, access, budget, told, processOn, pool, driver, add, go, statusesOf, waveOf }
  }

  const ownerOf = (batch_id: string): CallOwner => ({ batch_id, chunk: 0 })
  const idsOf = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`)

  it('D58.1: those of all owners to one model of an instance are one batch, once none has come for a while; others have their own', async () => {
    const { add, go, vendor, told, statusesOf } = open()
    await add('a', ['a-1', 'a-2'])
    await go(4_000)
    await add('b', ['b-1'])
    await add('c', ['c-1'], { model: 'n' })
    await add('d', ['d-1'], { instance: 'second' })
    await add('e', ['e-1'], { tenant: tenantId('t_2') })
    await go(4_000)
    expect(vendor.sent).to.deep.equal([])
    await go(1_000)
    await go(0) // A process is at two pools of a tenant at a time.
    expect(vendor.calls.toSorted()).to.deep.equal([['a-1', 'a-2', 'b-1'], ['c-1'], ['d-1'], ['e-1']])
    vendor.answerAll()
    await go()
    await go(0)
    expect(told.toSorted()).to.deep.equal(['a', 'b', 'c', 'd', 'e'])
    expect(await statusesOf('a')).to.deep.equal([200, 200])
    await add('f', ['f-1'])
    await go()
    expect(vendor.calls.at(-1)).to.deep.equal(['f-1'])
  })

  it('D58.1: are gathered for two minutes at most, and one batch has 5,000 calls and 16 MiB at most', async () => {
    const { add, go, vendor, pool } = open()
    for (let n = 0; n < 31; n++) {
      await add(`a${n}`, [`a-${n}`])
      await go(4_000)
    }
    expect(vendor.calls.map(({ length }) => length)).to.deep.equal([30])
    await go()
    for (let n = 0; n < 6; n++) await add(`b${n}`, idsOf(`b${n}`, 1_000))
    await go()
    expect(vendor.calls.map(({ length }) => length)).to.deep.equal([30, 1, 5_000, 1_000])
    const terms = {
      number: 0,
      instance: 'main',
      until_ms: Number.MAX_SAFE_INTEGER,
      expires_ms: Number.MAX_SAFE_INTEGER,
    }
    const text = 'x'.repeat(3 * 1024 * 1024)
    const calls = idsOf('c', 7).map((id) => ({ id, path: '/p', body: { text: id === 'c-0' ? text.repeat(2) : text } }))
    await pool.add(TENANT, ownerOf('c'), { calls, ...terms })
    await go()
    expect(vendor.calls.slice(4).map(({ length }) => length)).to.deep.equal([5, 1])
    expect(await pool.store.answers(TENANT, ownerOf('c'))).to.deep.equal(new Map([['c-0', GOES_LIVE]]))
  })

  /** A store whose process dies at its n-th operation, before or after it is done. */
  function mortal(store: Store, life: { left: number; isDone: boolean }): Store {
    const die = (): never => {
      throw new AppError('unavailable', 'this process is dead')
    }
    const dying = (collection: Collection): Collection =>
      new Proxy(collection, {
        get: (target, name: keyof Collection) => {
          const method = (target[name] as (...args: unknown[]) => Promise<unknown>).bind(target)
          return async (...args: unknown[]) => {
            life.left--
            if (life.left < 0 || (life.left === 0 && !life.isDone)) die()
            const result = await method(...args)
            return life.left === 0 ? die() : result
          }
        },
      })
    return { collection: (spec) => dying(store.collection(spec)), awayMs: () => 0, close: async () => {} }
  }

  it('D58.2: whenever a process dies, each call is sent once, and has its answer', async () => {
    for (const isDone of [false, true])
      for (let at = 1, isDead = true; isDead; at++) {
        const { clock, vendor, processOn } = open()
        const owner = ownerOf(`owner-${isDone}-${at}`)
        const calls = idsOf(owner.batch_id, 3).map((id) => ({ id, path: '/p', body: {} }))
        /** As the chunk of a batch: asks for what has no answer. */
        const advance = async (pool: CallPool): Promise<boolean> => {
          const waves = await pool.store.waves(TENANT, owner)
          const looks = waves.filter(({ state }) => state !== 'answered').map((wave) => pool.look(TENANT, wave))
          if ((await Promise.all(looks)).some((wave) => wave)) return false
          const answers = await pool.store.answers(TENANT, owner)
          const missing = calls.filter(({ id }) => !answers.has(id))
          const terms = { instance: 'main', until_ms: clock.ms + 24 * HOUR_MS, expires_ms: clock.ms + 48 * HOUR_MS }
          const number = 1 + (waves.at(-1)?.wave ?? -1)
          if (missing.length > 0) await pool.add(TENANT, owner, { calls: missing, number, ...terms })
          return missing.length === 0
        }
        const live = async ({ pool, driver }: ReturnType<typeof processOn>, rounds: number): Promise<boolean> => {
          for (let round = 0; round < rounds; round++) {
            if (await advance(pool)) return true
            clock.ms += 40_000
            await driver.look()
            await driver.settled()
            vendor.answerAll()
          }
          return false
        }
        const life = { left: at, isDone }
        await live(processOn(mortal(opened.store, life)), 9).catch(() => {})
        isDead = life.left <= 0
        expect(await live(processOn(opened.store), 99), `died at ${at}`).to.equal(true)
        expect(vendor.calls.flat().toSorted(), `died at ${at}`).to.deep.equal(calls.map(({ id }) => id))
      }
  })

  it('D58.2: two processes that are at a pool at the same time send its calls once', async () => {
    const { add, clock, vendor, processOn } = open()
    await add('a', ['a-1'])
    await add('b', ['b-1'])
    clock.ms += SOON_MS
    const drivers = [1, 2].map(() => {
      const { pool, driver } = processOn(opened.store)
      pool.store.open.claim = async (each) => ({ ...each, version: 0 })
      return driver
    })
    await Promise.all(drivers.map((driver) => driver.look()))
    await Promise.all(drivers.map((driver) => driver.settled()))
    expect(vendor.calls).to.deep.equal([['a-1', 'b-1']])
  })

  it('D58.2: a process that has read older answers sends nothing again', async () => {
    const { add, go, vendor } = open()
    await add('a', ['a-1'])
    await go()
    vendor.answerAll()
    await go()
    await add('a', ['a-1'])
    await go()
    expect(vendor.calls).to.deep.equal([['a-1']])
  })

  it('D58.2: of many pools whose vendors are slow a process is at a few, and leaves places to other tenants', async () => {
    const { add, clock, vendor, driver } = open()
    for (const model of ['1', '2', '3']) await add(model, [`a-${model}`], { model })
    await add('b', ['b-1'], { tenant: tenantId('t_2') })
    clock.ms += SOON_MS
    const hold = Promise.withResolvers<never>()
    const begun: string[] = []
    vendor.submit = async (calls) => {
      begun.push(...calls.map(({ id }) => id.slice(0, 1)))
      return hold.promise
    }
    await driver.look()
    hold.reject(new AppError('rate_limit', 'later'))
    await driver.settled()
    expect(begun.toSorted()).to.deep.equal(['a', 'a', 'b'])
  })

  it('D55.6d: a submission whose answer was lost is looked for, and sent again where the vendor has not got it', async () => {
    for (const isKept of [true, false]) {
      const { add, go, vendor, statusesOf } = open()
      const owner = `owner-${isKept}`
      vendor.fails.push(new Error('the answer is lost'))
      await add(owner, [owner])
      await go()
      if (!isKept) vendor.sent = []
      await go(160_000)
      expect(vendor.sent, 'another process may be at it').to.have.length(isKept ? 1 : 0)
      vendor.isUnsure = true
      await go(20_000)
      expect(vendor.sent, 'the vendor may have it').to.have.length(isKept ? 1 : 0)
      vendor.isUnsure = false
      await go(20_000)
      expect(vendor.calls).to.deep.equal([[owner]])
      vendor.answerAll()
      await go(20_000)
      expect(await statusesOf(owner)).to.deep.equal([200])
    }
  })

  it('D55.6b: what the vendor has no room for is sent again in halves after a while, whenever it says so', async () => {
    const { add, go, vendor, statusesOf } = open()
    for (const owner of ['a', 'b', 'c', 'd']) await add(owner, [owner])
    vendor.fails.push(new AppError('rate_limit', 'too many'))
    await go()
    await add('e', ['e']) // It wakes the pool.
    await go(LATER_MS - SOON_MS)
    expect(vendor.sent).to.deep.equal([])
    await go()
    expect(vendor.calls).to.deep.equal([['a', 'b'], ['c', 'd'], ['e']])
    vendor.answer(1, 'refused')
    await go()
    vendor.answer(0)
    vendor.answer(2)
    await go(LATER_MS - 1_000)
    expect(vendor.sent).to.have.length(3)
    await go(1_000)
    expect(vendor.calls.slice(3)).to.deep.equal([['c'], ['d']])
    vendor.answerAll()
    await go()
    expect(await statusesOf('d')).to.deep.equal([200])
  })

  it('D58.3: of a batch that the vendor refuses for one call the others are sent again in smaller ones, and few go live', async () => {
    for (const isSaidLater of [false, true]) {
      const { add, go, vendor, statusesOf } = open()
      const owners = idsOf(`o${isSaidLater}`, 20)
      for (const owner of owners) await add(owner, idsOf(owner, 10), { model: String(isSaidLater) })
      const isWrong = (ids: readonly string[]) => ids.includes(`${owners[7]}-3`)
      if (!isSaidLater)
        vendor.refuses = (calls) =>
          isWrong(calls.map(({ id }) => id)) ? new AppError('invalid_request', 'a call is wrong') : undefined
      for (let round = 0; round < 12; round++) {
        for (const [at, calls] of vendor.calls.entries()) vendor.answer(at, isWrong(calls) ? [] : undefined)
        await go()
      }
      const statuses = (await Promise.all(owners.map(statusesOf))).flat()
      expect([statuses.length, statuses.filter((status) => status === 0).length]).to.deep.equal([200, 20])
      vendor.refuses = () => undefined
    }
  })

  it('D55.6e: nothing more is sent when the budget is used up, and what is at the vendor counts; where that is not known it waits', async () => {
    const { add, go, vendor, budget, statusesOf } = open()
    await add('a', ['a'])
    await go()
    await add('b', ['b'])
    budget.refusal = new AppError('unavailable', 'it cannot be read')
    await go()
    expect([vendor.calls, await statusesOf('b')]).to.deep.equal([[['a']], []])
    budget.refusal = new AppError('rate_limit', 'used up')
    vendor.answerAll()
    await go(60_000)
    expect([vendor.calls, await statusesOf('a'), await statusesOf('b')]).to.deep.equal([[['a']], [200], [0]])
  })

  it('D55.6b: while the vendor cannot be read its answers are waited for, and a batch that it does not know any more goes live', async () => {
    const { add, go, vendor, statusesOf } = open()
    await add('a', ['a'])
    await go()
    vendor.unreadable = new AppError('not_found', 'not yet')
    await go()
    expect(await statusesOf('a')).to.deep.equal([])
    for (const [kind, statuses] of [
      ['unavailable', []],
      ['rate_limit', []],
      ['upstream', []],
      ['not_found', [0]],
    ] as [ErrorKind, number[]][]) {
      vendor.unreadable = new AppError(kind, 'not now')
      await go(HOUR_MS)
      expect(await statusesOf('a'), kind).to.deep.equal(statuses)
    }
  })

  it('D55.6b: what the vendor refuses, has not answered or has failed at goes live, and all where its instance is gone', async () => {
    const { add, go, vendor, access, statusesOf } = open()
    for (const kind of ['upstream', 'not_found', 'invalid_request'] as const) {
      vendor.fails.push(new AppError(kind, 'there is no such endpoint'))
      await add(kind, [kind])
      await go()
      expect(await statusesOf(kind)).to.deep.equal([0])
    }
    await add('a', ['a-1', 'a-2', 'a-3'])
    await go()
    vendor.answer(0, [
      ['a-1', GOOD],
      ['a-2', { status: 503, body: {} }],
      ['stranger', GOOD],
    ])
    await go()
    expect(await statusesOf('a')).to.deep.equal([200, 0, 0])
    for (const owner of ['b', 'c']) {
      await add(owner, [owner])
      if (owner === 'b') await go()
    }
    access.vendor = undefined
    await go()
    expect([await statusesOf('b'), await statusesOf('c')]).to.deep.equal([[0], [0]])
  })

  it('D58.4: what is withdrawn, or has no time any more, is not sent, and a batch is cancelled when all of it is', async () => {
    const { add, go, vendor, pool, waveOf, statusesOf } = open()
    await add('early', ['early'])
    await pool.withdraw(TENANT, await waveOf('early'))
    await go()
    expect([vendor.sent.length, await statusesOf('early')]).to.deep.equal([0, [0]])
    await add('a', ['a'])
    await add('b', ['b'], { hours: 2 })
    await go()
    await pool.withdraw(TENANT, await waveOf('a'))
    await go()
    expect(vendor.sent[0]?.isCancelled).to.equal(undefined)
    await go(2 * HOUR_MS)
    expect(vendor.sent[0]?.isCancelled).to.equal(true)
    vendor.answer(0, [['b', GOOD]])
    await go(LATER_MS)
    expect([await statusesOf('a'), await statusesOf('b')]).to.deep.equal([[0], [200]])
    await add('late', ['late'], { hours: 0.001 })
    await go()
    expect([vendor.sent.length, await statusesOf('late')]).to.deep.equal([1, [0]])
  })

  it('D58.2: a wave that a process has not brought into the pool counts as lost after a while', async () => {
    const { pool, clock } = open()
    const wave = { ...ownerOf('a'), wave: 0, state: 'pooled' as const, vendor_id: null, at_ms: clock.ms, calls: ['a'] }
    await pool.store.addWave(TENANT, wave, clock.ms + HOUR_MS)
    expect(await pool.look(TENANT, wave)).to.equal(wave)
    clock.ms += 200_000
    expect(await pool.look(TENANT, wave)).to.equal(undefined)
    expect(await pool.store.waves(TENANT, wave)).to.deep.equal([])
    expect(nameOf(wave)).to.equal('a-0-0')
  })
})

import { EventEmitter, once } from 'node:events'
import { expect } from 'chai'
import { createLog } from '../../../shared/kernel/log.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { NO_EVENTS } from '../../../shared/tenancy/events/port.ts'
import { putEngine } from '../../../shared/tenancy/tenant-config/changes.ts'
import {
  type ConfigNotice,
  type LiveConfigs,
  openLiveConfigs,
} from '../../../shared/tenancy/tenant-config/live-configs.ts'
import {
  createTenantConfigStore,
  type TenantConfigStore,
} from '../../../shared/tenancy/tenant-config/store/tenant-configs.ts'
import { tenantId } from '../../support/tenant.ts'
import { useTestStore } from '../../support/test-store.ts'
import { until } from '../../support/until.ts'

const ACME = tenantId('acme')
const OTHER = tenantId('other')
const days = (retention_days: number) => putEngine({ audit: { retention_days } })
const DEAF: ConfigNotice = { send: () => {}, listen: async () => async () => {} }

describe("tenants' configurations as a process sees them", () => {
  const file = useTestStore({ perTest: true })
  let reads: string[]
  let polled: EventEmitter
  let counted: TenantConfigStore
  let isListAway = false
  let isStoreAway = false
  /** A read that has its document waits for this before it answers. */
  let answered: Promise<void>
  const opened: LiveConfigs[] = []

  beforeEach(async () => {
    const configs = createTenantConfigStore(file.store)
    reads = []
    isStoreAway = false
    answered = Promise.resolve()
    polled = new EventEmitter()
    counted = {
      ...configs,
      async read(tenant) {
        reads.push(tenant)
        if (isStoreAway) throw new Error('away')
        const held = answered
        const doc = await configs.read(tenant)
        await held
        return doc
      },
      changes: (limit) =>
        (isListAway ? Promise.reject(new Error('away')) : configs.changes(limit)).finally(() =>
          setImmediate(() => polled.emit('poll')),
        ),
    }
  })

  afterEach(() => Promise.all(opened.splice(0).map((configs) => configs.close())))

  const open = async (notice: ConfigNotice = DEAF, pollMs = 20, checkMs = 60_000) => {
    const log = createLog({ level: 'error' })
    const configs = await openLiveConfigs({ store: counted, notice, events: NO_EVENTS, log, pollMs, checkMs })
    opened.push(configs)
    return configs
  }

  it('reads a configuration once, however often and however much at once it is asked for', async () => {
    const configs = await open()
    await Promise.all([configs.get(ACME), configs.get(ACME)])
    expect(await configs.get(ACME)).to.equal(configs.peek(ACME))
    expect(reads).to.deep.equal([ACME])
  })

  it('D8.5: a change of another process is seen by the poll alone, and only its tenant is read again', async () => {
    const [writer, reader] = [await open(), await open()]
    await Promise.all([reader.get(ACME), reader.get(OTHER)])
    await writer.update(ACME, days(7))
    while (reader.peek(ACME) !== undefined) await once(polled, 'poll')
    expect((await reader.get(ACME)).audit.retention_days).to.equal(7)
    await reader.get(OTHER)
    expect(reads).to.deep.equal([ACME, OTHER, ACME])
  })

  it('the stored configuration holds a change of another process at once, while the kept one is unchanged until a poll', async () => {
    const [writer, reader] = [await open(), await open(DEAF, 60_000)]
    const before = await reader.get(ACME)
    await writer.update(ACME, days(7))
    expect((await reader.stored(ACME)).audit.retention_days).to.equal(7)
    expect(await reader.get(ACME)).to.equal(before)
  })

  it('D8.5: with a notice it is seen at once, without any poll', async () => {
    const listeners = new Set<(tenant: TenantId) => void>()
    const notice: ConfigNotice = {
      send: (tenant) => listeners.forEach((listener) => listener(tenant)),
      listen: async (listener) => {
        listeners.add(listener)
        return async () => void listeners.delete(listener)
      },
    }
    const [writer, reader] = [await open(notice, 3_600_000), await open(notice, 3_600_000)]
    await reader.get(ACME)
    await writer.update(ACME, days(7))
    expect((await reader.get(ACME)).audit.retention_days).to.equal(7)
    await Promise.all(opened.splice(0).map((configs) => configs.close()))
    expect(listeners.size).to.equal(0)
  })

  it('more changes between two polls than a poll reads: everything is read again', async () => {
    const writer = await open(DEAF, 3_600_000)
    const reader = await open()
    await Promise.all([reader.get(ACME), reader.get(OTHER)])
    isListAway = true
    await writer.update(OTHER, days(3))
    for (let i = 1; i <= 200; i++) await writer.update(ACME, days(i))
    isListAway = false
    while (reader.peek(OTHER) !== undefined) await once(polled, 'poll')
    expect((await reader.get(OTHER)).audit.retention_days).to.equal(3)
    expect((await reader.get(ACME)).audit.retention_days).to.equal(200)
  })

  it('a configuration that is checked is used meanwhile, also while the store is away, and is the same object unless it has changed', async () => {
    const configs = await open(DEAF, 3_600_000, 0)
    const first = await configs.get(ACME)
    isStoreAway = true
    for (let i = 0; i < 3; i++) expect(await configs.get(ACME)).to.equal(first)
    await new Promise(setImmediate)
    isStoreAway = false
    const before = reads.length
    expect(configs.peek(ACME)).to.equal(first)
    while (reads.length < before + 3) {
      expect(configs.peek(ACME)).to.equal(first)
      await new Promise(setImmediate)
    }
  })

  it('a change that its process could not list is found by a check', async () => {
    const configs = await open(DEAF, 3_600_000, 0)
    const first = await configs.get(ACME)
    await createTenantConfigStore(file.store).update(ACME, (doc) => ({ ...doc, audit: { retention_days: 7 } }))
    await until(() => configs.peek(ACME) !== first, { what: 'the change to be found' })
    expect(configs.peek(ACME)?.audit.retention_days).to.equal(7)
  })

  /** Each makes the process know of the change. `reader` is reading meanwhile. */
  const WAYS: [how: string, change: (reader: LiveConfigs) => Promise<unknown>, pollMs?: number][] = [
    ['by its own process', (reader) => reader.update(ACME, days(7)), 3_600_000],
    ['by another one', async () => (await open(DEAF, 3_600_000)).update(ACME, days(7))],
    [
      'so often that the list does not hold all changes',
      async () => {
        const writer = await open(DEAF, 3_600_000)
        isListAway = true
        await writer.update(ACME, days(7))
        for (let i = 0; i < 200; i++) await writer.update(OTHER, days(7))
        isListAway = false
      },
    ],
  ]
  for (const [how, change, pollMs = 20] of WAYS)
    for (const isKept of [false, true])
      it(`a configuration that is changed ${how} while it is ${isKept ? 'checked' : 'read'} is not kept as it was`, async () => {
        const reader = await open(DEAF, pollMs, isKept ? 0 : 60_000)
        const heard = new Promise<void>((resolve) => reader.onChange((tenant) => tenant === ACME && resolve()))
        if (isKept) await reader.get(ACME)
        const { promise, resolve: answer } = Promise.withResolvers<void>()
        answered = promise
        const reading = reader.get(ACME)
        await change(reader)
        await heard
        answer()
        answered = Promise.resolve()
        await reading
        expect((await reader.get(ACME)).audit.retention_days).to.equal(7)
      })

  it('50 writers at once lose no change', async () => {
    const configs = await open()
    const rename = (i: number) => putEngine({ routing: {}, audit: { retention_days: i } })
    await Promise.all(Array.from({ length: 50 }, (_, i) => configs.update(ACME, rename(i + 1))))
    const changes = await counted.changes(200)
    expect(changes.map(({ seq }) => seq)).to.deep.equal(Array.from({ length: 50 }, (_, i) => 50 - i))
    expect(await counted.tenants(undefined)).to.deep.equal([ACME])
  })

  it('a refused change stores nothing and rings nobody', async () => {
    let rings = 0
    const configs = await open({ ...DEAF, send: () => rings++ })
    const bad = putEngine({ routing: { main: { instance: 'nobody', model: 'm' } } })
    await configs.update(ACME, bad).then(
      () => expect.fail('was accepted'),
      (error: Error) => expect(error.message).to.contain('nobody'),
    )
    expect(rings).to.equal(0)
    expect(await counted.changes(1)).to.deep.equal([])
  })
})

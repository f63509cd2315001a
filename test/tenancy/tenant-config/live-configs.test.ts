import { EventEmitter, once } from 'node:events'
import { expect } from 'chai'
import { createLog } from '../../../shared/kernel/log.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { forSubject } from '../../../shared/kernel/trace.ts'
import type { TenantEvent } from '../../../shared/tenancy/events/port.ts'
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
import { settled } from '../../support/settled.ts'
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
  let published: [tenant: TenantId, event: TenantEvent][]

  beforeEach(async () => {
    const configs = createTenantConfigStore(file.store)
    reads = []
    published = []
    isStoreAway = false
    isListAway = false
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

  const open = async (notice: ConfigNotice = DEAF, pollMs = 20, checkMs = 60_000, store = counted) => {
    const log = createLog({ level: 'error' })
    const events = { append: (tenant: TenantId, event: TenantEvent) => void published.push([tenant, event]) }
    const configs = await openLiveConfigs({ store, notice, events, log, pollMs, checkMs })
    opened.push(configs)
    return configs
  }

  /** Lets another process poll so often. Those that poll more often have polled as well. */
  const polls = async (count: number) => {
    let left = count
    const changes = (limit: number) => counted.changes(limit).finally(() => left--)
    await open(DEAF, 10, 60_000, { ...counted, changes })
    await until(() => left < 0, { what: 'another process to poll' })
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

  it('a check that finds no change keeps the configuration as the same object', async () => {
    const configs = await open(DEAF, 3_600_000, 0)
    const first = await configs.get(ACME)
    expect(configs.peek(ACME)).to.equal(first) // Begins a check.
    await configs.stored(ACME) // The store answers in turn.
    await settled()
    expect(configs.peek(ACME)).to.equal(first)
  })

  it('a read that has failed is made again at the next use', async () => {
    const configs = await open()
    isStoreAway = true
    expect(await configs.get(ACME).catch((cause: Error) => cause.message)).to.equal('away')
    isStoreAway = false
    expect((await configs.get(ACME)).audit.retention_days).to.equal(30)
  })

  it('a read that was overtaken by a change does not end that which follows it', async () => {
    const configs = await open(DEAF, 3_600_000)
    const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    answered = answers[0].promise
    const early = configs.get(ACME)
    await configs.update(ACME, days(7))
    answered = answers[1].promise
    const late = configs.get(ACME)
    answers[0].resolve()
    await early
    await settled()
    answers[1].resolve()
    const read = await late
    expect(read.audit.retention_days).to.equal(7)
    expect(configs.peek(ACME)).to.equal(read)
  })

  it('polls keep what they need not drop: everything without a change, and other tenants with one', async () => {
    const [writer, reader] = [await open(DEAF, 3_600_000), await open(DEAF, 1)]
    await writer.update(OTHER, days(1))
    await polls(3)
    const kept = await reader.get(ACME)
    await polls(3)
    expect(reader.peek(ACME)).to.equal(kept)
    const heard = new Promise((resolve) => reader.onChange(resolve))
    await writer.update(OTHER, days(2))
    expect(await heard).to.equal(OTHER)
    await polls(3)
    expect(reader.peek(ACME)).to.equal(kept)
  })

  it('a process that could not read the list of changes when it started drops everything when it can', async () => {
    isListAway = true
    const reader = await open(DEAF, 1)
    await reader.get(ACME)
    const writer = await open(DEAF, 3_600_000)
    await writer.update(OTHER, days(7))
    isListAway = false
    await until(() => reader.peek(ACME) === undefined, { what: 'the configuration to be dropped' })
  })

  it('a poll that is not answered yet is not repeated', async () => {
    const answer = Promise.withResolvers<void>()
    let asked = 0
    const changes = async (limit: number) => {
      if (++asked > 1) await answer.promise
      return counted.changes(limit)
    }
    await open(DEAF, 1, 60_000, { ...counted, changes })
    await polls(3)
    expect(asked).to.equal(2)
    answer.resolve()
    await until(() => asked > 2, { what: 'the next poll' })
  })

  it('a process that is closed polls no more, and a listener that was removed is not called', async () => {
    let asked = 0
    const changes = (limit: number) => {
      asked++
      return counted.changes(limit)
    }
    const configs = await open(DEAF, 1, 60_000, { ...counted, changes })
    const heard = new Set<string>()
    configs.onChange(() => heard.add('kept'))
    configs.onChange(() => heard.add('removed'))()
    await configs.update(ACME, days(7))
    expect([...heard]).to.deep.equal(['kept'])
    await configs.close()
    asked = 0
    await polls(3)
    expect(asked).to.equal(0)
  })

  it('D28a: a change is recorded with its caller and told to those who follow the events; one that changes nothing is not recorded', async () => {
    const configs = await open()
    await forSubject('ada', () => configs.update(ACME, days(7)))
    await configs.update(ACME, days(8))
    await configs.update(ACME, days(8))
    const audit = await counted.audit(ACME, { limit: 10, after: undefined })
    expect(audit.map(({ subject }) => subject)).to.deep.equal(['anonymous', 'ada'])
    const [audited] = audit
    expect(audited?.changes.map(({ part, to }) => [part, to])).to.deep.equal([
      ['audit', { store_payloads: true, retention_days: 8 }],
    ])
    expect(published.map(([tenant, { type, data }]) => [tenant, type, data])).to.deep.equal([
      [ACME, 'config.changed', { subject: 'ada', changed: [{ part: 'audit', name: null }] }],
      [ACME, 'config.changed', { subject: 'anonymous', changed: [{ part: 'audit', name: null }] }],
      [ACME, 'config.changed', { subject: 'anonymous', changed: [] }],
    ])
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

import { expect } from 'chai'
import { DEFAULT_TENANT, type TenantId } from '../../shared/kernel/tenant.ts'
import { EventStream } from '../../shared/tenancy/events/event-stream.ts'
import { positionOf } from '../../shared/tenancy/events/event-text.ts'
import { type EventLog, KEPT_EVENTS, type TenantEvent, type TenantEventType } from '../../shared/tenancy/events/port.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'

const OTHER = tenantId('t_other')

export const eventOf = (n: number, type: TenantEventType = 'run.ended'): TenantEvent => ({
  type,
  at: '2026-11-21T09:30:00.000Z',
  data: { n },
})

/** One reader, as a gateway reads for its client. */
export class EventReader {
  readonly #stream: EventStream
  #text = ''
  lastId: string | undefined

  constructor(stream: EventStream) {
    this.#stream = stream
  }

  static async open(log: EventLog, query: { after?: string; types?: TenantEventType[]; tenant?: TenantId } = {}) {
    const watch = await log.watch(query.tenant ?? DEFAULT_TENANT)
    const after = query.after === undefined ? undefined : positionOf(query.after)
    return new EventReader(new EventStream(watch, { after, types: query.types && new Set(query.types) }))
  }

  /** The next frames as `name n`. */
  async next(count: number): Promise<string[]> {
    const read: string[] = []
    while (read.length < count) {
      const end = this.#text.indexOf('\n\n')
      if (end < 0) {
        const { done, value } = await this.#stream.next()
        if (done) break
        this.#text += value.text
        continue
      }
      const [, id, name, data] = /^id: (\S+)\nevent: (\S+)\ndata: (.*)$/.exec(this.#text.slice(0, end)) ?? []
      this.lastId = id
      const { n } = JSON.parse(data ?? '{}') as { n?: number }
      read.push(n === undefined ? String(name) : `${name} ${n}`)
      this.#text = this.#text.slice(end + 2)
    }
    return read
  }

  leave = () => this.#stream.return()
}

/** Resolves when the tenant's log has this many events. */
const logged = (log: EventLog, count: number) =>
  until(
    async () => {
      const watch = await log.watch(DEFAULT_TENANT)
      watch.close()
      return watch.end.n >= count
    },
    { what: `${count} events in the log` },
  )

/** What every log of tenants' events does. `open` opens another process's view of the same log. */
export function itIsAnEventLog(open: () => Promise<EventLog>): void {
  const append = (log: EventLog, from: number, to = from) => {
    for (let n = from; n <= to; n++) log.append(DEFAULT_TENANT, eventOf(n))
  }

  it('D16a: a reader gets the events that come after it began, in their order, and only those of its tenant', async () => {
    const log = await open()
    append(log, 1)
    await logged(log, 1)
    const [first, other] = [await EventReader.open(log), await EventReader.open(log, { tenant: OTHER })]
    append(log, 2, 4)
    log.append(OTHER, eventOf(99))
    expect(await first.next(3)).to.deep.equal(['run.ended 2', 'run.ended 3', 'run.ended 4'])
    expect(await other.next(1)).to.deep.equal(['run.ended 99'])
    await Promise.all([first.leave(), other.leave()])
  })

  it('D16b: a reader that comes back gets what it has missed, once, and then what is new', async () => {
    const log = await open()
    const reader = await EventReader.open(log)
    append(log, 1, 3)
    expect(await reader.next(3)).to.deep.equal(['run.ended 1', 'run.ended 2', 'run.ended 3'])
    await reader.leave()
    append(log, 4, 6)
    const again = await EventReader.open(log, { after: reader.lastId ?? '' })
    expect(await again.next(3)).to.deep.equal(['run.ended 4', 'run.ended 5', 'run.ended 6'])
    append(log, 7)
    expect(await again.next(1)).to.deep.equal(['run.ended 7'])
    await again.leave()
  })

  it('D16b: types selects the events by their names', async () => {
    const log = await open()
    const reader = await EventReader.open(log, { types: ['plan.ended'] })
    append(log, 1)
    log.append(DEFAULT_TENANT, eventOf(2, 'plan.ended'))
    expect(await reader.next(1)).to.deep.equal(['plan.ended 2'])
    await reader.leave()
  })

  it('D16c: a reader whose next event is gone gets one reset, and then what is new', async () => {
    const log = await open()
    const reader = await EventReader.open(log)
    append(log, 1)
    await reader.next(1)
    await reader.leave()
    // A stream of Redis keeps up to one node (100 entries) more than it must.
    append(log, 2, 2 * KEPT_EVENTS + 500)
    await logged(log, 2 * KEPT_EVENTS + 500)
    const again = await EventReader.open(log, { after: reader.lastId ?? '' })
    expect(await again.next(1)).to.deep.equal(['reset'])
    append(log, 5_000)
    expect(await again.next(1)).to.deep.equal(['run.ended 5000'])
    await again.leave()
  })

  it('D16c: a reader with an id of another log gets a reset', async () => {
    const log = await open()
    append(log, 1)
    const reader = await EventReader.open(log, { after: '1-1' })
    expect(await reader.next(1)).to.deep.equal(['reset'])
    await reader.leave()
  })

  it('ends the stream of a reader that leaves while it waits', async () => {
    const log = await open()
    const reader = await EventReader.open(log)
    const reading = reader.next(1)
    await reader.leave()
    expect(await reading).to.deep.equal([])
  })
}

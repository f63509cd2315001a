import { expect } from 'chai'
import { createLog } from '../../../shared/kernel/log.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { openRedisLink, type RedisLink } from '../../../shared/platform/redis/link.ts'
import { RedisEventLog, type RedisEventLogOptions } from '../../../shared/tenancy/events/redis-log.ts'
import { EventReader, eventOf, itIsAnEventLog } from '../../contract/event-log.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

describe("the tenants' events in Redis", () => {
  const redis = useRedis()
  const opened: RedisEventLog[] = []
  const links: RedisLink[] = []
  const ran: string[] = []
  const lines: string[] = []
  const log = createLog({ level: 'error', write: (line) => lines.push(line) })

  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close()
    for (const link of links.splice(0)) await link.close()
    ran.length = 0
    lines.length = 0
  })

  /** The view of another process. `change` replaces methods of its link. */
  async function open(change: Partial<RedisLink> = {}, options: RedisEventLogOptions = {}): Promise<RedisEventLog> {
    const link = await openRedisLink(redis.url)
    links.push(link)
    const counted: RedisLink = {
      ...link,
      run(script, ...rest) {
        ran.push(script.name)
        return link.run(script, ...rest)
      },
      ...change,
    }
    const events = new RedisEventLog(counted, log, options)
    opened.push(events)
    return events
  }

  itIsAnEventLog(() => open())

  it('D16b: what one process logs reaches the readers of all, and a reader goes on at another process', async () => {
    const [writer, one, two] = [await open(), await open(), await open()]
    const readers = [await EventReader.open(one), await EventReader.open(two)]
    for (let n = 1; n <= 3; n++) writer.append(DEFAULT_TENANT, eventOf(n))
    for (const reader of readers) expect(await reader.next(3)).to.have.length(3)
    const [first] = readers
    const moved = await EventReader.open(two, { after: first?.lastId ?? '' })
    writer.append(DEFAULT_TENANT, eventOf(4))
    expect(await moved.next(1)).to.deep.equal(['run.ended 4'])
  })

  it('a thousand readers of one tenant cost Redis no more than one', async () => {
    const [writer, gateway] = [await open(), await open()]
    const readers = await Promise.all(Array.from({ length: 1_000 }, () => EventReader.open(gateway)))
    ran.length = 0
    for (let n = 1; n <= 5; n++) {
      writer.append(DEFAULT_TENANT, eventOf(n))
      const read = await Promise.all(readers.map((reader) => reader.next(1)))
      expect(new Set(read.flat())).to.deep.equal(new Set([`run.ended ${n}`]))
    }
    expect(ran).to.deep.equal(Array.from({ length: 5 }, () => 'aeEventsAppend'))
  })

  it('a message that was lost is made up for with the next one, and without a next one soon', async () => {
    const writer = await open()
    const lost: string[] = []
    const reading = await openRedisLink(redis.url)
    links.push(reading)
    let isDeaf = false
    const gateway = await open(
      {
        ...reading,
        subscribeToScripts: (channel, onMessage) =>
          reading.subscribeToScripts(channel, (message) => (isDeaf ? void lost.push('one') : onMessage(message))),
      },
      { checkMs: 50 },
    )
    const reader = await EventReader.open(gateway)
    isDeaf = true
    writer.append(DEFAULT_TENANT, eventOf(1))
    expect(await reader.next(1)).to.deep.equal(['run.ended 1'])
    expect(lost).to.have.length(1)
  })

  it('events that come soon after a write wait for more', async () => {
    const link = await openRedisLink(redis.url)
    links.push(link)
    const at: number[] = []
    const writer = await open({
      run: (...call) => link.run(...call).finally(() => at.push(performance.now())),
    })
    for (const n of [1, 2]) {
      writer.append(DEFAULT_TENANT, eventOf(n))
      await until(() => at.length === n, { what: `write ${n}` })
    }
    const [first = 0, second = 0] = at
    expect(second - first).to.be.greaterThan(20)
  })

  it('events wait while Redis does not answer, and come in their order', async () => {
    const link = await openRedisLink(redis.url)
    links.push(link)
    let failures = 2
    const writer = await open({
      run: (...call) => (failures-- > 0 ? Promise.reject(new Error('away')) : link.run(...call)),
    })
    const reader = await EventReader.open(await open())
    for (let n = 1; n <= 300; n++) writer.append(DEFAULT_TENANT, eventOf(n))
    expect(await reader.next(300)).to.deep.equal(Array.from({ length: 300 }, (_, i) => `run.ended ${i + 1}`))
  })

  it('D16c: when too many wait the log says so, and the readers get a reset', async () => {
    const link = await openRedisLink(redis.url)
    links.push(link)
    let isAway = true
    const writer = await open(
      { run: (...call) => (isAway ? Promise.reject(new Error('away')) : link.run(...call)) },
      { maxWaiting: 5 },
    )
    const other = await open()
    const reader = await EventReader.open(other)
    other.append(DEFAULT_TENANT, eventOf(0))
    await reader.next(1)
    for (let n = 1; n <= 8; n++) writer.append(DEFAULT_TENANT, eventOf(n))
    await until(() => lines.some((line) => line.includes('events for GET /events were lost')), { what: 'the log line' })
    isAway = false
    expect(await reader.next(1)).to.deep.equal(['reset'])
  })
})

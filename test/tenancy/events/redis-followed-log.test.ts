import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { EventStream } from '../../../shared/tenancy/events/event-stream.ts'
import { idOf, loggedEvent } from '../../../shared/tenancy/events/event-text.ts'
import type { EventPosition } from '../../../shared/tenancy/events/port.ts'
import { FollowedLog } from '../../../shared/tenancy/events/redis-followed-log.ts'
import { until } from '../../support/until.ts'

const GENERATION = 5
const at = (n: number, generation = GENERATION): EventPosition => ({ generation, n })
const stored = (n: number) => `run.started {"n":${n}}`

/** A followed log in front of a fake stream of Redis, which holds the events of these numbers. */
async function setUp(numbers: number[] = [], checkMs = 60_000) {
  const stream = { numbers, generation: GENERATION, isAway: false, refused: 0 }
  let deliver: (message: Buffer) => void = () => {}
  const unsubscribed: string[] = []
  const log = await FollowedLog.open(
    DEFAULT_TENANT,
    {
      subscribeToScripts: async (_channel, onMessage) => void (deliver = onMessage),
      unsubscribeFromScripts: async (channel) => void unsubscribed.push(channel),
      run: async (_script, _keys, [from, count]) => {
        if (stream.isAway) stream.refused++
        if (stream.isAway) throw new AppError('unavailable', 'away')
        const ids = stream.numbers.map((n) => [idOf(at(n, stream.generation)), n] as const)
        if (ids.length === 0) return []
        const first = Number(String(from).split('-')[1])
        const page = ids.filter(([, n]) => n >= first).slice(0, Number(count))
        return [ids[0]?.[0], ids.at(-1)?.[0], page.map(([id, n]) => [id, ['e', stored(n)]])]
      },
    },
    checkMs,
  )
  /** Logs events, and sends their message unless it is lost. */
  const append = (added: number[], { isLost = false } = {}) => {
    stream.numbers = [...stream.numbers, ...added]
    if (!isLost) deliver(Buffer.from([idOf(at(added[0] ?? 0, stream.generation)), ...added.map(stored)].join('\n')))
  }
  return { log, stream, append, unsubscribed }
}

const numbersIn = (events: readonly { position: EventPosition }[] | undefined) =>
  events?.map(({ position }) => position.n)

describe('a tenant’s log as a process follows it', () => {
  it('begins at its newest event, and gives each reader what comes behind its position', async () => {
    const { log, append } = await setUp([1, 2, 3])
    const watch = log.open(() => {})
    expect(watch.end).to.deep.equal(at(3))
    let notices = 0
    watch.subscribe(() => notices++)
    append([4, 5])
    expect([notices, watch.newest]).to.deep.equal([1, at(5)])
    expect(numbersIn(await watch.read(at(3)))).to.deep.equal([4, 5])
    expect(numbersIn(await watch.read(at(1))), 'read from Redis').to.deep.equal([2, 3, 4, 5])
    watch.close()
  })

  it('reads what a lost message has not brought with the next message, and none twice', async () => {
    const { log, append } = await setUp([1])
    const watch = log.open(() => {})
    append([2], { isLost: true })
    append([3])
    await until(() => watch.newest.n === 3, { what: 'the event behind the lost one' })
    expect(numbersIn(await watch.read(at(1)))).to.deep.equal([2, 3])
    append([3].map(() => 4))
    expect(numbersIn(await watch.read(at(1)))).to.deep.equal([2, 3, 4])
    watch.close()
  })

  it('reads it after a while without a message, too, also when Redis was away meanwhile', async () => {
    const { log, stream, append } = await setUp([1], 2)
    const watch = log.open(() => {})
    stream.isAway = true
    append([2], { isLost: true })
    const failed = await watch.read(at(0)).catch((cause: unknown) => cause)
    expect(failed).to.include({ kind: 'unavailable' })
    stream.isAway = false
    await until(() => watch.newest.n === 2, { what: 'the event whose message was lost' })
    watch.close()
  })

  it('a reader that came back while Redis was away gets what it lacks, also when no further event comes', async () => {
    const { log, stream } = await setUp([1, 2], 2)
    stream.isAway = true
    const events = new EventStream(
      log.open(() => {}),
      { after: at(1) },
    )
    const next = events.next()
    await until(() => stream.refused > 0, { what: 'the read that Redis refuses' })
    stream.isAway = false
    expect((await next).value).to.include({ text: loggedEvent(at(2), stored(2)).frame })
    await events.return()
  })

  it('goes on in a later generation, and tells a reader of an earlier one that its events are gone', async () => {
    const { log, stream, append } = await setUp([1, 2])
    const watch = log.open(() => {})
    Object.assign(stream, { numbers: [], generation: 6 })
    append([1])
    expect(watch.newest).to.deep.equal(at(1, 6))
    expect(await watch.read(at(2))).to.equal(undefined)
    watch.close()
  })

  it('tells a reader that its next event is no longer kept', async () => {
    const { log } = await setUp([7, 8])
    const watch = log.open(() => {})
    expect(await watch.read(at(5))).to.equal(undefined)
    expect(numbersIn(await watch.read(at(6)))).to.deep.equal([7, 8])
    watch.close()
  })

  it('calls no listener of a reader that has left, and ends with its last one', async () => {
    const { log, append, unsubscribed } = await setUp()
    const [left, staying] = [log.open(() => {}), log.open(() => {})]
    const notices: string[] = []
    left.subscribe(() => notices.push('left'))
    staying.subscribe(() => notices.push('staying'))
    left.close()
    append([1])
    expect([notices, unsubscribed]).to.deep.equal([['staying'], []])
    staying.close()
    expect(unsubscribed).to.have.length(1)
  })
})

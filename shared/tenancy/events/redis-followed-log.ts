import { AppError } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { RedisLink } from '../../platform/redis/link.ts'
import { idOf, loggedEvent, positionOf, START } from './event-text.ts'
import { type EventPosition, type EventWatch, KEPT_EVENTS, type LoggedEvent } from './port.ts'
import { RecentEvents } from './recent-events.ts'
import { keyOf, READ } from './redis-scripts.ts'

type Link = Pick<RedisLink, 'run' | 'subscribeToScripts' | 'unsubscribeFromScripts'>

/** A lost message is noticed with the next one, or after this time; a failed read is then repeated, too. */
const CHECK_MS = 5_000

/** A tenant's log that a process with readers follows. */
export class FollowedLog {
  readonly #tenant: TenantId
  readonly #link: Link
  readonly #recent = new RecentEvents(KEPT_EVENTS / 4)
  readonly #listeners = new Set<() => void>()
  #readers = 0
  #timer: NodeJS.Timeout | undefined
  #isCatchingUp = false
  /** More events have come than were read. */
  #isBehind = false

  private constructor(tenant: TenantId, link: Link) {
    this.#tenant = tenant
    this.#link = link
  }

  static async open(tenant: TenantId, link: Link, checkMs = CHECK_MS): Promise<FollowedLog> {
    const followed = new FollowedLog(tenant, link)
    await link.subscribeToScripts(keyOf(tenant), (message) => followed.#take(message.toString())).catch(asUnavailable)
    const { newest } = await followed.#readStream(START, 1).catch((cause: unknown) => {
      followed.close()
      throw cause
    })
    if (isSame(followed.#recent.end, START)) followed.#recent.skipTo(newest)
    followed.#timer = setInterval(() => void followed.#check(), checkMs).unref()
    return followed
  }

  /** Opens a reader. `onLast` is called when it was the last one. */
  open(onLast: () => void): EventWatch {
    this.#readers++
    const recent = this.#recent
    let listener: (() => void) | undefined
    return {
      end: recent.end,
      get newest() {
        return recent.end
      },
      read: async (after) => recent.after(after) ?? (await this.#readOlder(after)),
      subscribe: (next) => {
        listener = next
        this.#listeners.add(next)
      },
      close: () => {
        if (listener) this.#listeners.delete(listener)
        if (--this.#readers > 0) return
        onLast()
        this.close()
      },
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#link.unsubscribeFromScripts(keyOf(this.#tenant)).catch(() => {}) // If this fails, the subscription ends with the connection.
  }

  #take(message: string): void {
    const [first = '', ...events] = message.split('\n')
    const position = positionOf(first)
    if (!position || !this.#recent.isNext(position)) return void this.#catchUp()
    events.forEach((stored, i) => {
      this.#recent.add(loggedEvent({ ...position, n: position.n + i }, stored))
    })
    this.#notify()
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }

  /** All readers read again, since a reader whose read has failed waits for the next notice. */
  async #check(): Promise<void> {
    await this.#catchUp()
    this.#notify()
  }

  /** Reads the events whose messages were lost. A failure does not matter, because the next check tries again. */
  async #catchUp(): Promise<void> {
    this.#isBehind = true
    if (this.#isCatchingUp) return
    this.#isCatchingUp = true
    try {
      while (this.#isBehind) {
        this.#isBehind = false
        await this.#readOn()
      }
    } catch {
      // The link has already counted the failure.
    } finally {
      this.#isCatchingUp = false
    }
  }

  async #readOn(): Promise<void> {
    const { end } = this.#recent
    const { events, newest } = await this.#readStream(end, KEPT_EVENTS)
    const isOutdated = !isSame(end, this.#recent.end) // More messages have arrived meanwhile.
    if (isOutdated || isSame(end, newest) || isSame(newest, START)) return
    const first = events?.[0]
    if (!first || !this.#recent.isNext(first.position)) this.#recent.skipTo(newest)
    else for (const event of events) this.#recent.add(event)
    this.#notify()
  }

  async #readOlder(after: EventPosition): Promise<readonly LoggedEvent[] | undefined> {
    return (await this.#readStream(after, KEPT_EVENTS)).events
  }

  /** `events` is missing when the one after this position is no longer kept. */
  async #readStream(
    after: EventPosition,
    count: number,
  ): Promise<{ events: LoggedEvent[] | undefined; newest: EventPosition }> {
    const from = idOf({ ...after, n: after.n + 1 })
    const answer = await this.#link.run(READ, [keyOf(this.#tenant)], [from, count])
    const [oldestId, newestId, entries = []] = answer as [string?, string?, [string, [string, string]][]?]
    const [oldest, newest] = [positionOf(oldestId ?? ''), positionOf(newestId ?? '')]
    if (!oldest || !newest) return { events: isSame(after, START) ? [] : undefined, newest: START }
    const isKept = isSame(after, START)
      ? oldest.n === 1
      : newest.generation === after.generation && oldest.n <= after.n + 1 && after.n <= newest.n
    const events = entries.flatMap(([id, [, stored]]) => {
      const position = positionOf(id)
      return position ? [loggedEvent(position, stored)] : []
    })
    return { events: isKept ? events : undefined, newest }
  }
}

function asUnavailable(cause: unknown): never {
  throw new AppError('unavailable', 'the events cannot be followed at the moment; try again', {
    retryAfterSecs: 2,
    cause,
  })
}

const isSame = (a: EventPosition, b: EventPosition): boolean => a.generation === b.generation && a.n === b.n

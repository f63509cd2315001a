import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { FrameStream, Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { within } from '../../../shared/kernel/async/deadline.ts'
import { hasKind } from '../../../shared/kernel/errors.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'

/** A run that waits for these permission requests, and for its client to make these calls, and the number of its events by then. */
export type WaitingRun = {
  runId: string
  permissionIds: readonly string[]
  toolCallIds: readonly string[]
  eventCount: number
}

/** Finds the run of the session that waits for somebody's answer, other than `except`. A session that is unknown has none. */
export async function findWaitingRun(
  broker: Pick<Broker, 'getSession' | 'getRun'>,
  tenant: TenantId,
  sessionId: string,
  except?: string,
): Promise<WaitingRun | undefined> {
  try {
    const { active_run_id: runId } = await broker.getSession(tenant, sessionId)
    if (runId === null || runId === except) return undefined
    const run = await broker.getRun(tenant, runId)
    const { permission_ids: permissionIds = [], tool_call_ids: toolCallIds = [], event_count: eventCount } = run
    return permissionIds.length + toolCallIds.length === 0
      ? undefined
      : { runId, permissionIds, toolCallIds, eventCount }
  } catch (cause) {
    if (hasKind(cause, 'not_found')) return undefined
    throw cause
  }
}

/** A message whose turn has come has its first event by then. */
const FIRST_LOOK_MS = 250
/** The run before it may ask later, and be answered and ask again. */
const LOOK_EVERY_MS = 2_000

/**
 * The frames of a message's run. As long as there are none, a warning tells the reader which permission requests the message waits for
 * (D39.2), whenever they are others. It is no event of the run: its number is 0.
 */
export class AnnouncedFrames implements AsyncIterableIterator<Frames, undefined> {
  readonly #frames: AsyncIterator<Frames, undefined>
  readonly #find: () => Promise<WaitingRun | undefined>
  #first: Promise<IteratorResult<Frames, undefined>> | undefined
  #hasBegun = false
  #announced = ''
  #waitMs = FIRST_LOOK_MS

  constructor(frames: FrameStream, find: () => Promise<WaitingRun | undefined>) {
    this.#frames = frames[Symbol.asyncIterator]()
    this.#find = find
  }

  next(): Promise<IteratorResult<Frames, undefined>> {
    return this.#hasBegun ? this.#frames.next() : this.#waitForFirst()
  }

  async return(): Promise<IteratorResult<Frames, undefined>> {
    await this.#frames.return?.()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async #waitForFirst(): Promise<IteratorResult<Frames, undefined>> {
    this.#first ??= this.#frames.next()
    for (;;) {
      const first = await within(this.#waitMs, this.#first)
      if (first) {
        this.#hasBegun = true
        return first
      }
      this.#waitMs = LOOK_EVERY_MS
      const waiting = await this.#find().catch(() => undefined) // What cannot be said now is said at the next look.
      const text = waiting ? announcement(waiting) : ''
      if (text === this.#announced) continue
      this.#announced = text
      if (text !== '') return { done: false, value: { text, lastSeq: 0 } }
    }
  }
}

export const waitingBody = ({ runId, permissionIds, toolCallIds }: WaitingRun) => ({
  run_id: runId,
  permission_ids: [...permissionIds],
  ...(toolCallIds.length > 0 && { tool_call_ids: [...toolCallIds] }),
})

const announcement = (waiting: WaitingRun): string =>
  renderFrame(0, {
    type: 'warning',
    code: 'waiting_for_permission',
    message: `the message waits for ${waiting.runId}, which waits for ${waiting.permissionIds.length > 0 ? 'permission' : 'its client'}`,
    detail: {
      ...waitingBody(waiting),
      suggestion: 'Answer the requests, or send messages with "if_waiting": "deny".',
    },
  })

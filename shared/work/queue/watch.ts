import { setTimeout as sleep } from 'node:timers/promises'
import { type BrokenOff, type Elsewhere, FollowedRun, type Read } from '../../cluster/following/followed-run.ts'
import type { FrameStream, Frames } from '../../cluster/journal/frame-stream.ts'
import { hasKind } from '../../kernel/errors.ts'

export type WatchOptions = {
  /** Number of the last frame that the reader has. */
  after: number
  /**
   * Called during silences, and when a stream has broken. Returns the last frames of an execution that has ended without sending
   * them, if the reader lacks any; `undefined` while it is running.
   */
  findEnd(lastSeq: number): Promise<{ frames: Frames | undefined } | undefined>
  /** Follows the execution at its present place. Without it a broken stream ends the watch. */
  follow?(after: number): Promise<FrameStream>
  /** By default the reader gets every frame. */
  read?(frames: Frames, lastSeq: number): Read
  /** The longest silence of a stream before `findEnd` is called; 2 s by default. */
  silentMs?: number
  /** The wait before the execution is followed again; 500 ms by default. */
  retryMs?: number
}

const SILENT_MS = 2_000
const RETRY_MS = 500

/** Failures that may mean the end or loss of the execution; other failures only end this reader's stream. */
const BREAKS: ReadonlySet<string | undefined> = new Set(['worker_lost', 'cancelled'])

/**
 * The frames of a queued execution, with an end in every case: when its executor is lost or no executor takes it, the end is made from the
 * stored record. Reading begins with `stream` if given, otherwise with a search for the executor.
 */
export function watch(stream: FrameStream | undefined, options: WatchOptions): FollowedRun {
  const { after, follow, read, silentMs = SILENT_MS, retryMs = RETRY_MS } = options
  /** If the store does not answer, it is asked again later. */
  const findEnd = async (lastSeq: number) => {
    try {
      const found = await options.findEnd(lastSeq)
      return found && { end: found.frames }
    } catch (cause) {
      if (hasKind(cause, 'unavailable')) return undefined
      throw cause
    }
  }
  const followElsewhere = async ({ failure, after: lastSeq, hasNews, left }: BrokenOff): Promise<Elsewhere> => {
    for (let isFirst = hasNews && !failure; !left.aborted; isFirst = false) {
      const found = isFirst ? undefined : await findEnd(lastSeq)
      if (found) return found
      // A terminal frame that was not sent by the execution itself repeats the last number (D4.2).
      if (!follow) return { end: failure && { text: failure.text, lastSeq } }
      if (!isFirst) await sleep(retryMs, undefined, { signal: left }).catch(() => {})
      try {
        return { stream: await follow(lastSeq) }
      } catch (cause) {
        if (!hasKind(cause, 'not_found') && !hasKind(cause, 'unavailable')) throw cause
      }
    }
    return { end: undefined }
  }
  return new FollowedRun(stream ?? 'moving', {
    after,
    mayGoOn: (end) => (end ? BREAKS.has(end.failure) : follow !== undefined),
    followElsewhere,
    silence: { ms: silentMs, findEnd },
    ...(read && { read }),
  })
}

import { withDeadline } from '../deadline.ts'
import type { TenantId } from '../tenant.ts'

/** The keys of BullMQ begin with `ae:` and the kind of the job. */
export const PREFIX = 'ae'

/** The part of a job that BullMQ stores besides its kind and id. */
export type BullData = { tenant: TenantId }

/** Milliseconds until the next attempt to connect. */
export const retryStrategy = (attempt: number): number => Math.min(50 * attempt, 500)

const CLOSE_MS = 1_000

/**
 * Waits for the close of a queue or worker. Without Redis a close would wait for it for ever, and so would a disconnect, after it has
 * stopped the attempts to reconnect. `onLate` is called before it disconnects.
 */
export async function closeInTime(
  opened: { disconnect(): Promise<void> },
  closed: Promise<void>,
  onLate: () => Promise<void> = async () => {},
): Promise<void> {
  try {
    await inTime(closed)
  } catch {
    await onLate()
    await inTime(opened.disconnect()).catch(() => {})
  }
}

const inTime = (done: Promise<void>) => withDeadline(done, CLOSE_MS, () => new Error('Redis does not answer'))

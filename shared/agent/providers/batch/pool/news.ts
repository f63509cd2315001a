import { hasKind } from '../../../../kernel/errors.ts'
import type { Log } from '../../../../kernel/log.ts'
import type { BatchAnswer, Submission, VendorBatches } from '../port.ts'

/** A batch that was sent to a vendor, or may have been: until its answer is stored, `vendor_id` is `null`. */
export type SentBatch = Submission & { vendor_id: string | null }

/** `lost`: the vendor has not received the batch. `no_room`: the vendor had no room for it, and has answered nothing. */
export type News = 'waits' | 'lost' | 'no_room' | { found: string } | { answers: ReadonlyMap<string, BatchAnswer> }

export type Asking = { vendor: VendorBatches; nowMs: number; log: Log }

/** How long a process may take to send a batch: longer than its requests can take. */
export const SUBMIT_MS = 180_000
/** If a vendor does not know a batch this long after it was sent, it has deleted it. */
const GONE_MS = 600_000

/** The pauses between two looks at a vendor: a share of the batch's age, within these limits. */
export const PAUSE = { least: 10_000, most: 300_000, share: 0.05 }
export const pauseAfter = (ageMs: number): number => Math.min(PAUSE.most, Math.max(PAUSE.least, PAUSE.share * ageMs))

/** Asks the vendor for the state of a batch (D55.6d). If the answer cannot be read, it asks again later. */
export async function newsOf(sent: SentBatch, { vendor, nowMs, log }: Asking): Promise<News> {
  const ageMs = nowMs - sent.at_ms
  if (sent.vendor_id === null) {
    if (ageMs < SUBMIT_MS) return 'waits' // Another process may still be sending it.
    const found = await vendor.find(sent).catch(() => 'unsure' as const)
    return found === 'unsure' ? 'waits' : found ? { found: found.id } : 'lost'
  }
  try {
    const answers = await vendor.read(sent.vendor_id)
    return answers === undefined ? 'waits' : answers === 'refused' ? 'no_room' : { answers }
  } catch (cause) {
    const isGone = hasKind(cause, 'not_found') && ageMs > GONE_MS
    log.warn('the batch of a vendor cannot be read', { mark: sent.mark, is_gone: isGone, cause })
    return isGone ? { answers: new Map() } : 'waits'
  }
}

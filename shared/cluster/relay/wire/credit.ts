import { RECORD, record, type WireRecord } from './records.ts'

/** The most bytes that all senders together may send to one process without an acknowledgement. Redis disconnects a subscriber above 32 MB. */
const BUDGET_BYTES = 24 * 1024 * 1024
const MAX_BYTES = 4 * 1024 * 1024
/** A sender exceeds its credit by at most one piece of a journal. */
const PIECE_BYTES = 64 * 1024
const MAX_ACKNOWLEDGE_BYTES = 256 * 1024

/** The bytes that each sender may send to one process before it acknowledges some. A sender with 0 sends one piece at a time. */
export const creditOf = (senders: number): number =>
  Math.max(0, Math.min(MAX_BYTES, Math.floor(BUDGET_BYTES / Math.max(1, senders)) - PIECE_BYTES))

/** A sender that may send less is acknowledged sooner. */
const acknowledgeEvery = (creditBytes: number): number => Math.min(MAX_ACKNOWLEDGE_BYTES, Math.ceil(creditBytes / 4))

/**
 * The receiver's side of the byte credit: a sender stops when too many of its bytes are not acknowledged
 * (`shared/cluster/README.md` "Credit and backpressure"). A position counts all bytes sent so far, so a lost message is acknowledged
 * by the next one. A lost acknowledgement is repeated at the sender's next heartbeat, because the sender may be waiting for it.
 */
export class Credit {
  readonly #senders = new Map<number, { position: number; acknowledged: number }>()
  #acknowledgeBytes = MAX_ACKNOWLEDGE_BYTES

  /** Sets how much each sender may send. */
  setCredit(creditBytes: number): void {
    this.#acknowledgeBytes = acknowledgeEvery(creditBytes)
  }

  /** Records that everything up to `position` was received. Returns the acknowledgement to send, if one is due. */
  received(epoch: number, { position, isBeat }: { position: number; isBeat: boolean }): WireRecord | undefined {
    const sender = this.#senders.get(epoch) ?? { position: 0, acknowledged: 0 }
    sender.position = Math.max(sender.position, position)
    this.#senders.set(epoch, sender)
    if (!isBeat && sender.position - sender.acknowledged < this.#acknowledgeBytes) return undefined
    sender.acknowledged = sender.position
    return record(RECORD.ack, { seq: sender.position % 2 ** 32, count: Math.floor(sender.position / 2 ** 32) })
  }

  forget(epoch: number): void {
    this.#senders.delete(epoch)
  }

  /** Forgets all senders. Called when this process takes a new epoch: senders count its bytes from 0 again. */
  clear(): void {
    this.#senders.clear()
  }
}

/** The position that an acknowledgement carries: its low 32 bits in `seq`, the rest in `count`. */
export const acknowledgedPosition = ({ seq, count }: Pick<WireRecord, 'seq' | 'count'>): number => count * 2 ** 32 + seq

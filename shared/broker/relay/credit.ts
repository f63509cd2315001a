import { RECORD, record, type WireRecord } from './records.ts'

const ACKNOWLEDGE_BYTES = 256 * 1024

/**
 * The receiver's side of the byte credit: a sender stops when too many of its bytes are not acknowledged
 * (`shared/broker/README.md` "Credit and backpressure"). A position counts all bytes sent so far, so a lost message is acknowledged
 * by the next one. A lost acknowledgement is repeated at the sender's next heartbeat, because the sender may be waiting for it.
 */
export class Credit {
  readonly #senders = new Map<number, { position: number; acknowledged: number }>()

  /** Records that everything up to `position` was received. Returns the acknowledgement to send, if one is due. */
  received(epoch: number, { position, isBeat }: { position: number; isBeat: boolean }): WireRecord | undefined {
    const sender = this.#senders.get(epoch) ?? { position: 0, acknowledged: 0 }
    sender.position = Math.max(sender.position, position)
    this.#senders.set(epoch, sender)
    if (!isBeat && sender.position - sender.acknowledged < ACKNOWLEDGE_BYTES) return undefined
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

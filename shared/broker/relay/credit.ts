import { RECORD, record, type WireRecord } from './records.ts'

const ACK_BYTES = 256 * 1024

/**
 * The receiver's side of credit (design §4.4): a sender may have so many bytes under way and no more. A lost message is
 * acknowledged with the next one, since positions count what was sent; a lost acknowledgement is said again when the sender's
 * heart beats, for it may be what the sender waits for.
 */
export class Credit {
  readonly #senders = new Map<number, { position: number; acked: number }>()

  /** Everything up to `position` has come from this sender. Returns what it is to be told, if anything. */
  received(epoch: number, { position, isBeat }: { position: number; isBeat: boolean }): WireRecord | undefined {
    const known = this.#senders.get(epoch) ?? { position: 0, acked: 0 }
    known.position = Math.max(known.position, position)
    this.#senders.set(epoch, known)
    if (!isBeat && known.position - known.acked < ACK_BYTES) return undefined
    known.acked = known.position
    return record(RECORD.ack, { seq: known.position % 2 ** 32, count: Math.floor(known.position / 2 ** 32) })
  }

  forget(epoch: number): void {
    this.#senders.delete(epoch)
  }

  /** Under another epoch of this process all senders count anew. */
  clear(): void {
    this.#senders.clear()
  }
}

/** The position that an acknowledgement is about. */
export const ackedPosition = ({ seq, count }: Pick<WireRecord, 'seq' | 'count'>): number => count * 2 ** 32 + seq

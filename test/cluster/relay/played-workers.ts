import { type ReceivedCall, readCall } from '../../../shared/cluster/relay/wire/calls.ts'
import { Outbox } from '../../../shared/cluster/relay/wire/outbox.ts'
import {
  packMessage,
  RECORD,
  type ReceivedRecord,
  readMessage,
  record,
} from '../../../shared/cluster/relay/wire/records.ts'
import { toAppError } from '../../../shared/kernel/errors.ts'

type Played = {
  /** The epoch of the process whose calls they answer. */
  caller: number
  /** How they answer. It may throw a refusal. */
  answer(epoch: number, method: string): unknown
  onCall(epoch: number, call: ReceivedCall & { flags: number }): void
  onReply(epoch: number, reply: ReceivedRecord): void
}

/** Workers that a test plays: gives the outbox to each. */
export function playWorkers({ caller, answer, onCall, onReply }: Played): (epoch: number) => Outbox {
  const outboxes = new Map<number, Outbox>()
  const open = (epoch: number) =>
    new Outbox({
      epoch: caller,
      canSendFrames: () => true,
      onPublished: () => {},
      creditBytes: () => 4 * 1024 * 1024,
      async publish(message) {
        readMessage(message, ({ type, stream, flags, body }) => {
          if (type !== RECORD.call) return
          const call = readCall(body)
          onCall(epoch, { ...call, flags })
          void reply(epoch, stream, call.method)
        })
        return 1
      },
    })
  const reply = async (epoch: number, stream: number, method: string) => {
    const body = JSON.stringify(await bodyOf(() => answer(epoch, method)))
    const message = packMessage(epoch, 0, [record(RECORD.reply, { stream, body })])
    readMessage(message, (received) => onReply(epoch, received))
  }
  return (epoch) => {
    const outbox = outboxes.get(epoch) ?? open(epoch)
    outboxes.set(epoch, outbox)
    return outbox
  }
}

async function bodyOf(answer: () => unknown): Promise<object> {
  try {
    return { value: (await answer()) ?? null }
  } catch (cause) {
    const { kind, message, code, status } = toAppError(cause)
    return { error: { kind, message, status, ...(code && { code }) } }
  }
}

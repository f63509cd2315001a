import { newId } from '../../../kernel/ids.ts'
import type { Message, MessageStamp } from '../../providers/port.ts'
import { linked } from './branches.ts'

/** The number of the last message; 0 without one. */
export const lastSeqOf = (messages: readonly Message[]): number => messages.at(-1)?.stamp?.seq ?? 0

/** The stamp of the last message, and the id of the one that the first message follows. */
type Place = Omit<MessageStamp, 'id'>

/**
 * Stamps the messages that have no stamp, and links each to the one before. They are numbered from the end, the last one with `last.seq`: the summary that replaces older
 * messages gets a number that one of these had, so that a reader who goes on behind a number misses nothing newer.
 */
export function withStamps(messages: readonly Message[], { parent, ...last }: Place): readonly Message[] {
  let { seq } = last
  const stamped = messages.toReversed().map((message) => {
    const { stamp = { ...last, seq, id: newId('msg') } } = message
    seq = stamp.seq - 1
    return message.stamp ? message : { ...message, stamp }
  })
  return linked(stamped.reverse() as Message[], parent)
}

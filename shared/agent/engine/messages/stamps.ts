import type { Message, MessageStamp } from '../../providers/port.ts'

/** The number of the last message; 0 without one. */
export const lastSeqOf = (messages: readonly Message[]): number => messages.at(-1)?.stamp?.seq ?? 0

/**
 * Stamps the messages that have no stamp. They are numbered from the end, the last one with `last.seq`: the summary that replaces older
 * messages gets a number that one of these had, so that a reader who goes on behind a number misses nothing newer.
 */
export function withStamps(messages: readonly Message[], last: MessageStamp): readonly Message[] {
  let { seq } = last
  const stamped = messages.toReversed().map((message) => {
    const { stamp = { ...last, seq } } = message
    seq = stamp.seq - 1
    return message.stamp ? message : { ...message, stamp }
  })
  return stamped.reverse()
}

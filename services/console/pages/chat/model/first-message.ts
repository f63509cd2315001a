import { ofTab } from '../../../base/tab.ts'
import type { Message } from './conversation.ts'

/** The first message of a session that was just created, on its way to the view of that session. */
const waiting = ofTab(() => new Map<string, Message>())

export const handOver = (sessionId: string, message: Message): void => void waiting().set(sessionId, message)

/** The message, once. */
export function takeOver(sessionId: string): Message | undefined {
  const message = waiting().get(sessionId)
  waiting().delete(sessionId)
  return message
}

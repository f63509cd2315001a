import type { Message } from './conversation.ts'

/** The first message of a session that was just created, on its way to the view of that session. */
let waiting: { sessionId: string; message: Message } | undefined

export function handOver(sessionId: string, message: Message): void {
  waiting = { sessionId, message }
}

/** The message, once. */
export function takeOver(sessionId: string): Message | undefined {
  if (waiting?.sessionId !== sessionId) return undefined
  const { message } = waiting
  waiting = undefined
  return message
}

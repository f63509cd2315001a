import { signal } from '@preact/signals'
import type { Schema } from '../../../../../shared/client/api.ts'
import { titleOf } from '../../../../../shared/reading/title.ts'
import { ofTab } from '../../../base/tab.ts'
import type { SentFile } from './draft-files.ts'

export type Message = Pick<Schema<'SendMessageRequest'>, 'prompt' | 'model' | 'plan_mode' | 'after'> & {
  files?: readonly SentFile[]
}

/** The first message of a session that was just created, which the view of that session must send. */
const waiting = ofTab(() => new Map<string, Message>())

/** A conversation that this tab has begun, and that the server does not list yet. */
export type Begun = { id: string; title: string; isWorking: boolean }

export const begun = ofTab(() => signal<readonly Begun[]>([]))

/** Puts a new conversation on the list, before the server lists it. */
export function begin(conversation: Begun): void {
  begun().value = [conversation, ...begun().peek()]
}

/** The server lists them, or they are deleted. */
export function isListed(...ids: readonly string[]): void {
  const left = begun()
    .peek()
    .filter(({ id }) => !ids.includes(id))
  if (left.length < begun().peek().length) begun().value = left
}

export function handOver(sessionId: string, message: Message): void {
  waiting().set(sessionId, message)
  begin({ id: sessionId, title: nameOf(message.prompt), isWorking: true })
}

/** The message, once. */
export function takeOver(sessionId: string): Message | undefined {
  const message = waiting().get(sessionId)
  waiting().delete(sessionId)
  return message
}

/** The title that the server gives to a conversation with this first prompt (D23.2). */
export const nameOf = (prompt: string): string => titleOf(prompt, 80)

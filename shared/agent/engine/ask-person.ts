import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject } from '../../kernel/json.ts'
import { showControls } from '../../kernel/text.ts'
import type { AskPerson, Question } from '../tools/port.ts'
import { askClient, type PermissionStep } from './tool-permission.ts'

/**
 * Asks what a tool wants to know, in the way of a permission request (D40.4): the client sees a request with the form or the address, and its reply allows
 * it with the answer as the changed input. Without a reply, and where nobody can be asked, it is `cancel`.
 */
export const createAskPerson =
  (call: { id: string; toolName: string }, step: PermissionStep): AskPerson =>
  async (question) => {
    if (step.signal.aborted) return { action: 'cancel' }
    const input = 'url' in question ? {} : defaultsOf(question.form)
    const request = { toolUseId: call.id, toolName: call.toolName, input, ...shown(question) }
    const decision = await askClient(request, step)
    if (!decision) return { action: 'cancel' }
    if (!decision.allow) return { action: decision.how === 'reply' ? 'decline' : 'cancel' }
    return 'url' in question ? { action: 'accept' } : { action: 'accept', content: decision.input ?? input }
  }

const shown = (question: Question) => ({
  message: showControls(question.message),
  preview:
    'url' in question
      ? ({ kind: 'link', url: showControls(question.url) } as const)
      : ({ kind: 'form', schema: question.form } as const),
})

/** The form as it is sent when nothing of it is changed. */
function defaultsOf({ properties }: JsonObject): JsonObject {
  const fields = isJsonObject(properties) ? Object.entries(properties) : []
  return Object.fromEntries(
    fields.flatMap(([name, field]) => (isJsonObject(field) && 'default' in field ? [[name, field['default']]] : [])),
  )
}

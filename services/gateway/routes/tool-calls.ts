import type { RequestHandler, Response } from 'express'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { SignedAnswer } from '../../../shared/cluster/permissions/reply.ts'
import { clientCallId, type PermissionSummary } from '../../../shared/cluster/permissions/store.ts'
import { type Attachment, attachmentLine, attachmentType } from '../../../shared/kernel/attachment.ts'
import { invalidRequest } from '../../../shared/kernel/errors.ts'
import { truncate } from '../../../shared/kernel/text.ts'
import type { ApiType } from '../../../shared/platform/api/api-type.ts'
import type { RouteTable } from '../../http/routes.ts'
import type { ReadBody } from '../bodies/body.ts'
import { subjectOf, tenantOf } from '../middleware/auth.ts'
import { oneOf, pageRequestOf, pathId, queryValue, RUN, TOOL_CALL } from '../params.ts'

type Deps = { broker: Broker; readBody: ReadBody }

/** Lists and answers the tool calls that clients execute (D45). */
export function toolCallRoutes({ broker, readBody }: Deps): RouteTable {
  const answer: RequestHandler = async (req, res) => {
    const runId = pathId(req, 'run_id', RUN)
    const toolUseId = pathId(req, 'tool_use_id', TOOL_CALL)
    const body = await readBody(req, res, 'ToolCallAnswerRequest')
    await answerToolCall(res, { broker, runId, toolUseId, answer: readAnswer(body) })
    res.json({ status: 'ok' })
  }
  return {
    '/tool-calls': {
      async get(req, res) {
        queryValue(req, 'state', oneOf(['pending']))
        const page = await broker.listPermissions(tenantOf(res), { ...pageRequestOf(req), kind: 'tool_call' })
        const { permissions, ...rest } = page
        res.json({ tool_calls: permissions.map(shown), ...rest })
      },
    },
    '/runs/:run_id/tool-calls/:tool_use_id': { post: answer },
  }
}

/** An answer to a call of the caller's tenant. */
type ToolCallAnswer = { runId: string; toolUseId: string; answer: SignedAnswer['answer'] }

/**
 * Answers a call. Throws what `Broker.answerCall` throws, and `not_found` for a run that is unknown. The call is searched first: if it is still open
 * the run need not be found, which would need a request to its worker.
 */
export async function answerToolCall(
  res: Response,
  { broker, runId, toolUseId, answer }: ToolCallAnswer & { broker: Broker },
): Promise<void> {
  const tenant = tenantOf(res)
  const id = clientCallId(runId, toolUseId)
  const found = (await broker.findPermission(tenant, undefined, id)) ?? (await broker.getRun(tenant, runId))
  await broker.answerCall(tenant, found.session_id ?? runId, id, { answer, by: subjectOf(res) })
}

function shown(summary: PermissionSummary): ApiType<'PendingToolCall'> {
  const { session_id, run_id, tool_use_id, tool_name, input, created_at, expires_at } = summary
  return { session_id, run_id, tool_use_id, tool_name, input, created_at, expires_at }
}

/** The most characters of an answer: of all its parts together, or of its output. */
export const MAX_PARTS_CHARS = 1_500_000
export const MAX_OUTPUT_CHARS = 1024 * 1024

/** Shortens an answer that came through a dialect, whose clients could not send a shorter one. The model reads even less of it (D45.1c). */
export const cutAnswer = (output: string): string => truncate(output, MAX_OUTPUT_CHARS, ' […]')

/** Throws `invalid_request` for an invalid answer. */
function readAnswer({ output, parts = [], is_error: isError = false }: ApiType<'ToolCallAnswerRequest'>) {
  if ((output === undefined) === (parts.length === 0))
    throw invalidRequest('send either output or parts', { param: '/output' })
  if (output !== undefined) return { output, isError }
  const chars = parts.reduce((sum, { text = '', data = '' }) => sum + text.length + data.length, 0)
  if (chars > MAX_PARTS_CHARS)
    throw invalidRequest(`parts must have at most ${MAX_PARTS_CHARS} characters together`, { param: '/parts' })
  const read = parts.map(readPart)
  const attachments = read.flatMap((part) => (typeof part === 'string' ? [] : [part]))
  const texts = read.map((part) => (typeof part === 'string' ? part : attachmentLine(part)))
  return { output: texts.join('\n\n'), isError, ...(attachments.length > 0 && { attachments }) }
}

function readPart({ type, text, data, name }: ApiType<'ToolCallPart'>, index: number): string | Attachment {
  const refuse = (field: string, wanted: string) =>
    invalidRequest(`parts[${index}].${field} ${wanted}`, { param: `/parts/${index}/${field}` })
  if (type === 'text') {
    if (text === undefined) throw refuse('text', 'is required in this part')
    return text
  }
  const bytes = Buffer.from(data ?? '', 'base64')
  const mediaType = attachmentType(bytes)
  if (!mediaType) throw refuse('data', 'must be a PNG, JPEG, GIF or WebP image or a PDF in base64')
  return { name: name ?? `file ${index + 1}`, mediaType, base64: bytes.toString('base64') }
}

import type { RequestHandler, Response } from 'express'
import { mayRunEdited, type ToolBox } from '../../../shared/agent/tools/port.ts'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { DecidedPermissions } from '../../../shared/cluster/permissions/decided.ts'
import { invalidRequest, notFound } from '../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { fitsDepth } from '../../../shared/kernel/json.ts'
import type { ApiType } from '../../../shared/platform/api/api-type.ts'
import type { RouteTable } from '../../http/routes.ts'
import type { ReadBody } from '../bodies/body.ts'
import { subjectOf, tenantOf } from '../middleware/auth.ts'
import { PERMISSION, pageRequestOf, pathId, queryText, queryValue, SESSION } from '../params.ts'
import { required } from './requires.ts'
import { toolCallRoutes } from './tool-calls.ts'

type Deps = {
  broker: Broker
  toolBox: ReplyToolBox
  /** `undefined` when the process has no store. */
  decided: DecidedPermissions | undefined
  readBody: ReadBody
}
/** The tools of this process. They check an input that a reply has changed. */
export type ReplyToolBox = Pick<ToolBox, 'find' | 'policyOf' | 'problemWith' | 'formProblem'>
const STATE = { pattern: /^(pending|remembered|decided)$/, wanted: 'pending, remembered or decided' }

/**
 * Lists and answers pending permission requests and the calls that clients make, and revokes permissions that replies have given for the rest of a
 * session. The first id in the path of a reply is a session's or a one-shot run's (D4.1, D4.12).
 */
export function permissionRoutes(deps: Deps): RouteTable {
  const { broker, decided } = deps
  return {
    ...toolCallRoutes(deps),
    '/sessions/:id/permissions/:request_id': { post: replyTo(deps) },
    '/permissions': {
      async get(req, res) {
        const state = queryValue(req, 'state', STATE)
        const since = queryText(req, 'since')
        if (since !== undefined && state !== 'decided')
          throw invalidRequest('since needs state=decided', { param: '/since' })
        if (state === 'decided')
          return void res.json(
            await required('decisions', decided).page(tenantOf(res), { ...pageRequestOf(req), since }),
          )
        const list = state === 'remembered' ? broker.listRemembered : broker.listPermissions
        res.json(await list(tenantOf(res), pageRequestOf(req)))
      },
    },
    '/permissions/remembered': {
      deleteQuery: ['session_id', 'tool_name'],
      async delete(req, res) {
        const sessionId = queryValue(req, 'session_id', SESSION_ID)
        if (sessionId === undefined) throw invalidRequest('session_id is required', { param: '/session_id' })
        const tool = queryValue(req, 'tool_name', TOOL_NAME)
        const count = await broker.forgetRemembered(tenantOf(res), sessionId, ...(tool === undefined ? [] : [tool]))
        res.json({ status: 'deleted', count })
      },
    },
    '/permissions/:request_id': {
      async get(req, res) {
        const [tenant, id] = [tenantOf(res), pathId(req, 'request_id', PERMISSION)]
        const found = (await broker.findPermission(tenant, undefined, id)) ?? (await decided?.find(tenant, id))
        if (!found) throw notFound(`there is no permission request ${id}: it may be older than the records are kept`)
        res.json(found)
      },
    },
  }
}

const SESSION_ID = { pattern: SESSION.pattern, wanted: 'the id of a session' }
const TOOL_NAME = { pattern: /^[^\p{Cc}\p{Cs}]{1,256}$/u, wanted: 'the name of a tool' }

const replyTo = ({ broker, toolBox, readBody }: Deps): RequestHandler => {
  const send = createSendReply({ broker, toolBox })
  return async (req, res) => {
    const scopeId = pathId(req, 'id', SESSION)
    const requestId = pathId(req, 'request_id', PERMISSION)
    await send(res, { scopeId, requestId, reply: await readBody(req, res, 'PermissionReplyRequest') })
    res.json({ status: 'ok' })
  }
}

type SentReply = { scopeId: string; requestId: string; reply: ApiType<'PermissionReplyRequest'> }

/** Decides a permission request of the caller's tenant. Throws what `Broker.replyPermission` throws, and `invalid_request` for a wrong input. */
export type SendReply = (res: Response, sent: SentReply) => Promise<void>

export const createSendReply =
  ({ broker, toolBox }: Pick<Deps, 'broker' | 'toolBox'>): SendReply =>
  async (res, { scopeId, requestId, reply }) => {
    const { allow, input } = reply
    const find = async () => broker.findPermission(tenantOf(res), scopeId, requestId)
    // For a reply without an input, the request is only needed if it has a form. An error here is ignored:
    // `replyPermission` reports it.
    const asked = allow && (await (input ? find() : find().catch(() => undefined)))
    if (asked && asked.preview?.kind === 'form') await assertFits(toolBox, asked.preview.schema, input ?? asked.input)
    else if (asked && input) await assertUsable(toolBox, asked.tool_name, input)
    await broker.replyPermission(tenantOf(res), scopeId, requestId, { ...reply, by: subjectOf(res) })
  }

const MAX_INPUT_CHARS = 1024 * 1024
const MAX_INPUT_DEPTH = 64

/** Throws `invalid_request` for an answer that does not fit the form. */
async function assertFits(toolBox: ReplyToolBox, form: JsonObject, content: JsonObject): Promise<void> {
  if (!fitsDepth(content, MAX_INPUT_DEPTH) || JSON.stringify(content).length > MAX_INPUT_CHARS)
    throw invalidRequest('the answer to the form is too large', { param: '/input' })
  const problem = await toolBox.formProblem?.(form, content)
  if (problem !== undefined) throw invalidRequest(`${problem} Send the fields as input.`, { param: '/input' })
}

/** Throws `invalid_request` for an input that the tool would not accept. A tool that only workers have is checked by the worker. */
async function assertUsable(toolBox: ReplyToolBox, toolName: string, input: JsonObject): Promise<void> {
  const refuse = (message: string) => invalidRequest(message, { param: '/input' })
  if (!fitsDepth(input, MAX_INPUT_DEPTH)) throw refuse(`input must have at most ${MAX_INPUT_DEPTH} levels`)
  if (JSON.stringify(input).length > MAX_INPUT_CHARS)
    throw refuse(`input must have at most ${MAX_INPUT_CHARS} characters as JSON`)
  if (!toolBox.find(toolName)) return
  const problem = await toolBox.problemWith(toolName, input)
  if (problem !== undefined) throw refuse(problem)
  if (!mayRunEdited(toolBox.policyOf(toolName, input, true)))
    throw refuse(
      `this server's policy forbids ${toolName} with this input, or it may run what the policy forbids; change it, or deny the call`,
    )
}

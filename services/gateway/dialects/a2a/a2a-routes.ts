import type { RequestHandler } from 'express'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { isJsonObject } from '../../../../shared/kernel/json.ts'
import type { Scope } from '../../../../shared/tenancy/auth/port.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { assertScope } from '../../middleware/auth.ts'
import type { DialectDeps } from '../dialect.ts'
import { Fields } from '../shared/fields.ts'
import { PROTOCOL_VERSION, showCard } from './card.ts'
import { listTasks } from './list-tasks.ts'
import type { Call } from './opened-task.ts'
import { asRpcError, RpcError, type RpcId, rpcAnswer, rpcFailure } from './rpc.ts'
import { cancelTask, getTask, sendMessage, streamMessage, subscribeToTask } from './tasks.ts'

type Method = { scope: Scope; answer: (deps: DialectDeps, call: Call) => Promise<void> }

const METHODS: ReadonlyMap<unknown, Method> = new Map<string, Method>([
  ['SendMessage', { scope: 'run', answer: sendMessage }],
  ['SendStreamingMessage', { scope: 'run', answer: streamMessage }],
  ['GetTask', { scope: 'read', answer: getTask }],
  ['ListTasks', { scope: 'read', answer: listTasks }],
  ['CancelTask', { scope: 'run', answer: cancelTask }],
  ['SubscribeToTask', { scope: 'read', answer: subscribeToTask }],
])

/** The methods of the protocol that this server does not have. */
const UNSUPPORTED = new Set<unknown>(['GetExtendedAgentCard'])

/** A2A in its JSON-RPC binding: a task is a run, whose session is its context, or a run of a flow, or a plan. */
export function a2aRoutes(deps: DialectDeps): RouteTable {
  return {
    '/.well-known/agent-card.json': { get: showCard(deps) },
    '/a2a': { post: deps.admitAnswers(answer(deps)) },
  }
}

/**
 * An error in the JSON-RPC message is answered in the protocol's format; an error before that, such as a missing token,
 * in the format of this API.
 */
function answer(deps: DialectDeps): RequestHandler {
  return async (req, res) => {
    const request = await deps.readBody(req, res, 'DialectRequest')
    const id = idOf(request)
    try {
      assertVersion(req.get('a2a-version'))
      const { method, params } = readRequest(request)
      assertScope(res, method.scope)
      await method.answer(deps, { req, res, id, params })
    } catch (cause) {
      const refusal = asRpcError(cause)
      if (!refusal || res.headersSent) throw cause
      res.json(rpcAnswer(id, rpcFailure(refusal)))
    }
  }
}

function idOf({ id }: JsonObject): RpcId {
  return typeof id === 'string' || typeof id === 'number' ? id : null
}

/** A client that names no version is treated as one of this version. */
function assertVersion(version = PROTOCOL_VERSION): void {
  if (version === PROTOCOL_VERSION) return
  throw new RpcError('version_not_supported', `this server has version ${PROTOCOL_VERSION} of A2A`)
}

function readRequest({ jsonrpc, method, params = {} }: JsonObject): { method: Method; params: Fields } {
  if (jsonrpc !== '2.0' || typeof method !== 'string')
    throw new RpcError('invalid_request', 'a request has jsonrpc 2.0 and a method')
  if (method.includes('PushNotificationConfig'))
    throw new RpcError('push_notification_not_supported', 'use webhooks: PUT /config/webhooks/{name}')
  if (UNSUPPORTED.has(method)) throw new RpcError('unsupported_operation', `this server does not have ${method}`)
  const known = METHODS.get(method)
  if (!known) throw new RpcError('method_not_found', 'no such method in version 1.0 of A2A')
  if (!isJsonObject(params)) throw new RpcError('invalid_params', 'params must be an object')
  return { method: known, params: new Fields(params) }
}

import {
  type ListToolsResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server'
import type { Request, Response } from 'express'
import { hasKind, toAppError } from '../../../../shared/kernel/errors.ts'
import { runIdOf } from '../../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import type { StartedFlow } from '../../../../shared/work/flows/calls/calls.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { FLOW } from '../../params.ts'
import type { FlowSurface } from '../../routes/flows/flows.ts'
import { required } from '../../routes/requires.ts'
import type { DialectDeps } from '../dialect.ts'
import { listPublished, type PublishedFlow } from '../shared/published-flows.ts'
import { publishedFlow, startFlow } from '../shared/start-flow.ts'
import { FILE_TEMPLATE, readFile } from './file-resources.ts'
import { failureOf, followFlow } from './flow-call.ts'
import type { SessionCalls } from './session-calls.ts'

/**
 * `sessionId` is set in the protocol of 2025, where a client cancels a call with a separate request; in the newer protocol it
 * closes the call's connection.
 */
export type Exchange = { req: Request; res: Response; isLegacy: boolean; sessionId: string | undefined }

type Deps = DialectDeps & { calls: SessionCalls }

/** Serves one request of a client: the tenant's published flows are the tools, and its files the resources. */
export function createFlowServer(deps: Deps, exchange: Exchange): Server {
  const { res, isLegacy } = exchange
  const identity = { name: 'agent-engine', version: deps.version }
  // In the protocol of 2025 only a gateway with sessions can send notifications.
  const server = new Server(identity, { capabilities: { tools: { listChanged: !isLegacy }, resources: {} } })
  server.setRequestHandler('tools/list', ({ params }) =>
    refusing(deps, () => listFlowTools(required('flows', deps.flows).library, tenantOf(res), params?.cursor)),
  )
  server.setRequestHandler('tools/call', ({ params }, { mcpReq }) =>
    refusing(deps, async () => {
      const { name, arguments: input = {} } = params
      if (!FLOW.pattern.test(name)) throw invalid(`no tool has the name ${name.slice(0, 100)}`)
      const flow = await publishedFlow(deps, res, name)
      const call = new FlowCall(deps, exchange, mcpReq)
      const result = await call.run(() => startFlow(deps, exchange, { flow, input }))
      return server.projectCallToolResult(result, flow.definition.output_schema)
    }),
  )
  // Results link to files; listing them would be no use, as a tenant may have very many.
  server.setRequestHandler('resources/list', () => ({ resources: [] }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [FILE_TEMPLATE] }))
  server.setRequestHandler('resources/read', ({ params }) =>
    refusing(deps, () => readFile(required('files', deps.files).files, tenantOf(res), params.uri)),
  )
  return server
}

const invalid = (message: string) => new ProtocolError(ProtocolErrorCode.InvalidParams, message)

/** Gives an error its JSON-RPC code. The message of an unexpected error is only logged. */
async function refusing<T>({ log }: Deps, answer: () => Promise<T>): Promise<T> {
  try {
    return await answer()
  } catch (cause) {
    if (cause instanceof ProtocolError) throw cause
    const error = toAppError(cause)
    if (error.kind === 'not_found' || error.kind === 'invalid_request') throw invalid(error.message)
    if (error.kind === 'internal') log.error('mcp request failed', { cause: error.cause ?? error })
    throw new ProtocolError(ProtocolErrorCode.InternalError, error.message)
  }
}

/** One call of a tool. Its run ends when the client cancels the call. */
class FlowCall {
  readonly #deps: Deps
  readonly #exchange: Exchange
  readonly #request: ServerContext['mcpReq']

  constructor(deps: Deps, exchange: Exchange, request: ServerContext['mcpReq']) {
    this.#deps = deps
    this.#exchange = exchange
    this.#request = request
  }

  /** A failure of the run is a result, too: it has `isError`. */
  async run(start: () => Promise<StartedFlow>) {
    let started: StartedFlow | undefined
    try {
      started = await start()
      await this.#begin(runIdOf(started.traceId))
      return await followFlow(started, this.#request)
    } catch (cause) {
      const { isLegacy } = this.#exchange
      if (started && this.#request.signal.aborted && !isLegacy) await this.#cancel(runIdOf(started.traceId))
      const error = toAppError(cause)
      if (error.kind === 'internal' && !this.#request.signal.aborted) throw cause
      return failureOf(error, started?.traceId)
    }
  }

  async #begin(runId: string): Promise<void> {
    const { sessionId, res } = this.#exchange
    if (sessionId === undefined) return
    const call = { sessionId, requestId: this.#request.id }
    const begun = this.#deps.calls.begin(tenantOf(res), call, runId)
    if (await begun.catch(() => false)) await this.#cancel(runId) // If the store fails, the call continues but cannot be cancelled.
  }

  #cancel(runId: string): Promise<void> {
    return giveUp(this.#deps, this.#exchange.res, runId)
  }
}

/** Cancels a run for which nobody waits any more. A run that has ended meanwhile is left as it is. */
export async function giveUp({ broker, log }: DialectDeps, res: Response, runId: string): Promise<void> {
  await broker.cancelRun(tenantOf(res), runId).catch((cause: unknown) => {
    if (!hasKind(cause, 'not_found')) log.warn('a call was given up, but its run goes on', { run_id: runId, cause })
  })
}

/** A page shows this many flows at most. */
const PAGE_FLOWS = 50

/** A page of the published flows, as tools. Throws `invalid_request` for an invalid cursor. */
async function listFlowTools(
  library: Pick<FlowSurface['library'], 'list' | 'definitionOf'>,
  tenant: TenantId,
  cursor?: string,
): Promise<ListToolsResult> {
  const { flows, nextCursor } = await listPublished(library, tenant, { limit: PAGE_FLOWS, cursor })
  return { tools: flows.map(toolOf), ...(nextCursor !== null && { nextCursor }) }
}

/** A flow's name is used unchanged as the tool's name. An input is always an object, which the schema of a flow need not say. */
function toolOf({ name, description, definition }: PublishedFlow): Tool {
  const { input_schema: input, output_schema: outputSchema } = definition
  return { name, description, inputSchema: { ...input, type: 'object' }, outputSchema }
}

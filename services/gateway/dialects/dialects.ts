import type { DialectName } from '../../../shared/platform/config/dialects.ts'
import type { RouteTable } from '../../http/routes.ts'
import { createSendReply, type ReplyToolBox } from '../routes/permissions.ts'
import { a2aRoutes } from './a2a/a2a-routes.ts'
import { agUiRoutes } from './ag-ui/ag-ui-routes.ts'
import type { DialectDeps } from './dialect.ts'
import { mcpRoutes } from './mcp/mcp-routes.ts'
import { openaiRoutes } from './openai/openai-routes.ts'
import { Conversations } from './shared/conversation.ts'
import { uiRoutes } from './ui/ui-routes.ts'

type Parts = Omit<DialectDeps, 'conversations'> & { toolBox: ReplyToolBox }

/** The formats in which other programs may use this server, each with its routes (D31). */
const DIALECTS: Record<DialectName, (deps: DialectDeps) => RouteTable> = {
  ui: uiRoutes,
  openai: openaiRoutes,
  'ag-ui': agUiRoutes,
  mcp: mcpRoutes,
  a2a: a2aRoutes,
}

/** The routes of the dialects that DIALECTS names. */
export function dialectRoutes(names: readonly DialectName[], { toolBox, ...parts }: Parts): RouteTable {
  const { broker, once } = parts
  const conversations = new Conversations({ broker, once, reply: createSendReply({ broker, toolBox }) })
  const tables = names.map((name) => DIALECTS[name]({ ...parts, conversations }))
  return Object.assign({}, ...tables) as RouteTable
}

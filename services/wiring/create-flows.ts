import type { ToolBox } from '../../shared/agent/tools/port.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import type { Idempotency } from '../../shared/platform/store/idempotency.ts'
import type { EventSink } from '../../shared/tenancy/events/port.ts'
import { EMPTY_CONFIG } from '../../shared/tenancy/tenant-config/config.ts'
import type { LiveConfigs } from '../../shared/tenancy/tenant-config/live-configs.ts'
import { type CompileFlow, createFlowCompiler } from '../../shared/work/flows/compile.ts'
import { DispatchLog } from '../../shared/work/flows/dispatch-log.ts'
import { FlowMemory } from '../../shared/work/flows/flow-memory.ts'
import { FlowLibrary } from '../../shared/work/flows/library.ts'
import type { DispatchStore } from '../../shared/work/flows/port.ts'
import type { OpenedStore } from './open-store.ts'

/** The flows and their history, which every process has. */
export type FlowParts = {
  library: FlowLibrary
  memory: FlowMemory
  compile: CompileFlow
  schemas: SchemaCheckers
  dispatches: DispatchStore
  history: DispatchLog
  idempotency: Idempotency
  retentionDays(tenant: TenantId): Promise<number>
}

type Parts = {
  store: Pick<OpenedStore, 'flows' | 'flowMemory' | 'dispatches' | 'idempotency'>
  events: EventSink
  toolBox: ToolBox
  schemas: SchemaCheckers
  /** `undefined`: runtime configuration is disabled, and every tenant has the default retention. */
  configs: Pick<LiveConfigs, 'get'> | undefined
}

export function createFlows({ store, events, toolBox, schemas, configs }: Parts): FlowParts {
  const tools = () => flowTools(toolBox)
  const compileNow = createFlowCompiler({ checkers: schemas, tools })
  // A flow may name tools of an MCP server that is still starting together with this process.
  const compile: CompileFlow = async (...args) => {
    await toolBox.ready
    return compileNow(...args)
  }
  const { dispatches, idempotency } = store
  const retentionDays = async (tenant: TenantId) => ((await configs?.get(tenant)) ?? EMPTY_CONFIG).audit.retention_days
  return {
    library: new FlowLibrary({ store: store.flows, memory: store.flowMemory, compile, tools, events }),
    memory: new FlowMemory({ flows: store.flows, entries: store.flowMemory }),
    compile,
    schemas,
    dispatches,
    history: new DispatchLog({ dispatches, retentionDays }),
    idempotency,
    retentionDays,
  }
}

/** Dream needs a session or a customer. */
const NOT_FOR_FLOWS: ReadonlySet<string> = new Set(['Dream'])

/** The names of the tools that flows may use. Tools that always ask for permission are left out: nobody could answer. */
const flowTools = ({ tools }: ToolBox): string[] =>
  tools.filter(({ name, alwaysAsks }) => !alwaysAsks && !NOT_FOR_FLOWS.has(name)).map(({ name }) => name)

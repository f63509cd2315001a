import { randomBytes } from 'node:crypto'
import type { FlowRunSurface } from '../../services/gateway/routes/flows/flow-runs.ts'
import type { FlowSurface } from '../../services/gateway/routes/flows/flows.ts'
import { type FlowParts, createFlows as openServices } from '../../services/wiring/create-flows.ts'
import { openStandaloneStore } from '../../services/wiring/open-store.ts'
import type { ToolBox } from '../../shared/agent/tools/port.ts'
import { loadConfig } from '../../shared/platform/config/config.ts'
import { createSchemaCheckers } from '../../shared/platform/schemas/checker.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'
import type { UsageStore } from '../../shared/tenancy/usage/port.ts'
import { UsageReport } from '../../shared/tenancy/usage/report.ts'
import { FlowChecks } from '../../shared/work/flows/check/check.ts'
import { EvaluationHistory } from '../../shared/work/flows/evaluate/history.ts'
import type { Dispatch } from '../../shared/work/flows/port.ts'
import { newDispatch } from '../contract/dispatch-setup.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

type Flows = AsyncDisposable &
  Pick<FlowParts, 'library' | 'dispatches' | 'history'> & {
    usage: UsageStore
    surface(execution?: FlowRunSurface): FlowSurface
  }

export const TOOLS = ['Grep', 'Read']

/** The real services behind the routes, on a SQLite store. */
export async function openFlows(): Promise<Flows> {
  const folder = await makeTempFolder()
  const store = await openStandaloneStore(loadConfig({ DATA_DIR: folder.path }, 'standalone'))
  const schemas = createSchemaCheckers()
  const toolBox = { tools: TOOLS.map((name) => ({ name, alwaysAsks: false })) } as unknown as ToolBox
  const { library, memory, compile, dispatches, history } = openServices({
    store,
    events: NO_EVENTS,
    toolBox,
    schemas,
    configs: undefined,
  })
  const checks = new FlowChecks({ library, memory, compile, checkers: schemas })
  const evaluations = new EvaluationHistory({ library, store: store.flowEvaluations })
  const report = new UsageReport(store.usage)
  const figures = report.flows.bind(report)
  return {
    library,
    dispatches,
    history,
    usage: store.usage,
    surface: (execution) => ({ library, memory, checks, evaluations, figures, execution }),
    async [Symbol.asyncDispose]() {
      await schemas.close()
      await store.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

export const SCHEMA = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
export const DEFINITION = { input_schema: SCHEMA, output_schema: { type: 'object' } }

/** A name of no other flow. */
export const newName = (): string => `flow-${randomBytes(8).toString('hex')}`

/** The record of an execution that has just been queued. */
export function dispatchOf(fields: Partial<Dispatch> = {}): Dispatch {
  const flow = { name: 'invoice-total', uid: 'flow_1', version: 1 }
  return newDispatch(Date.now(), { subject: 'anonymous', flow, model: 'my-model', fallback: null, ...fields })
}

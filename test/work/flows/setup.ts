import { AppError } from '../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import type { SchemaChecker } from '../../../shared/platform/schemas/port.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import { type EventSink, NO_EVENTS } from '../../../shared/tenancy/events/port.ts'
import { createFlowCompiler } from '../../../shared/work/flows/compile.ts'
import { FlowMemory } from '../../../shared/work/flows/flow-memory.ts'
import { FlowLibrary } from '../../../shared/work/flows/library.ts'
import { FlowMemoryStore } from '../../../shared/work/flows/store/flow-memory.ts'
import { FlowStore } from '../../../shared/work/flows/store/flows.ts'
import { tenantId } from '../../support/tenant.ts'

export const TENANT = tenantId('t_1')
export const OTHER = tenantId('t_2')

export const BODY = { input_schema: { type: 'object' }, output_schema: { type: 'object' } }

/** Refuses the schemas that have the property `broken`; its value is the path. */
export const CHECKER: Pick<SchemaChecker, 'findUnusable'> = {
  async findUnusable(schemas) {
    return schemas.flatMap(({ broken: path }, at) =>
      typeof path === 'string' ? [{ at, problem: { path, message: 'is broken' } }] : [],
    )
  },
}

export type Opened = { library: FlowLibrary; memory: FlowMemory; compiled: JsonObject[]; flows: FlowStore }

type Options = { tools?: string[]; now?: () => Date; events?: Pick<EventSink, 'append'> }

/** Puts a library together as one process does. `compiled` collects the definitions that it compiles. */
export function openLibrary(
  store: Store,
  { tools = ['Read', 'Grep'], now = () => new Date(), events = NO_EVENTS }: Options = {},
): Opened {
  const flows = new FlowStore(store, { now })
  const entries = new FlowMemoryStore(store)
  const compiled: JsonObject[] = []
  const compile = createFlowCompiler({ checkers: { of: () => CHECKER }, tools: () => tools })
  const library = new FlowLibrary({
    store: flows,
    events,
    memory: entries,
    tools: () => tools,
    now,
    compile(tenant, definition) {
      compiled.push(definition)
      return compile(tenant, definition)
    },
  })
  return { library, memory: new FlowMemory({ flows, entries, now }), compiled, flows }
}

/** The refusal with which the call ends. */
export async function refusalOf(call: Promise<unknown>): Promise<AppError> {
  const cause = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (cause instanceof AppError) return cause
  throw cause ?? new Error('the call was not refused')
}

import { setTimeout as sleep } from 'node:timers/promises'
import { apiBase } from '../../shared/agent/providers/base-url.ts'
import { AnsweredCalls, type ItemAnswers } from '../../shared/agent/providers/batch/answered-calls.ts'
import type { ModelProvider } from '../../shared/agent/providers/port.ts'
import { createPrices, createWindows } from '../../shared/agent/providers/prices.ts'
import { recordingActions } from '../../shared/agent/tools/recording-actions.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { runIdOf } from '../../shared/kernel/ids.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import { NO_ADMISSION } from '../../shared/tenancy/limits/admission.ts'
import { NO_METER } from '../../shared/tenancy/limits/meter.ts'
import type { StoredInstance } from '../../shared/tenancy/tenant-config/config.ts'
import { findInstance } from '../../shared/tenancy/tenant-config/settings.ts'
import type { FlowExecution } from '../../shared/work/flows/execute/execute.ts'
import { executeFlow } from '../../shared/work/flows/execute/execute.ts'
import { inputFiles } from '../../shared/work/flows/input-files.ts'
import { createProbes } from '../wiring/models/create-probes.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import type { Executor } from './executor.ts'
import { type ExecuteFlow, FlowJobs, type FlowJobsDeps } from './flow-jobs.ts'
import type { ExecutorParts, Membership } from './open-parts.ts'
import { patientChecks } from './unhurried-flows.ts'

/** Every process knows of a changed configuration after at most this time (D8.5). */
const CONFIG_LAG_MS = 2_000

type FlowSettings = Pick<Settings['executor'], 'maxTurns' | 'modelPrices'>

/** Opens the jobs that execute flows, with the tenants' models and the tools that need no permission. */
export function createFlowJobs(
  settings: FlowSettings,
  parts: ExecutorParts & { executor: Executor },
  membership: Membership,
): FlowJobs {
  const { flows, fence, executor, log } = parts
  const execute = createExecute(settings, parts)
  const admission = parts.tenantConfig?.limits.admission ?? NO_ADMISSION
  const { runs, draining } = executor
  const leave: FlowJobsDeps['leave'] = (tenant, runId) => parts.workspaces.release(tenant, runId)
  const own = { isHeld: () => fence.isHeld(), draining, leave, log }
  return new FlowJobs({ ...flows, ...membership, ...own, runs, admission, execute })
}

function createExecute(settings: FlowSettings, parts: ExecutorParts): ExecuteFlow {
  const { flows, tools, workspaces, log } = parts
  const { files } = parts.store
  const openModel = createModelOpener(parts.tenantConfig)
  const meter = parts.tenantConfig?.limits.meter ?? NO_METER
  const probed = createProbes({ capabilities: parts.store.capabilities, tenantConfig: parts.tenantConfig })
  const priceOf = createPrices(settings.modelPrices)
  const windowOf = createWindows()
  const checksOf = createChecks(flows.schemas)
  return (tenant, execution, signal) => {
    const runId = runIdOf(execution.traceId)
    const { answers } = execution
    return executeFlow(execution, {
      async openModel(instance, agent) {
        const provider = await openModel(tenant, instance, answers && { item: answers, agent })
        return answers?.missing ? provider : meter.provider(tenant, provider)
      },
      supportsStructuredOutput: async (instance, model) => (await probed(tenant, model, instance))?.structured_output,
      priceOf,
      windowOf,
      checker: checksOf(execution).of(tenant),
      maxTurns: settings.maxTurns,
      ...timeLeft(execution),
      findFiles: () => inputFiles(tenant, inputOf(execution), files),
      readFile: ({ file_id: id }) => files.read(tenant, id),
      signal,
      now: Date.now,
      onBug: (cause) => log.error('a flow failed by a bug', { run_id: runId, cause }),
      tools: {
        ...tools,
        ...(execution.beforeAction && { toolBox: recordingActions(tools.toolBox, execution.beforeAction) }),
        services: {},
        owner: { tenant, scope: runId },
        // A rehearsal has no folder, because its tools use none.
        workspace: () => (answers?.missing ? `/nowhere/${runId}` : workspaces.open(tenant, runId)),
        onToolBug: (tool, cause) => log.error('a tool failed by a bug', { run_id: runId, tool, cause }),
      },
    })
  }
}

/** No client waits for an item of a batch, nor for a flow with a deadline. */
function createChecks(schemas: SchemaCheckers): (execution: FlowExecution) => SchemaCheckers {
  const patient = patientChecks(schemas)
  return ({ answers, caller }) => (answers || caller?.priority === 'batch' ? patient : schemas)
}

const timeLeft = ({ caller: { deadlineMs } = {} }: FlowExecution): { limitMs?: number } =>
  deadlineMs === undefined ? {} : { limitMs: Math.max(0, deadlineMs - Date.now()) }

const inputOf = ({ flow, input }: FlowExecution) => ({ schema: flow.definition.input_schema, input })

type Answered = { item: ItemAnswers; agent: string }

/** A provider is kept for as long as its instance is the same object, which is until the tenant's configuration changes. */
function createModelOpener(tenantConfig: OpenedTenantConfig | undefined) {
  const opened = new WeakMap<StoredInstance, Promise<ModelProvider>>()
  return async (tenant: TenantId, name: string, answered?: Answered): Promise<ModelProvider> => {
    if (!tenantConfig) throw disabled()
    const { configs, credentials, openInstance } = tenantConfig
    let config = await configs.get(tenant)
    if (!config.instances.some((each) => each.name === name)) {
      await sleep(CONFIG_LAG_MS) // The gateway that accepted the run already knows of it, but this process does not yet.
      config = await configs.get(tenant)
    }
    const instance = findInstance(config, name)
    if (answered) {
      const base = apiBase(instance.type, instance.url).href
      const calls = new AnsweredCalls({ ...answered, base })
      return calls.priced(await openInstance(instance, credentials.read(tenant, instance, config), calls.behind))
    }
    const known = opened.get(instance)
    if (known) return known
    const opening = openInstance(instance, credentials.read(tenant, instance, config))
    opened.set(instance, opening)
    return opening
  }
}

const disabled = () =>
  new AppError('unavailable', 'runtime configuration is disabled on this server: set MASTER_KEY and start it again', {
    code: 'config_disabled',
  })

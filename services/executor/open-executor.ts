import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Fence } from '../../shared/broker/port.ts'
import type { Config } from '../../shared/config/config.ts'
import { AppError } from '../../shared/errors.ts'
import { sweepOrphans } from '../../shared/flows/calls/orphan-sweep.ts'
import type { Executors } from '../../shared/flows/calls/settle.ts'
import { executeFlow } from '../../shared/flows/execute/execute.ts'
import { createRetentionSweep } from '../../shared/flows/retention-sweep.ts'
import { runIdOf } from '../../shared/ids.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import type { ModelProvider } from '../../shared/providers/port.ts'
import { createPrices, createWindows } from '../../shared/providers/prices.ts'
import type { Consume } from '../../shared/queue/port.ts'
import type { TenantId } from '../../shared/tenant.ts'
import type { StoredInstance } from '../../shared/tenant-config/config.ts'
import { findInstance } from '../../shared/tenant-config/settings.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import { unattended } from '../../shared/tools/unattended.ts'
import { createCanAct } from '../runs/can-act.ts'
import { createWorkspaces, type Workspaces } from '../runs/workspaces.ts'
import type { OpenedFlows } from '../wiring/flows.ts'
import type { OpenedStore } from '../wiring/store.ts'
import type { OpenedTenantConfig } from '../wiring/tenant-config.ts'
import { Executor } from './executor.ts'
import { type ExecuteFlow, FlowJobs } from './flow-jobs.ts'

type ExecutorConfig = Pick<
  Config,
  'runsPerWorker' | 'runResumeMs' | 'maxTurns' | 'modelPrices' | 'planPermissions' | 'workspaceDir'
>

type Parts = {
  flows: OpenedFlows
  store: Pick<OpenedStore, 'capabilities' | 'tenantConfigs'>
  /** `undefined`: runtime configuration is disabled, so no flow can call a provider. */
  tenantConfig: OpenedTenantConfig | undefined
  toolBox: ToolBox
  fence: Fence
  metrics: Metrics
  log: Log
}

/** This executor among the others. */
export type Membership = { epoch(): number; announce(runId: string): void; executors: Pick<Executors, 'isAlive'> }

export type OpenedExecutor = {
  executor: Executor
  /** Begins to take jobs. */
  start(consume: Consume, membership: Membership): Promise<void>
  close(): void
}

const MAX_TOOL_OUTPUT_CHARS = 64 * 1024
const SWEEP_EVERY_MS = 600_000
const ORPHANS_EVERY_MS = 15_000
/** A change of a configuration is known everywhere after this time, at the latest (D8.5). */
const CONFIG_LAG_MS = 2_000

/** Opens an executor with the models and tools of flows. */
export function openExecutor(config: ExecutorConfig, parts: Parts): OpenedExecutor {
  const { flows, fence, metrics, log } = parts
  const workspaces = createWorkspaces(config.workspaceDir)
  const executor = new Executor({ limits: config, workspaces, metrics, log })
  const execute = createExecute(config, { ...parts, workspaces })
  const stopSweeps = [startRetentionSweep(parts)]
  return {
    executor,
    async start(consume, membership) {
      const { runs } = executor
      const jobs = new FlowJobs({ ...flows, ...membership, runs, execute, isHeld: () => fence.isHeld(), log })
      await executor.start(consume, {
        handle: (job) => jobs.handle(job),
        givenUp: (job) => jobs.givenUp(job),
      })
      stopSweeps.push(startOrphanSweep(parts, membership))
    },
    close: () => stopSweeps.forEach((stop) => stop()),
  }
}

/** Deletes the records that tenants want to keep no longer. */
function startRetentionSweep({ flows, store, log }: Parts): () => void {
  const sweep = createRetentionSweep({
    dispatches: flows.dispatches,
    tenants: (after) => store.tenantConfigs.tenants(after),
    retentionDays: (tenant) => flows.retentionDays(tenant),
  })
  const onFailure = (cause: unknown) => log.warn('old dispatches could not be deleted; it is tried again', { cause })
  return repeat(() => sweep.run(), { everyMs: SWEEP_EVERY_MS, onFailure })
}

/** Ends the executions that nobody else ends any more. */
function startOrphanSweep({ flows, store, fence, log }: Parts, { executors }: Membership): () => void {
  const deps = {
    dispatches: flows.dispatches,
    tenants: (after: TenantId | undefined) => store.tenantConfigs.tenants(after),
    executors,
    now: () => new Date(),
  }
  const sweep = async () => {
    if (fence.isHeld()) await sweepOrphans(deps)
  }
  const onFailure = (cause: unknown) => log.warn('lost executions could not be ended; it is tried again', { cause })
  return repeat(sweep, { everyMs: ORPHANS_EVERY_MS, onFailure })
}

type Repeating = { everyMs: number; onFailure(cause: unknown): void }

/** Calls `work` at intervals, and not while an earlier call goes on. */
function repeat(work: () => Promise<unknown>, { everyMs, onFailure }: Repeating): () => void {
  let isBusy = false
  const once = async () => {
    if (isBusy) return
    isBusy = true
    await work().catch(onFailure)
    isBusy = false
  }
  const timer = setInterval(() => void once(), everyMs).unref()
  return () => clearInterval(timer)
}

function createExecute(config: ExecutorConfig, parts: Parts & { workspaces: Workspaces }): ExecuteFlow {
  const { flows, toolBox, fence, metrics, workspaces, log } = parts
  const openModel = createModelOpener(parts.tenantConfig)
  const supportsStructuredOutput = createStructuredOutputProbe(parts)
  const priceOf = createPrices(config.modelPrices)
  const windowOf = createWindows()
  const tools = {
    toolBox: unattended(toolBox, config.planPermissions),
    services: {},
    maxOutputChars: MAX_TOOL_OUTPUT_CHARS,
    canAct: createCanAct(fence, metrics),
  }
  return (tenant, execution, signal) => {
    const runId = runIdOf(execution.traceId)
    return executeFlow(execution, {
      openModel: (instance) => openModel(tenant, instance),
      supportsStructuredOutput: (instance, model) => supportsStructuredOutput(tenant, instance, model),
      priceOf,
      windowOf,
      checker: flows.schemas,
      maxTurns: config.maxTurns,
      signal,
      now: Date.now,
      onBug: (cause) => log.error('a flow failed by a bug', { run_id: runId, cause }),
      tools: {
        ...tools,
        workspace: () => workspaces.open(tenant, runId),
        onToolBug: (tool, cause) => log.error('a tool failed by a bug', { run_id: runId, tool, cause }),
      },
    })
  }
}

/** A provider is kept for as long as its instance is the same object, which is until the tenant's configuration changes. */
function createModelOpener(tenantConfig: OpenedTenantConfig | undefined) {
  const opened = new WeakMap<StoredInstance, Promise<ModelProvider>>()
  return async (tenant: TenantId, name: string): Promise<ModelProvider> => {
    if (!tenantConfig) throw disabled()
    const { configs, credentials, openInstance } = tenantConfig
    let config = await configs.get(tenant)
    if (!config.instances.some((each) => each.name === name)) {
      await sleep(CONFIG_LAG_MS) // The gateway that accepted the run knows it: this process has not heard of it yet.
      config = await configs.get(tenant)
    }
    const instance = findInstance(config, name)
    const known = opened.get(instance)
    if (known) return known
    const opening = openInstance(instance, credentials.read(tenant, instance, config))
    opened.set(instance, opening)
    return opening
  }
}

const PROBES = { max: 10_000, ttl: 10_000 }

/** The answer of the latest probe, which is read again after 10 s. */
function createStructuredOutputProbe({ store, tenantConfig }: Pick<Parts, 'store' | 'tenantConfig'>) {
  const known = new LRUCache<string, { isSupported: boolean | undefined }>(PROBES)
  return async (tenant: TenantId, name: string, model: string): Promise<boolean | undefined> => {
    const config = await tenantConfig?.configs.get(tenant)
    if (!config) return undefined
    const instance = findInstance(config, name)
    const key = JSON.stringify([tenant, instance.name, instance.revision, model])
    const cached = known.get(key)
    if (cached) return cached.isSupported
    const { probes } = await store.capabilities.read(tenant, instance)
    const isSupported = probes.find((probe) => probe.model === model)?.capabilities.structured_output
    known.set(key, { isSupported })
    return isSupported
  }
}

const disabled = () =>
  new AppError('unavailable', 'runtime configuration is disabled on this server: set MASTER_KEY and start it again', {
    code: 'config_disabled',
  })

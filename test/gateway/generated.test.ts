import { randomBytes } from 'node:crypto'
import type { AnySchemaObject } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import fc from 'fast-check'
import { createReceiveUpload, createUploadLine } from '../../services/gateway/bodies/upload.ts'
import type { ConfigSurface } from '../../services/gateway/routes/config/enabled.ts'
import type { FileSurface } from '../../services/gateway/routes/files.ts'
import type { FlowRunSurface } from '../../services/gateway/routes/flows/flow-runs.ts'
import type { TranscriptionDeps } from '../../services/gateway/routes/transcriptions.ts'
import { createLocalParts } from '../../services/wiring/config-notice.ts'
import { openStandaloneStore } from '../../services/wiring/open-store.ts'
import { type OpenedTenantConfig, openTenantConfig } from '../../services/wiring/open-tenant-config.ts'
import type { Files } from '../../shared/agent/files/files.ts'
import { providerSpecs } from '../../shared/agent/providers/catalogue.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import { invalidRequest } from '../../shared/kernel/errors.ts'
import type { FlowAnswer } from '../../shared/kernel/events.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { ApiType } from '../../shared/platform/api/api-type.ts'
import type { ApiDocument } from '../../shared/platform/api/document.ts'
import { loadConfig } from '../../shared/platform/config/config.ts'
import { groupSettings } from '../../shared/platform/config/groups.ts'
import type { EgressResponse } from '../../shared/platform/net/port.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'
import type { InstanceInspector } from '../../shared/tenancy/tenant-config/inspector.ts'
import { UsageReport } from '../../shared/tenancy/usage/report.ts'
import { arbitraryOf } from '../platform/api/arbitrary.ts'
import type { Contract } from '../platform/api/contract.ts'
import { bodyOf, type Operation, operationsOf } from '../platform/api/operations.ts'
import { apiContract, apiDocument } from '../support/api-document.ts'
import { useFixture } from '../support/fixture.ts'
import { readAnswer } from '../support/read-answer.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { DEFINITION, dispatchOf, openFlows } from './flow-setup.ts'
import { CHAIN, NO_ESTIMATE, openPlanning } from './plan-setup.ts'
import { sessionOf } from './session-of.ts'
import { DONE, framesOf, type Gateway, RUN_ID, useGateways } from './setup.ts'

/** Other values in each run of the tests. */
const RUNS = 12
const AT = '2026-11-22T09:30:00.000Z'
const RUN = { run_id: RUN_ID, status: 'done' as const, started_at: AT, ended_at: AT, event_count: 1 }
const PROBE = {
  model: 'm',
  capabilities: { streaming: true, tools: true, structured_output: true, thinking: true, vision: true },
  latency_ms: 1,
  probed_at: AT,
}

/** Answers every call well, so that only the checks of requests refuse. It is whole: a call that it did not know would be a 500 of rare values alone. */
const BROKER: Broker = {
  createSession: async (_tenant, id) => sessionOf(id),
  getSession: async (_tenant, id) => sessionOf(id),
  listSessions: async () => ({ sessions: [sessionOf()], next_cursor: null }),
  listMessages: async () => ({ messages: [], branches: [], next_cursor: null }),
  renameSession: async (_tenant, id, title) => sessionOf(id, { title }),
  deleteSession: async () => {},
  startRun: async () => ({ runId: RUN_ID, frames: framesOf(DONE) }),
  sendMessage: async () => ({ runId: RUN_ID, frames: framesOf(DONE) }),
  listRuns: async () => ({ runs: [RUN], next_cursor: null }),
  getRun: async () => RUN,
  followRun: async () => framesOf(DONE),
  cancelRun: async () => {},
  steerRun: async () => {},
  estimateRun: async () => NO_ESTIMATE,
  branchOf: async () => ({ messages: [], title: null, from: { session_id: 's', message_id: `msg_${'0'.repeat(32)}` } }),
  listFiles: async () => ({ files: [], has_more: false }),
  readFile: async () => ({ base64: '', bytes: 0, modified_ms: 0 }),
  findPermission: async () => undefined,
  replyPermission: async () => {},
  answerCall: async () => {},
  listPermissions: async () => ({ permissions: [], next_cursor: null }),
  listRemembered: async () => ({ permissions: [], next_cursor: null }),
  forgetRemembered: async () => 1,
}

const TRACE_ID = RUN_ID.replace('run_', 'trace_')

const ANSWER: FlowAnswer = {
  flow_id: 'main',
  flow_version: 1,
  trace_id: TRACE_ID,
  verdict: 'ok',
  output: null,
  served_instance: 'main',
}

const BATCH: ApiType<'FlowBatch'> = {
  batch_id: RUN_ID.replace('run_', 'batch_'),
  flow: { name: 'main', version: 1 },
  subject: 'anonymous',
  status: 'running',
  provider_instance: 'main',
  model: 'm',
  created_at: '2026-11-22T09:30:00.000Z',
  deadline_at: '2026-11-23T09:30:00.000Z',
  ended_at: null,
  expires_at: '2026-12-22T09:30:00.000Z',
  item_counts: { total: 1, ended: 0, ok: 0, invalid_output: 0, error: 0, rejected: 0, cancelled: 0, expired: 0 },
  usage: { input_tokens: 0, output_tokens: 0, cost_usd: 0 },
}

const EXECUTION: FlowRunSurface = {
  estimate: async () => NO_ESTIMATE,
  calls: {
    start: async () => ({
      traceId: TRACE_ID,
      isReplayed: false,
      answer: async () => ANSWER,
      frames: () => Promise.reject(new Error('not expected')),
    }),
  },
  evaluator: {
    evaluate: async (_tenant, name) => ({
      flow_id: name,
      version: 2,
      published_version: 1,
      pass_rate: 1,
      published_pass_rate: 1,
      cost_usd: 0,
      published_cost_usd: 0,
      latency_ms_p50: 0,
      published_latency_ms_p50: 0,
      runs: [],
    }),
  },
  batches: {
    start: async () => ({ batch: BATCH, isReplayed: false }),
    get: async () => BATCH,
    list: async () => ({ batches: [], next_cursor: null }),
    cancel: async () => BATCH,
    async results() {
      return (async function* () {})()
    },
  },
}

const INSPECTOR = {
  discover: async () => ({ models: [], discovered_at: AT }),
  probe: async () => PROBE,
  capabilities: async () => ({ discovery: null, probes: [PROBE], room: [] }),
} as unknown as InstanceInspector

async function* transcript(): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode('{"text":"hello"}')
}

const HEARD: EgressResponse = {
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: transcript(),
  discard: () => {},
}

/** Values that fit the schema, but refer to something that does not exist or may not be used. */
const SEMANTIC: Record<string, RegExp> = {
  createSession: /^\/messages/,
  startRun: /^\/attachments/,
  sendMessage: /^\/attachments/,
  listInstances: /^\/cursor$/,
  listConfigChanges: /^\/cursor$/,
  listSecrets: /^\/cursor$/,
  readCustomerLedger: /^\/cursor$/,
  showUsage: /^\/(?:cursor|from|to)$/,
  listFlows: /^\/cursor$/,
  startBatch: /^\/(?:items|file_id)/,
  listFlowMemory: /^\/cursor$/,
  listFlowEvaluations: /^\/cursor$/,
  listDispatches: /^\/cursor$/,
  listFiles: /^\/cursor$/,
  listSessionFiles: /^\/cursor$/,
  listRunFiles: /^\/cursor$/,
  listRuns: /^\/(?:cursor|since|until)$/,
  showDispatchStats: /^\/(?:cursor|from)$/,
  answerToolCall: /^\/(?:output|parts)/,
  listPermissions: /^\/(?:cursor|since)$/,
  listPlans: /^\/cursor$/,
  listPlanSchedules: /^\/cursor$/,
  submitPlan: /^\/steps/,
  putPlanSchedule: /^\/(?:cron|timezone|every_secs|plan\/steps)|^$/,
  putFlow: /^\/name$/,
  publishFlow: /^\/(?:tools|sub_agents|\w+_schema|\w+_template)/,
  addFlowMemory: /^\/(?:content|scope)$/,
  putEngineConfig: /^\/routing\/\w+\/(?:(?:fallback_)?instance|hedge|strategy)$/,
  putInstance: /^\/(?:secret|url|key|options(?:\/(?:headers\/.+|flex))?)$/,
  listWebhooks: /^\/cursor$/,
  listWebhookDeliveries: /^\/cursor$/,
  putWebhook: /^\/(?:secret|url)$/,
  transcribe: /^\/provider_instance$/,
}

const document = await apiDocument()

/** Names of secrets, instances, flows and schedules are often `main`, which exists; so do one execution and one plan. */
const generatedFrom: ApiDocument = structuredClone(document)
const { schemas } = generatedFrom.components as { schemas: Record<string, AnySchemaObject> }
for (const name of ['ConfigName', 'FlowName']) schemas[name] = { anyOf: [{ const: 'main' }, { ...schemas[name] }] }
schemas['TraceId'] = { anyOf: [{ const: TRACE_ID }, { ...schemas['TraceId'] }] }
schemas['ToolCallId'] = { anyOf: [{ const: 'toolu_1' }, { ...schemas['ToolCallId'] }] } // Of other texts, most are no id that the server gives: 404.

const arbitrary = (schema: AnySchemaObject) => arbitraryOf(schema, generatedFrom)

type Sent = { parameters: Record<string, unknown>; body: unknown }

/** All parameters, optional ones sometimes, and the body. */
function requestsOf({ operation, parameters }: Operation): fc.Arbitrary<Sent> {
  const values = parameters.map(({ name, schema }) => [String(name), arbitrary(schema as AnySchemaObject)])
  const requiredKeys = parameters.filter(({ required }) => required === true).map(({ name }) => String(name))
  const { schema } = bodyOf(operation) ?? {}
  return fc.record({
    parameters: fc.record(Object.fromEntries(values) as Record<string, fc.Arbitrary<unknown>>, { requiredKeys }),
    body: schema ? arbitrary(schema) : fc.constant(undefined),
  })
}

/** `undefined` where a path cannot hold the value: clients resolve `.` and `..` themselves. */
function pathOf({ path, parameters: nodes }: Operation, { parameters }: Sent): string | undefined {
  const of = (place: string) =>
    nodes.filter((node) => node['in'] === place && Object.hasOwn(parameters, String(node['name'])))
  const inPath = of('path').map(({ name }) => [String(name), String(parameters[String(name)])] as const)
  if (inPath.some(([, value]) => value === '.' || value === '..')) return undefined
  const inQuery = of('query').map(({ name }) => [String(name), String(parameters[String(name)])] as [string, string])
  const query = new URLSearchParams(inQuery)
  const filled = inPath.reduce(
    (text, [name, value]) => text.replace(`{${name}}`, () => encodeURIComponent(value)),
    path,
  )
  return query.size > 0 ? `${filled}?${query}` : filled
}

function initOf({ method, operation, parameters: nodes }: Operation, { parameters, body }: Sent): RequestInit {
  const inHeader = nodes.filter((node) => node['in'] === 'header' && Object.hasOwn(parameters, String(node['name'])))
  const headers = Object.fromEntries(inHeader.map(({ name }) => [String(name), String(parameters[String(name)])]))
  const type = bodyOf(operation)?.type
  if (type === undefined) return { method, headers }
  if (type === 'application/json') {
    return { method, headers: { ...headers, 'content-type': type }, body: JSON.stringify(body) }
  }
  const form = new FormData()
  for (const [name, value] of Object.entries(body as Record<string, string>)) {
    form.append(name, name === 'file' ? new Blob([value]) : value)
  }
  return { method, headers, body: form }
}

describe('values that are generated from the API description', () => {
  const start = useGateways({ perTest: false })
  let contract: Contract
  const dir = useTempFolder()
  let tenantConfig: OpenedTenantConfig
  let usage: UsageReport
  let files: Files
  let closeStore: () => Promise<void>
  const flows = useFixture(openFlows)
  const planning = useFixture(openPlanning)
  let gateway: Gateway

  before(async () => {
    contract = await apiContract()
    const env = { DATA_DIR: dir.path, MASTER_KEY: randomBytes(32).toString('base64'), ALLOW_PRIVATE_URLS: 'true' }
    const config = loadConfig(env, 'standalone')
    const log = SILENT_LOG
    const store = await openStandaloneStore(config)
    const opened = await openTenantConfig(groupSettings(config).tenants, {
      metrics: NO_METRICS,
      store,
      ...createLocalParts(),
      events: NO_EVENTS,
      log,
    })
    if (!store || !opened) throw new Error('runtime configuration is off')
    tenantConfig = opened
    usage = new UsageReport(store.usage)
    files = store.files
    closeStore = () => store.close()
    await flows().dispatches.create(DEFAULT_TENANT, dispatchOf({ trace_id: TRACE_ID }), {})
    const planId = await planning().failed(DEFAULT_TENANT)
    schemas['PlanId'] = { anyOf: [{ const: planId }, { ...schemas['PlanId'] }] }
    gateway = await startGateway()
  })

  after(async () => {
    await tenantConfig.close()
    await closeStore()
  })

  function startGateway(): Promise<Gateway> {
    const { configs, credentials, settings, audit, webhooks, outbox, limits } = tenantConfig
    const config: ConfigSurface = {
      settings,
      audit,
      webhooks,
      outbox,
      limits,
      inspector: INSPECTOR,
      adminScope: undefined,
      providers: () => providerSpecs({ hasDemo: true }),
    }
    const request = async () => ({ ...HEARD, body: transcript() })
    const transcription: TranscriptionDeps = {
      configs,
      credentials,
      egress: { request },
      assertBudget: async () => {},
      receive: createReceiveUpload(dir.path),
    }
    const line = createUploadLine()
    const fileSurface: FileSurface = {
      files,
      enter: (tenant, signal) => line.enter({ tenant, bytes: 0 }, signal),
      receive: transcription.receive,
      fetchFile: (_url, param) => Promise.reject(invalidRequest('nothing is fetched here', { param })),
    }
    const ledger = { page: async () => ({ entries: [], next_cursor: null }) } as never
    const decided = { page: async () => ({ permissions: [], next_cursor: null }), find: async () => undefined } as never
    const surfaces = { flows: flows().surface(EXECUTION), dispatches: flows().history, plans: planning().surface }
    const server = { maxRequestsPerSocket: 1_000_000 } // The fetch of Node crashes when the last answer of a connection is large.
    return start({
      server,
      methods: BROKER,
      config,
      transcription,
      ledger,
      decided,
      usage,
      files: fileSurface,
      ...surfaces,
    })
  }

  /** Whether everything that is called `main` is as `beforeEach` has put it. */
  let isPut = false
  beforeEach(async () => {
    if (isPut) return
    isPut = true
    await put('/flows/main', DEFINITION)
    await put('/plans/schedules/main', { every_secs: 60, plan: CHAIN })
    await put('/config/webhooks/main', {
      url: 'http://127.0.0.1:1/',
      events: ['run.ended'],
      secret: `whsec_${'A'.repeat(32)}`,
    })
    await put('/config/secrets/main', { value: 'sk-0123456789' })
    await put('/config/instances/main', { type: 'openai-compatible', url: 'http://127.0.0.1:1/v1' })
  })

  async function put(path: string, body: object): Promise<void> {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(gateway.url + path, { method: 'PUT', headers, body: JSON.stringify(body) })
    await response.text()
  }

  /** Sends one request; throws unless its answer is described, not a 5xx, and a 400 only where the meaning of a value is wrong. */
  async function check(operation: Operation, sent: Sent): Promise<void> {
    const path = pathOf(operation, sent)
    if (path === undefined) return
    const response = await fetch(gateway.url + path, initOf(operation, sent))
    const { status, headers } = response
    const text = await readAnswer(path, response)
    const isJson = /^application\/json(;|$)/.test(headers.get('content-type') ?? '')
    const body = isJson ? JSON.parse(text) : text
    expect(contract.problemsOfAnswer(operation.method, path, { status, headers, body })).to.equal('')
    expect(status, text).to.be.lessThan(500)
    if (status !== 400 || operation.operation['x-dialect'] !== undefined) return // Another document has the rules of a dialect.
    const { param } = (body as { error: { param?: string } }).error
    expect(param, text).to.match(SEMANTIC[String(operation.operation['operationId'])] ?? /^nothing$/)
  }

  for (const operation of operationsOf(document)) {
    it(`${operation.method} ${operation.path} accepts them`, async () => {
      isPut = operation.method === 'GET'
      const isFixed = operation.parameters.length === 0 && !bodyOf(operation.operation)
      await fc.assert(
        fc.asyncProperty(requestsOf(operation), (sent) => check(operation, sent)),
        { numRuns: isFixed ? 1 : RUNS },
      )
    })
  }
})

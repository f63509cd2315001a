import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { bodyOf, type Operation, operationsOf } from '../platform/api/operations.ts'
import { apiDocument } from '../support/api-document.ts'
import { type Answer, type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { type Product, startStandalone } from '../support/product.ts'
import { TenantEvents } from '../support/tenant-events.ts'
import { until } from '../support/until.ts'

const document = await apiDocument()
const SESSION = 'support-7'
const FLOW = '/flows/invoice-total'
const SCHEDULE = '/plans/schedules/nightly'
const WEBHOOK = '/config/webhooks/ci'
const FILE = 'notes/a.txt'
const TOTAL = '{"total":120}'
const WRITE = '{"path":"notes/a.txt","content":"hello"}'

/** `product.call` and `product.stream` check that each answer is described; the tests that it is a good one. */
describe('the examples of the API description, sent to the standalone form', () => {
  let product: Product
  let provider: ModelServer
  let backend: Server

  before(async () => {
    const env = { MASTER_KEY: randomBytes(32).toString('base64'), ALLOW_PRIVATE_URLS: 'true' }
    product = await startStandalone(env)
    product.model.otherwise(() => 'fine')
    provider = await startModelServer()
    provider.otherwise(() => 'fine')
    provider.models = ['my-model']
    backend = createServer((req, res) => {
      req.resume().once('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end('{"text":"hello"}'))
    })
    backend.listen(0, '127.0.0.1')
    await once(backend, 'listening')
  })

  after(async () => {
    await product.close()
    await provider.close()
    backend.close()
    backend.closeAllConnections()
  })

  const instance = (url: string) => call('PUT', '/config/instances/main', { type: 'openai-compatible', url })

  /** An example that runs in the background would take the model's next answer. */
  const noRuns = () =>
    until(
      async () => {
        const { runs } = JSON.parse((await product.call('GET', '/runs?status=running')).text) as {
          runs: { run_id: string }[]
        }
        for (const { run_id } of runs) await product.call('DELETE', `/runs/${run_id}`)
        return runs.length === 0
      },
      { what: 'the runs of the examples before to end' },
    )

  /** Creates the things that an operation needs, and returns the path to call, and the body where the example's names something that it creates. */
  const prepare: Record<string, () => Promise<string | { path: string; body: unknown }>> = {
    createSession: async () => {
      await product.call('DELETE', `/sessions/${SESSION}`)
      return '/sessions'
    },
    getSession: session,
    updateSession: session,
    deleteSession: session,
    listMessages: async () => `${await session()}/messages`,
    sendMessage: async () => `${await session()}/messages`,
    forkSession: async () => {
      const { sessionPath, runId } = await withFile()
      await product.call('DELETE', '/sessions/support-8')
      return { path: `${sessionPath}/fork`, body: { ...(exampleOf('forkSession') as object), at: runId } }
    },
    listSessionFiles: async () => `${(await withFile()).sessionPath}/files`,
    readSessionFile: async () => `${(await withFile()).sessionPath}/files/content?path=${FILE}`,
    listRunFiles: async () => `/runs/${(await withFile()).runId}/files`,
    readRunFile: async () => `/runs/${(await withFile()).runId}/files/content?path=${FILE}`,
    answerToolCall: async () => {
      await noRuns()
      product.model.answer([{ tool: 'look_up', input: {} }])
      const tool = { name: 'look_up', description: 'Looks up', input_schema: { type: 'object' } }
      const stream = await product.run({ prompt: 'look', client_tools: [tool] })
      const { data } = await stream.until('tool_use')
      return `/runs/${stream.runId}/tool-calls/${String(data['id'])}`
    },
    steerRun: async () => `/runs/${(await asked()).runId}/steer`,
    forgetPermissions: async () => `/permissions/remembered?session_id=${(await session()).split('/').at(-1)}`,
    replyPermission: async () => {
      const { runId, id } = await asked()
      return `/sessions/${runId}/permissions/${id}`
    },
    getPermission: async () => `/permissions/${(await asked()).id}`,
    readCustomerLedger: async () => '/customers/c-42/ledger',
    getFile: file,
    readFile: async () => `${await file()}/content`,
    deleteFile: file,
    getRun: run,
    followRun: async () => `${await run()}/events`,
    cancelRun: run,
    getExplorerFile: async () => '/docs/swagger-ui.css',
    getFlow: flow,
    putFlow: async () => FLOW,
    deleteFlow: flow,
    checkFlow: async () => `${await flow()}/check`,
    publishFlow: async () => `${await flow()}/publish`,
    rollbackFlow: async () => `${await flow()}/rollback/1`,
    listFlowRevisions: async () => `${await flow()}/revisions`,
    listFlowMemory: async () => `${await flow()}/memory`,
    addFlowMemory: async () => `${await flow()}/memory`,
    deleteFlowMemory: async () => `${await flow()}/memory`,
    runFlow: async () => `${await published()}/run`,
    startBatch: async () => {
      const path = await published()
      provider.answer(TOTAL)
      return `${path}/batch`
    },
    getBatch: batch,
    readBatchResults: async () => `${await batch()}/results`,
    cancelBatch: async () => `${await batch({ hangBeforeHeaders: true })}/cancel`,
    evaluateFlow: async () => {
      await execution()
      provider.answer(TOTAL)
      return `${FLOW}/evaluate`
    },
    listFlowEvaluations: async () => `${await flow()}/evaluations`,
    getDispatch: async () => `/dispatches/${await execution()}`,
    replayDispatch: async () => `/dispatches/${await execution()}/events`,
    getPlan: plan,
    cancelPlan: async () => `${await plan()}/cancel`,
    retryPlan: async () => `${await failedPlan()}/retry`,
    followPlan: async () => {
      const path = await plan()
      await call('POST', `${path}/cancel`)
      return `${path}/events`
    },
    getPlanSchedule: schedule,
    putPlanSchedule: async () => SCHEDULE,
    deletePlanSchedule: schedule,
    runPlanSchedule: async () => `${await schedule()}/run`,
    getSecret: secret,
    putSecret: async () => '/config/secrets/team',
    deleteSecret: secret,
    getWebhook: webhook,
    putWebhook: async () => WEBHOOK,
    deleteWebhook: webhook,
    testWebhook: async () => `${await webhook()}/test`,
    listWebhookDeliveries: async () => `${await webhook()}/deliveries`,
    retryWebhookDelivery: async () => {
      await webhook()
      const { text } = await product.call('POST', `${WEBHOOK}/test`)
      const { id } = JSON.parse(text) as { id: string }
      await until(
        async () => {
          const { text: list } = await product.call('GET', `${WEBHOOK}/deliveries?status=delivered`)
          return list.includes(id)
        },
        { what: 'the test message to be delivered' },
      )
      return `${WEBHOOK}/deliveries/${id}/retry`
    },
    putEngineConfig: async () => {
      await instance(provider.url)
      return '/config/engine'
    },
    getInstance: configured,
    putInstance: async () => '/config/instances/main',
    deleteInstance: async () => {
      await call('PUT', '/config/engine', { routing: {} })
      return configured()
    },
    discoverModels: async () => `${await configured()}/discover`,
    probeModel: async () => `${await configured()}/probe`,
    getCapabilities: async () => `${await configured()}/capabilities`,
    transcribe: async () => {
      await instance(`http://127.0.0.1:${(backend.address() as AddressInfo).port}/v1`)
      return '/audio/transcriptions'
    },
  }

  async function call(method: string, path: string, body?: unknown): Promise<void> {
    const { status, text } = await product.call(method, path, body)
    expect(status, text).to.be.within(200, 299)
  }

  async function session(): Promise<string> {
    await product.call('DELETE', `/sessions/${SESSION}`)
    await call('POST', '/sessions', { session_id: SESSION })
    return `/sessions/${SESSION}`
  }

  /** A session whose run has a file in its folder. */
  async function withFile(): Promise<{ sessionPath: string; runId: string }> {
    const sessionPath = await session()
    await noRuns()
    product.model.answer([{ tool: 'Write', input: JSON.parse(WRITE) }])
    const stream = await product.stream(`${sessionPath}/messages`, { prompt: 'write' })
    const { data } = await stream.until('permission_request')
    await call('POST', `${sessionPath}/permissions/${String(data['id'])}`, { allow: true })
    await stream.all()
    return { sessionPath, runId: stream.runId }
  }

  /** A permission request that waits. */
  async function asked(): Promise<{ runId: string; id: string }> {
    await noRuns()
    product.model.answer([{ tool: 'Write', input: JSON.parse(WRITE) }])
    const stream = await product.run({ prompt: 'write' })
    const { data } = await stream.until('permission_request')
    return { runId: stream.runId, id: String(data['id']) }
  }

  async function run(): Promise<string> {
    const stream = await product.run({ prompt: 'hi' })
    await stream.all()
    return `/runs/${stream.runId}`
  }

  async function plan(): Promise<string> {
    const { status, text } = await product.call('POST', '/plans/submit', exampleOf('submitPlan'))
    expect(status, text).to.equal(202)
    return `/plans/${(JSON.parse(text) as { id: string }).id}`
  }

  async function failedPlan(): Promise<string> {
    product.model.answer({ status: 400, message: 'no' })
    const path = await plan()
    expect((await (await product.stream(`${path}/events`)).all()).at(-1)?.data).to.include({ status: 'failed' })
    return path
  }

  async function schedule(): Promise<string> {
    await call('PUT', SCHEDULE, exampleOf('putPlanSchedule'))
    return SCHEDULE
  }

  async function secret(): Promise<string> {
    await call('PUT', '/config/secrets/team', { value: 'sk-team-0123456789abcdef' })
    return '/config/secrets/team'
  }

  async function file(): Promise<string> {
    const { text } = await product.call('POST', '/files', formOf({ file: 'Hello' }))
    return `/files/${(JSON.parse(text) as { file_id: string }).file_id}`
  }

  async function webhook(): Promise<string> {
    const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/`
    await call('PUT', WEBHOOK, { ...(exampleOf('putWebhook') as object), url })
    return WEBHOOK
  }

  async function configured(): Promise<string> {
    await instance(provider.url)
    return '/config/instances/main'
  }

  /** A draft, with the example of its definition. */
  async function flow(): Promise<string> {
    await product.call('DELETE', FLOW)
    await call('PUT', FLOW, exampleOf('putFlow'))
    return FLOW
  }

  /** A flow that can run once, on the instance of the example. */
  async function published(): Promise<string> {
    await configured()
    await flow()
    await call('POST', `${FLOW}/publish`)
    provider.answer(TOTAL)
    return FLOW
  }

  async function batch(second: Answer = TOTAL): Promise<string> {
    const path = await published()
    provider.answer(second)
    const { status, text } = await product.call('POST', `${path}/batch`, exampleOf('startBatch'))
    expect(status, text).to.equal(202)
    return `/batches/${(JSON.parse(text) as { batch_id: string }).batch_id}`
  }

  async function execution(): Promise<string> {
    const { status, text, headers } = await product.call('POST', `${await published()}/run`, exampleOf('runFlow'))
    expect(status, text).to.equal(200)
    return headers.get('x-trace-id') ?? ''
  }

  async function send({ method, operation }: Operation, path: string, value: unknown): Promise<void> {
    const responses = Object.keys(operation['responses'] as object)
    const isStream = JSON.stringify((operation['responses'] as Record<string, unknown>)['200'] ?? '').includes(
      'EventStream',
    )
    if (operation['operationId'] === 'followEvents') {
      const live = await TenantEvents.open(product.url) // This stream has no end.
      live.leave()
    } else if (isStream) {
      const stream = await product.stream(path, value)
      expect((await stream.all()).at(-1)?.event).to.be.oneOf(['done', 'result', 'plan_ended'])
    } else {
      const { status, text } = await product.call(method, path, value)
      expect(status, text).to.be.within(200, 299)
      expect(responses).to.include(String(status))
    }
  }

  for (const operation of operationsOf(document)) {
    const { method, path, operation: node } = operation
    if (node['x-dialect'] !== undefined) continue // test/e2e/dialects has its clients.
    if (node['operationId'] === 'sendPart') continue // e2e/resumable-uploads.test.ts has a client of tus.
    const body = bodyOf(node)
    it(`${method} ${path} has an example for each body, and is answered well`, async () => {
      if (body) expect(body.examples).not.to.be.empty
      for (const value of body ? body.examples : [undefined]) {
        const ready = await (prepare[String(node['operationId'])]?.() ?? path)
        const { path: at, body: given } = typeof ready === 'string' ? { path: ready, body: value } : ready
        expect(at).not.to.include('{')
        await send(operation, at, body?.type === 'multipart/form-data' ? formOf(value as object) : given)
      }
    })
  }
})

/** The first example of an operation's body. */
function exampleOf(operationId: string): unknown {
  const found = operationsOf(document).find(({ operation }) => operation['operationId'] === operationId)
  return found && bodyOf(found.operation)?.examples[0]
}

function formOf(fields: object): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) {
    form.append(name, name === 'file' ? new Blob([String(value)]) : String(value))
  }
  return form
}

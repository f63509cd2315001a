import { type RequestOptions, request } from 'node:http'
import { createApp } from '../../../services/gateway/app.ts'
import { createServer } from '../../../services/http/server.ts'
import { createProvider } from '../../../services/wiring/models/create-provider.ts'
import { run } from '../../../shared/agent/engine/run.ts'
import { taskInput } from '../../../shared/agent/engine/run-input.ts'
import type { ToolBox } from '../../../shared/agent/tools/port.ts'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import { CursorStream } from '../../../shared/cluster/journal/cursor-stream.ts'
import { Journal } from '../../../shared/cluster/journal/journal.ts'
import { createMemoryBroker } from '../../../shared/cluster/memory.ts'
import { createMemoryPermissionStore } from '../../../shared/cluster/permissions/memory-store.ts'
import { eachOf } from '../../../shared/kernel/async/batch.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { newRunId } from '../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { nodeHttp } from '../../../shared/platform/net/node-http.ts'
import { createServerModels, type ServerModels } from '../../../shared/work/runs/models.ts'
import { appDeps } from '../../../test/support/app-defaults.ts'
import { createDemoWorker } from '../../../test/support/demo-worker.ts'
import { newBudget } from '../../../test/support/journal-budget.ts'
import { SILENT_LOG } from '../../../test/support/silent-log.ts'

/**
 * One step of the ladder as a process that listens on PORT: the gateway's HTTP application, and the parts of the product up to STEP behind
 * it. Each step has one part more than the one before.
 */
type StepName = 'http' | 'provider' | 'engine' | 'runs'

const baseUrl = process.env['MODEL_BASE_URL'] ?? ''
const provider = await createProvider({ type: 'openai-compatible', baseUrl })
const models: ServerModels = {
  primary: { provider, model: 'bench' },
  fallback: undefined,
  priceOf: () => 0,
  windowOf: () => undefined,
}
const DONE: AgentEvent = {
  type: 'done',
  ...{ total_input_tokens: 0, total_output_tokens: 0, total_tokens: 0, cost_usd: 0, turn_count: 1 },
  stop_reason: 'end_turn',
}

type Produce = (prompt: string, append: (event: AgentEvent) => void) => Promise<void>

/** Each appends the events of a run to its journal. */
const PRODUCERS: Record<Exclude<StepName, 'runs'>, Produce> = {
  /** As the bare gateway asks the provider and reads its answer. */
  http: (prompt, append) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content: prompt }] })
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const options: RequestOptions = { method: 'POST', agent, headers }
      const req = request(`${baseUrl}/chat/completions`, options, (upstream) => {
        let rest = ''
        upstream.setEncoding('utf8').on('data', (chunk: string) => {
          const lines = (rest + chunk).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) {
            if (!line.startsWith('data: {')) continue
            const text = JSON.parse(line.slice(6)).choices[0]?.delta.content
            if (text) append({ type: 'text_delta', text })
          }
        })
        upstream.on('end', () => resolve(append(DONE)))
      })
      req.on('error', reject).end(body)
    }),

  async provider(prompt, append) {
    const asked = {
      model: 'bench',
      messages: [{ role: 'user', text: prompt } as const],
      tools: [],
      stopSequences: [],
    }
    for await (const parts of provider.stream(asked, new AbortController().signal))
      for (const part of eachOf(parts)) if (part.type === 'text_delta') append(part)
    append(DONE)
  },

  async engine(prompt, append) {
    const resources = {
      models: createServerModels(models).modelsFor(DEFAULT_TENANT, undefined),
      tools: {
        ...{ toolBox, services: {}, owner: { tenant: DEFAULT_TENANT, scope: 'none' }, maxOutputChars: 1 },
        ...{ workspace: () => '', canAct: async () => true, mayAct: () => true, onToolBug: () => {} },
      },
      permissions: { openAsk: () => Promise.reject(new Error('no tools')) },
      signal: new AbortController().signal,
    }
    const input = taskInput({ prompt, systemPrompt: undefined, maxTurns: 8 })
    for await (const events of run(input, resources)) for (const event of eachOf(events)) append(event)
  },
}
const toolBox: ToolBox = {
  tools: [],
  find: () => undefined,
  policyOf: () => 'deny',
  problemWith: async () => undefined,
}
const agent = new nodeHttp.Agent({ keepAlive: true })

const step = process.env['STEP'] as StepName
const broker = step === 'runs' ? runsBroker() : bareBroker(PRODUCERS[step])
const app = createApp(appDeps({ broker, log: SILENT_LOG, hasExplorer: false, dialects: [] }))
await createServer(app).listen(Number(process.env['PORT']), '127.0.0.1')

/** A run is a journal and the stream that reads it. */
function bareBroker(produce: Produce): Broker {
  const budget = newBudget(Number.POSITIVE_INFINITY)
  const startRun: Broker['startRun'] = async (_tenant, { prompt }) => {
    const journal = new Journal(budget)
    const frames = new CursorStream(journal.follow(0))
    void produce(prompt, (event) => journal.append(event))
    return { runId: newRunId(), frames }
  }
  return { startRun } as Broker
}

/** The worker with its runs, without a store. */
function runsBroker(): Broker {
  const permissions = createMemoryPermissionStore()
  const limits = { runsPerWorker: 2_000, runsPerTenant: 2_000, runResumeMs: 30_000 }
  const deps = { models: createServerModels(models), toolBox }
  return createMemoryBroker(createDemoWorker(permissions, limits, deps).inbox, permissions)
}

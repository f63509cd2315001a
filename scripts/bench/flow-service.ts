import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from './bench.ts'
import { Client } from './client.ts'
import { GATEWAY } from './dialect.ts'

/** A product that runs flows. */
export type FlowTarget = { port: number; basePath: string }

/** The product and its provider, with a client each. */
export type FlowService = Disposable & {
  /** Sends the provider the request of an agent, and reads the answer. */
  direct(): Promise<void>
  /** Runs the flow with this many sub-agents. Throws unless its output is valid. */
  run(subAgents: number): Promise<void>
  /** Sets the limits of the tenant, and resolves when every process has them. */
  limit(limits: object): Promise<void>
  /** The same as a stream of events. */
  stream(subAgents: number): Promise<void>
  /** The same as a tool of the MCP server, with its progress. */
  callTool(subAgents: number): Promise<void>
}

/** Time that the provider takes for the answer of a sub-agent. The main agent's comes at once. */
export const SUB_AGENT_MS = 200
const READY_WITHIN_MS = 10_000
const RETRY_MS = 50
/** Every process has new limits within two seconds (D11.1). */
const LIMITS_MS = 2_500

const TEXT = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
const ANSWER = { type: 'object', properties: { answer: { enum: ['yes', 'no'] } }, required: ['answer'] }
const INPUT = { text: 'Is this sentence about weather? '.repeat(20) }

const definitionOf = (subAgents: number): object => ({
  model: 'bench',
  input_schema: TEXT,
  output_schema: ANSWER,
  system_prompt_template: 'Decide whether the text is about weather.',
  sub_agents: Array.from({ length: subAgents }, (_, i) => ({
    name: `agent_${i}`,
    prompt: 'Decide whether the text is about weather.',
    output_schema: ANSWER,
    provider_instance: 'slow',
  })),
})

/** Configures the provider at `target` and publishes a flow for each number of sub-agents. Resolves when each of them has run. */
export async function openFlowService(
  { port, basePath }: FlowTarget,
  { bench, counts }: { bench: Bench; counts: readonly number[] },
): Promise<FlowService> {
  const provider = await bench.jsonProvider()
  const send = sender({ url: `http://127.0.0.1:${port}${basePath}`, signal: bench.signal })
  await configure(send, provider.port, counts)
  const ours = new Client({ port, dialect: GATEWAY }, bench.signal)
  const direct = new Client(provider, bench.signal)
  const run = async (subAgents: number) => {
    const body = { input: INPUT, provider_instance: 'fast' }
    const answer = await ours.text(`${basePath}/flows/${nameOf(subAgents)}/run`, body)
    if (!answer.includes('"verdict":"ok"')) throw new Error(`a flow answered ${answer.slice(0, 200)}`)
  }
  for (const count of counts) await repeated(() => run(count))
  return {
    run,
    async limit(limits) {
      await send('PUT', '/config/limits', limits)
      await sleep(LIMITS_MS, undefined, { signal: bench.signal })
    },
    async stream(subAgents) {
      const body = { input: INPUT, provider_instance: 'fast' }
      const headers = { accept: 'text/event-stream' }
      const answer = await ours.text(`${basePath}/flows/${nameOf(subAgents)}/run`, body, headers)
      if (!answer.includes('"verdict":"ok"')) throw new Error(`a flow answered ${answer.slice(-200)}`)
    },
    async callTool(subAgents) {
      const params = { name: nameOf(subAgents), arguments: INPUT, _meta: { progressToken: 1 } }
      const request = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
      const answer = await ours.text(`${basePath}/mcp`, request, { accept: 'application/json, text/event-stream' })
      if (!answer.includes('"structuredContent":{"answer"')) throw new Error(`a tool answered ${answer.slice(0, 200)}`)
    },
    async direct() {
      const messages = [{ role: 'user', content: JSON.stringify(INPUT) }]
      await direct.text(`${pathOf(0)}/chat/completions`, { model: 'bench', stream: true, messages })
    },
    [Symbol.dispose]() {
      ours[Symbol.dispose]()
      direct[Symbol.dispose]()
    },
  }
}

const nameOf = (subAgents: number): string => `bench-${subAgents}`
const pathOf = (ms: number): string => `/after-${ms}/v1`

async function configure(send: Send, providerPort: number, counts: readonly number[]): Promise<void> {
  for (const [name, ms] of [['fast', 0] as const, ['slow', SUB_AGENT_MS] as const]) {
    const url = `http://127.0.0.1:${providerPort}${pathOf(ms)}`
    await send('PUT', `/config/instances/${name}`, { type: 'openai-compatible', url })
  }
  await send('PUT', '/config/engine', { routing: { main: { instance: 'fast', model: 'bench' } } })
  for (const count of counts) {
    await send('PUT', `/flows/${nameOf(count)}`, definitionOf(count))
    await repeated(() => send('POST', `/flows/${nameOf(count)}/publish`, {}))
  }
}

type Send = (method: 'PUT' | 'POST', path: string, body: object) => Promise<void>

const sender =
  ({ url, signal }: { url: string; signal: AbortSignal }): Send =>
  async (method, path, body) => {
    const headers = { 'content-type': 'application/json' }
    const init = { method, headers, body: JSON.stringify(body), signal }
    const res = await fetch(url + path, init)
    if (!res.ok) throw new Error(`${path} answered ${res.status}: ${(await res.text()).slice(0, 200)}`)
  }

/**
 * Repeats a request that is refused for a short time: a gateway runs flows when it knows an executor, and on a busy machine the first compilation of a
 * schema may take longer than a flow's may.
 */
async function repeated(request: () => Promise<void>): Promise<void> {
  for (const deadline = performance.now() + READY_WITHIN_MS; ; await sleep(RETRY_MS)) {
    try {
      return await request()
    } catch (cause) {
      if (performance.now() > deadline) throw cause
    }
  }
}

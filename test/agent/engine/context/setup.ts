import type { Account } from '../../../../shared/agent/engine/account.ts'
import { CallCount } from '../../../../shared/agent/engine/call-count.ts'
import { Conversation } from '../../../../shared/agent/engine/conversation.ts'
import type { Models, RunResources } from '../../../../shared/agent/engine/resources.ts'
import { run } from '../../../../shared/agent/engine/run.ts'
import type { RunInput } from '../../../../shared/agent/engine/run-input.ts'
import { failure } from '../../../../shared/agent/providers/failures/failures.ts'
import type {
  Message,
  ModelPart,
  ModelProvider,
  ModelRequest,
  ModelRoute,
  Usage,
} from '../../../../shared/agent/providers/port.ts'
import { succeed, type Tool } from '../../../../shared/agent/tools/port.ts'
import { oneByOne } from '../../../../shared/kernel/async/batch.ts'
import type { Attachment } from '../../../../shared/kernel/attachment.ts'
import type { AgentEvent, DoneEvent, WarningEvent } from '../../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'

export const user = (text: string): Message => ({ role: 'user', text })
export const says = (text: string): Message => ({ role: 'assistant', blocks: [{ type: 'text', text }] })
export const calls = (id: string): Message => ({
  role: 'assistant',
  blocks: [{ type: 'tool_use', id, toolName: 'Dig', input: {} }],
})
export const gives = (id: string, output: string): Message => ({
  role: 'tool',
  results: [{ id, toolName: 'Dig', output, isError: false }],
})

/** As `gives`, with this many attached files. */
export const givesFiles = (id: string, output: string, count: number): Message => ({
  role: 'tool',
  results: [{ id, toolName: 'Dig', output, isError: false, attachments: Array.from({ length: count }, () => PNG) }],
})

const PNG: Attachment = { name: 'a.png', mediaType: 'image/png', base64: 'AA==' }

/** A conversation of `count` prompts with their answers, 2,000 characters a pair. */
export const talk = (count: number): Message[] =>
  Array.from({ length: count }, (_, i) => [
    user(`prompt ${i} `.padEnd(1_000, 'p')),
    says(`answer ${i} `.padEnd(1_000, 'a')),
  ]).flat()

export const USAGE: Usage = { input: 100, cacheRead: 0, cacheWrite: 0, output: 10 }

export const says200 = (text: string, usage = USAGE): ModelPart[] => [
  { type: 'text_delta', text },
  { type: 'text_end' },
  { type: 'finish', reason: 'end_turn', usage },
]

export const digs = (id: string, usage = USAGE): ModelPart[] => [
  { type: 'tool_call', id, toolName: 'Dig', input: '{}' },
  { type: 'finish', reason: 'tool_use', usage },
]

export const TOO_LONG: ModelPart[] = [
  { type: 'failure', failure: failure('context_too_long', 'context_too_long', 'the conversation is too long for m') },
]

type Answer = ModelPart[] | ((signal: AbortSignal) => ModelPart[])

/** Creates a provider that answers each request with the next list of parts, and records the requests. */
export function scripted(...answers: Answer[]): ModelProvider & { requests: ModelRequest[] } {
  const requests: ModelRequest[] = []
  async function* stream(request: ModelRequest, signal: AbortSignal) {
    requests.push(request)
    const answer = answers[requests.length - 1] ?? says200('ok')
    const parts = typeof answer === 'function' ? answer(signal) : answer
    if (!signal.aborted) yield* parts
  }
  return { type: 'scripted', requests, stream }
}

type Spent = { usage: Usage; route: ModelRoute }

/** Tells what each call that is no turn has used. */
export const accountOf = (onSpent: (spent: Spent) => void): Pick<Account, 'sideCall'> => ({
  sideCall({ primary, request }) {
    const count = new CallCount()
    let route = primary
    return {
      note(part) {
        if (part.type === 'served_by') route = part.route
        count.note(part)
      },
      end() {
        const usage = count.usageOf(request)
        if (usage) onSpent({ usage, route })
      },
    }
  },
})

/** Recognises a request for a summary by its system prompt. */
export const asksForSummary = ({ system = '' }: ModelRequest) => system.includes('shorten the conversation')

export const textOf = (message: Message | undefined): string => (message?.role === 'user' ? message.text : '')

type Setup = Partial<Omit<RunInput, 'output'>> &
  Pick<RunResources, 'steering'> &
  Partial<Pick<Models, 'windowOf' | 'subAgents' | 'priceOf'>> & { fallback?: ModelRoute } & {
    messages?: Message[]
    output?: string
    dig?: Tool['run']
    signal?: AbortSignal
  }

export const inputOf = (input: Partial<RunInput>): RunInput => ({
  prompt: 'and now?',
  conversation: new Conversation(),
  systemPrompt: undefined,
  background: undefined,
  maxTurns: 8,
  stopSequences: [],
  warnings: [],
  ...input,
})

/** Runs to the end. The one tool, `Dig`, returns `output`, or is `dig`. */
export async function play(provider: ModelProvider, setup: Setup) {
  const { messages = [], output = '', dig, fallback, windowOf = () => undefined, signal, steering, ...others } = setup
  const conversation = setup.conversation ?? new Conversation({ messages })
  const events: AgentEvent[] = []
  const route = () => ({ primary: { provider, model: 'm' }, fallback })
  const { subAgents = route, priceOf = sumOf, ...input } = others
  const models = { main: route, subAgents, summaries: route, windowOf, priceOf }
  const resources = resourcesOf(models, output, dig)
  const running = run(inputOf({ ...input, conversation }), {
    ...resources,
    steering,
    signal: signal ?? new AbortController().signal,
  })
  for await (const event of oneByOne(running)) events.push(event)
  const warnings = events.filter((event): event is WarningEvent => event.type === 'warning')
  const done = events.find((event): event is DoneEvent => event.type === 'done')
  return { events, warnings, done, last: events.at(-1), conversation, types: events.map(({ type }) => type) }
}

/** A price of one dollar a token. */
const sumOf: Models['priceOf'] = (_type, _model, usage) => usage.input + usage.output

export function resourcesOf(
  models: Models,
  output: string,
  dig: Tool['run'] = async () => succeed(output),
): Omit<RunResources, 'signal'> {
  const tool: Tool = {
    name: 'Dig',
    description: 'digs',
    inputSchema: {},
    defaultPolicy: 'allow',
    describe: () => 'Dig wants to run',
    run: dig,
  }
  return {
    models,
    tools: {
      toolBox: { tools: [tool], find: () => tool, policyOf: () => 'allow', problemWith: async () => undefined },
      services: {},
      owner: { tenant: DEFAULT_TENANT, scope: 'run' },
      workspace: () => '/nowhere',
      canAct: async () => true,
      mayAct: () => true,
      maxOutputChars: 100_000,
      onToolBug: () => {},
    },
    permissions: { openAsk: () => Promise.reject(new Error('no tool of this test asks')) },
  }
}

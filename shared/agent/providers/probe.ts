import { oneByOne } from '../../kernel/async/batch.ts'
import { AppError } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject, parseJson } from '../../kernel/json.ts'
import type { Failure, ModelPart, ModelProvider, ModelRequest } from './port.ts'

export type ProbedCapabilities = Record<'streaming' | 'tools' | 'structured_output' | 'thinking' | 'vision', boolean>

export type ProbeResult = { capabilities: ProbedCapabilities; latencyMs: number }

/** Providers of one instance: one as it is configured, one that asks for reasoning. */
export type ProbedProviders = { plain: ModelProvider; reasoning: ModelProvider }

/**
 * Finds out with small requests what a model can do, unless its server reports it. If the provider rejects a request the model lacks that ability;
 * any other failure is inconclusive, and thrown as `upstream`. Aborting `signal` ends it.
 */
export async function probeModel(
  { plain, reasoning }: ProbedProviders,
  model: string,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const startedAt = performance.now()
  const first = await answerOf(plain, { model, ...HELLO }, signal)
  if (first.failure) throw failed(first.failure)
  const latencyMs = Math.round((first.firstPartAt ?? performance.now()) - startedAt)
  const ask = async (provider: ModelProvider, request: Question, shows: (answer: Answer) => boolean) => {
    const answer = await answerOf(provider, { model, ...request }, signal)
    if (!answer.failure) return shows(answer)
    const { code, reason } = answer.failure
    if (code === 'provider_rejected' || reason === 'empty_answer') return false
    throw failed(answer.failure)
  }
  const told = await plain.askCapabilities?.(model, signal)
  const toldOr = (name: string, guess: () => Promise<boolean>) => (told ? told.includes(name) : guess())
  const [tools, structured_output, thinking, vision] = await Promise.all([
    toldOr('tools', () => ask(plain, CALL_A_TOOL, ({ toolNames }) => toolNames.includes(TOOL_NAME))),
    ask(plain, STRUCTURED, ({ text }) => isStructured(text)),
    toldOr('thinking', () => ask(reasoning, REASON, ({ hasThinking }) => hasThinking)),
    toldOr('vision', () => ask(plain, LOOK, ({ text }) => /red/i.test(text))),
  ])
  const streaming = first.textDeltas > 0
  return { capabilities: { streaming, tools, structured_output, thinking, vision }, latencyMs }
}

type Question = Omit<ModelRequest, 'model'>

const TOOL_NAME = 'report_number'

const question = (text: string, more: Partial<Question> = {}): Question => ({
  messages: [{ role: 'user', text }],
  tools: [],
  stopSequences: [],
  ...more,
})

const HELLO = question('Reply with the single word: ok')

const NUMBER_SCHEMA: JsonObject = {
  type: 'object',
  properties: { number: { type: 'integer' } },
  required: ['number'],
  additionalProperties: false,
}

const CALL_A_TOOL = question(`Call the tool ${TOOL_NAME} with the number 7. Do not answer in text.`, {
  tools: [{ name: TOOL_NAME, description: 'Reports a number.', inputSchema: NUMBER_SCHEMA }],
})

const STRUCTURED = question('Give the number seven.', { output: { name: 'number', schema: NUMBER_SCHEMA } })

const REASON = question('How many of the letters in "strawberry" are an r? Think first.')

/** 8 by 8 pixels, all of them red. */
const RED_PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mP4z8CAFTEMLQkAKP8/wc53yE8AAAAASUVORK5CYII='

const LOOK: Question = {
  messages: [
    {
      role: 'user',
      text: 'Which colour has this image? Answer with one word.',
      attachments: [{ name: 'red.png', mediaType: 'image/png', base64: RED_PNG }],
    },
  ],
  tools: [],
  stopSequences: [],
}

type Answer = {
  text: string
  textDeltas: number
  hasThinking: boolean
  toolNames: string[]
  firstPartAt: number | undefined
  failure: Failure | undefined
}

async function answerOf(provider: ModelProvider, request: ModelRequest, signal: AbortSignal): Promise<Answer> {
  const answer: Answer = {
    text: '',
    textDeltas: 0,
    hasThinking: false,
    toolNames: [],
    firstPartAt: undefined,
    failure: undefined,
  }
  for await (const part of oneByOne(provider.stream(request, signal))) take(part, answer)
  signal.throwIfAborted()
  return answer
}

function take(part: ModelPart, answer: Answer): void {
  if (part.type === 'failure') answer.failure = part.failure
  else answer.firstPartAt ??= performance.now()
  if (part.type === 'text_delta') {
    answer.text += part.text
    answer.textDeltas += 1
  }
  if (part.type === 'thinking_delta') answer.hasThinking = true
  if (part.type === 'tool_call') answer.toolNames.push(part.toolName)
}

function isStructured(text: string): boolean {
  const value = parseJson(text)
  return isJsonObject(value) && Number.isInteger(value['number'])
}

const failed = ({ message }: Failure) => new AppError('upstream', `the probe failed: ${message}`)

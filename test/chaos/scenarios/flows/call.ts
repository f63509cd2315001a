import { isJsonObject, parseJson } from '../../../../shared/kernel/json.ts'
import { now } from '../../history.ts'
import { type SseFrame, SseReader } from '../../sse-reader.ts'
import type { EchoInput } from './model.ts'
import { FLOW_PATH, INSTANCE } from './setup.ts'

export type FlowCall = {
  url: string
  /** The name of the gateway. */
  gateway: string
  input: EchoInput
  key?: string
  isStream: boolean
  headers?: Readonly<Record<string, string>>
}

export type FlowAnswer = FlowCall & {
  /** HTTP status, or the equivalent one of a stream's `error`. 0: the connection broke, or nothing came in time. */
  status: number
  code: string | undefined
  /** Of a failure. */
  message: string | undefined
  traceId: string
  output: unknown
  isReplayed: boolean
  /** Rules that the stream breaks. */
  problems: string[]
  from: number
  to: number
}

type Result = Pick<FlowAnswer, 'status' | 'code' | 'message' | 'traceId' | 'output' | 'problems'>

/** Longer than an execution may wait for an executor. */
const ANSWER_WITHIN_MS = 60_000
const NOTHING: Result = { status: 0, code: undefined, message: undefined, traceId: '', output: undefined, problems: [] }

/** Runs the flow and reads the answer to its end. Never throws. */
export async function callFlow(call: FlowCall): Promise<FlowAnswer> {
  const { url, input, key, isStream, headers = {} } = call
  const from = now()
  let isReplayed = false
  const result = await (async () => {
    const response = await fetch(`${url}${FLOW_PATH}/run`, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        ...(isStream && { accept: 'text/event-stream' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      body: JSON.stringify({ input, provider_instance: INSTANCE }),
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    isReplayed = response.headers.get('idempotency-replayed') === 'true'
    const isEvents = response.headers.get('content-type') === 'text/event-stream'
    return isEvents ? readStream(response) : readJson(response)
  })().catch(() => NOTHING)
  return { ...call, ...result, isReplayed, from, to: now() }
}

async function readJson(response: Response): Promise<Result> {
  const body = parseJson(await response.text())
  const { error, output } = isJsonObject(body) ? body : {}
  const { code, message } = isJsonObject(error) ? error : {}
  return {
    ...NOTHING,
    status: response.status,
    code: textOf(code),
    message: textOf(message),
    ...traceOf(response),
    output,
  }
}

const traceOf = ({ headers }: Response) => ({ traceId: headers.get('x-trace-id') ?? '' })
const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)

async function readStream(response: Response): Promise<Result> {
  const reader = new SseReader()
  const frames: SseFrame[] = []
  for await (const bytes of response.body ?? []) frames.push(...reader.take(bytes))
  const last = frames.at(-1)
  const { output, code, error, status } = last?.data ?? {}
  const common = { ...NOTHING, ...traceOf(response), problems: problemsOf(frames) }
  if (last?.event === 'result') return { ...common, status: 200, output }
  // An error without a status is the gateway's own: the execution may go on.
  const equivalent = typeof status === 'number' ? status : 503
  return { ...common, status: equivalent, code: textOf(code), message: textOf(error) }
}

const TERMINAL = new Set(['result', 'error'])

type Numbered = Pick<SseFrame, 'seq' | 'event'> & { data?: SseFrame['data'] }

/**
 * The numbers rise by one, except where a run begins anew (D34.2), only the terminal frame may repeat the last one, and nothing but the last frame is
 * terminal (D4.2).
 */
export function problemsOf(frames: readonly Numbered[]): string[] {
  const problems: string[] = []
  let last = 0
  for (const [at, { seq, event }] of frames.entries()) {
    const isLast = at === frames.length - 1
    if (TERMINAL.has(event) !== isLast) problems.push(`${event} is frame ${at + 1} of ${frames.length}`)
    const isAnew = seq > last && frames.slice(at, at + 2).some((frame) => frame.data?.['code'] === 'run_recovered')
    if (seq !== last + 1 && !(isLast && seq === last) && !isAnew) problems.push(`frame ${seq} follows ${last}`)
    last = seq
  }
  if (frames.length === 0) problems.push('no frame')
  return problems
}

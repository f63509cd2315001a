type Frame = { id: number; event: string; data: Record<string, unknown> }

const TERMINAL = new Set(['done', 'error', 'plan_queued', 'result', 'plan_ended'])

/** Codes of terminal frames that the gateway makes itself: they repeat the last number (D4.2). A draining worker's has its own. */
const READER_FAILURES = new Set(['worker_lost', 'worker_draining', 'relay_unavailable', 'stream_gap', 'slow_consumer'])

/** Less than the numbers that a worker reserves at once, and more than a stream of these tests can lose otherwise. */
const LONG_JUMP = 1_000

/** Checks a whole stream against api.md "Events" and D4.2–D4.4. Throws with all problems. */
export function checkStream(frames: readonly Frame[], { isRecorded = false } = {}): void {
  const wrong = isRecorded ? [] : problemsOfNumbers(frames)
  const isRecovered = frames.some(isRecovery)
  const valid = isRecovered ? withoutVoid(frames) : frames
  wrong.push(...problemsOfEnd(valid), ...problemsOfTurns(valid))
  // The beginning of a resumed stream is unknown, so its blocks and calls cannot be checked.
  if (frames[0]?.id === 1) {
    // Turns that another worker had made are replayed without deltas.
    if (!isRecorded && !isRecovered) wrong.push(...problemsOfBlocks(valid))
    wrong.push(...problemsOfTools(valid), ...problemsOfAsks(valid, endsRun(frames)))
    wrong.push(...problemsOfSubAgents(valid))
    wrong.push(...problemsOfFlow(valid), ...problemsOfPlan(valid))
  }
  if (wrong.length > 0) throw new Error(`the stream breaks the grammar: ${wrong.join('; ')}`)
}

const isRecovery = ({ data }: Frame): boolean => data['code'] === 'run_recovered'

/** What counts: the warning `run_recovered` makes all void that came of its turn before (D32.7a). Numbered from the first on, without gaps. */
function withoutVoid(frames: readonly Frame[]): Frame[] {
  let valid: Frame[] = []
  for (const frame of frames) {
    if (isRecovery(frame)) {
      const { turn_number: turn } = frame.data['detail'] as { turn_number: number }
      const start = valid.findIndex(({ event, data }) => event === 'turn_start' && Number(data['turn_number']) >= turn)
      if (start >= 0) valid = valid.slice(0, start)
      if (valid.some(({ event }) => event === 'started')) valid = [] // A flow begins anew with its `started` (D34.2).
    } else valid.push(frame)
  }
  const first = valid[0]?.id ?? 1
  return valid.map((frame, i) => ({ ...frame, id: first + i }))
}

function problemsOfNumbers(frames: readonly Frame[]): string[] {
  return frames.flatMap((frame, i) => {
    const last = frames[i - 1]
    const isNotice = frame.id === 0 && last?.id === 0 // What a reader is told before the first event (D39.2, D54.3).
    if (!last || isNotice || READER_FAILURES.has(String(frame.data['code'])) || frame.id === last.id + 1) return []
    const isCancelled = frame.data['code'] === 'cancelled' && i === frames.length - 1
    // So does the end of a run that was cancelled while it waited to begin anew (D34.2).
    if (isCancelled && frame.id === last.id) return []
    // A run that was cancelled in its pause ends without the warning, above the numbers that were reserved (D32.7a).
    if (isCancelled && frame.id > last.id + LONG_JUMP) return []
    // Numbers that the worker which died has reserved are left out, and those of deltas that it has sent.
    if (frame.id > last.id && frames.slice(i).some(isRecovery)) return []
    if (frame.id > last.id && isOfEarlierTurn(frames.slice(0, i))) return []
    return [`frame ${frame.id} follows frame ${last.id}`]
  })
}

/**
 * Behind a warning that names a later turn the turns before that come without their deltas (D32.7a), also when the warning of an earlier move of the
 * run is among them.
 */
function isOfEarlierTurn(before: readonly Frame[]): boolean {
  const named = before.filter(isRecovery).map(({ data }) => (data['detail'] as { turn_number: number }).turn_number)
  const present = before.findLast(({ event }) => event === 'turn_start')?.data['turn_number'] ?? 0
  return Math.max(...named) > Number(present)
}

function problemsOfEnd(frames: readonly Frame[]): string[] {
  const terminals = frames.filter(({ event }) => TERMINAL.has(event)).length
  if (frames.length === 0) return []
  if (terminals === 1 && TERMINAL.has(frames.at(-1)?.event ?? '')) return []
  return [`${terminals} terminal events, the last frame is ${frames.at(-1)?.event}`]
}

function problemsOfTurns(frames: readonly Frame[]): string[] {
  const problems: string[] = []
  let open: unknown
  for (const { event, data } of frames) {
    if (event === 'turn_start') {
      if (open !== undefined) problems.push(`turn ${data['turn_number']} starts within turn ${open}`)
      open = data['turn_number']
    }
    if (event !== 'turn_end') continue
    if (open !== undefined && open !== data['turn_number'])
      problems.push(`turn ${data['turn_number']} ends within turn ${open}`)
    open = undefined
  }
  if (open !== undefined && frames.at(-1)?.event === 'done') problems.push(`turn ${open} never ends`)
  return problems
}

/** Each block is its deltas, then an event with the whole text. */
function problemsOfBlocks(frames: readonly Frame[]): string[] {
  const problems: string[] = []
  for (const kind of ['text', 'thinking']) {
    let deltas = ''
    for (const { id, event, data } of frames) {
      if (event === `${kind}_delta`) deltas += data['text']
      if (event !== kind) continue
      if (data['text'] !== deltas) problems.push(`${kind} block ${id} is not its deltas`)
      deltas = ''
    }
    if (deltas !== '' && frames.at(-1)?.event === 'done') problems.push(`${kind} deltas without their block`)
  }
  return problems
}

/** A flow begins once, before everything else, and counts the turns of each agent from 1 (api.md "Named flows" 7). */
function problemsOfFlow(frames: readonly Frame[]): string[] {
  const problems: string[] = []
  const turns = new Map<unknown, number>()
  const isFlow = frames.some(({ event }) => event === 'started' || event === 'progress' || event === 'result')
  for (const [i, { id, event, data }] of frames.entries()) {
    if (isFlow && (event === 'started') !== (i === 0)) problems.push(`frame ${id} of a flow is ${event}`)
    if (event !== 'progress') continue
    const turn = (turns.get(data['agent']) ?? 0) + 1
    turns.set(data['agent'], turn)
    if (data['turn_number'] !== turn)
      problems.push(`turn ${data['turn_number']} of ${data['agent']} is its turn ${turn}`)
  }
  return problems
}

const OF_PLANS = new Set(['plan_started', 'step_started', 'step_ended', 'plan_ended'])

/** A plan begins once, before its steps. A step ends once, a skipped one without a start, and all have ended before the plan has. */
function problemsOfPlan(frames: readonly Frame[]): string[] {
  const problems: string[] = []
  const ended = new Set<unknown>()
  const open = new Set<unknown>()
  for (const [i, { id, event, data }] of frames.filter((frame) => OF_PLANS.has(frame.event)).entries()) {
    const step = data['step_id']
    if (event === 'plan_started' && i > 0) problems.push(`frame ${id} of a plan is plan_started`)
    if (event === 'step_started') open.add(step)
    if (event === 'plan_ended' && open.size > 0) problems.push(`${open.size} steps never end`)
    if (event !== 'step_ended') continue
    if (ended.has(step)) problems.push(`step ${step} ends twice`)
    if (data['status'] !== 'skipped' && !open.has(step)) problems.push(`step ${step} ends before it starts`)
    ended.add(step)
    open.delete(step)
  }
  return problems
}

const OF_ASKS = new Set(['permission_request', 'permission_resolved'])
const AFTER_USE = new Set(['tool_progress', 'tool_result'])

/** A call is tool_use, permission_request and permission_resolved if it asks, any tool_progress, then exactly one tool_result before the turn ends. */
function problemsOfTools(frames: readonly Frame[]): string[] {
  const problems: string[] = []
  const childrensAsks = new Set(
    frames.filter(({ data }) => data['event_type'] === 'permission_request').map(({ data }) => data['id']),
  )
  const open = new Map<unknown, unknown>()
  for (const { id, event, data } of frames) {
    if (event === 'tool_use') {
      if (open.has(data['id'])) problems.push(`tool call ${data['id']} is used twice`)
      open.set(data['id'], data['tool_name'])
    }
    if (AFTER_USE.has(event) && !open.has(data['id'])) problems.push(`${event} ${id} has no open tool_use`)
    if (event === 'tool_result') open.delete(data['id'])
    const isAsk = OF_ASKS.has(event) && !childrensAsks.has(data['id'])
    if (isAsk && open.get(data['tool_use_id']) !== data['tool_name'])
      problems.push(`${event} ${id} is of no open tool_use`)
    if (event === 'turn_end' && open.size > 0) problems.push(`turn ends with ${open.size} open tool calls`)
  }
  return problems
}

/** Each permission request is resolved exactly once, before the result of its call, and before the run ends (D37.1). */
function problemsOfAsks(frames: readonly Frame[], isRunOver: boolean): string[] {
  const problems: string[] = []
  const open = new Map<unknown, unknown>()
  for (const { id, event, data } of frames) {
    if (event === 'permission_request') open.set(data['id'], data['tool_use_id'])
    if (event === 'permission_resolved' && !open.delete(data['id']))
      problems.push(`permission_resolved ${id} is of no open request`)
    if (event === 'tool_result' && [...open.values()].includes(data['id']))
      problems.push(`tool_result ${id} comes before the decision of its permission request`)
  }
  if (open.size > 0 && isRunOver) problems.push(`${open.size} permission requests are open at the end of the run`)
  return problems
}

/** Whether the last frame is the end of the run, and not one that the gateway has made, which repeats the number before (D4.2). */
function endsRun(frames: readonly Frame[]): boolean {
  const [before, last] = frames.slice(-2)
  if (!last) return before !== undefined
  return !READER_FAILURES.has(String(last.data['code'])) || last.id !== before?.id
}

/** A sub-agent is its start, a whole stream wrapped in events, and its end, all within its caller's tool call (D4.13). */
function problemsOfSubAgents(frames: readonly Frame[]): string[] {
  const problems: string[] = []
  const open = new Map<unknown, Frame[]>()
  for (const { id, event, data } of frames) {
    const agent = data['subagent_id']
    if (event === 'subagent_start') open.set(agent, [])
    if (event === 'subagent_event') {
      const { event_type: type, ...fields } = data
      const inner = open.get(agent)
      if (inner) inner.push({ id: inner.length + 1, event: String(type), data: fields })
      else problems.push(`subagent_event ${id} is of no open sub-agent`)
    }
    if (event === 'subagent_end') {
      problems.push(...problemsOfInner(String(agent), open.get(agent), data['status']))
      open.delete(agent)
    }
    if (OF_ASKS.has(event) && open.size > 0) problems.push(...problemsOfPlainAsk(frames, id, data['id']))
  }
  if (open.size > 0 && frames.at(-1)?.event === 'done') problems.push(`${open.size} sub-agents never end`)
  return problems
}

const STATUS_OF: Record<string, string[]> = { done: ['completed'], error: ['failed', 'cancelled'] }

function problemsOfInner(agent: string, inner: readonly Frame[] | undefined, status: unknown): string[] {
  if (!inner) return [`subagent_end of ${agent}, which is not open`]
  const wrong = [
    ...problemsOfEnd(inner),
    ...problemsOfTurns(inner),
    ...problemsOfBlocks(inner),
    ...problemsOfTools(inner),
    ...problemsOfAsks(inner, true),
  ]
  if (!STATUS_OF[inner.at(-1)?.event ?? '']?.includes(String(status))) wrong.push(`status is ${status}`)
  return wrong.map((problem) => `${agent}: ${problem}`)
}

/** A sub-agent's permission request and its decision are on the stream twice: wrapped, then plain. */
function problemsOfPlainAsk(frames: readonly Frame[], id: number, ask: unknown): string[] {
  const [before, { event }] = [frames[id - 2], frames[id - 1] ?? { event: '' }]
  if (before?.data['event_type'] !== event) return []
  return before.data['id'] === ask ? [] : [`${event} ${id} is not the one that was wrapped before it`]
}

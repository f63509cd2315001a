import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { FollowOptions, PermissionAsk, RunEvent, RunStream } from '../../../shared/client/client.ts'
import { RunFailed, RunLost } from '../../../shared/client/errors.ts'
import { placeText } from '../../../shared/reading/place-text.ts'
import { EXIT, type ExitCode, exitCodeOf } from '../exit-codes.ts'
import { type Io, isInteractive } from '../io.ts'
import type { Output } from '../output.ts'
import { countdown } from '../text/figures.ts'
import { plainJson, plainLine } from '../text/plain.ts'
import { type Approval, ruleFor } from './approval.ts'
import type { Screen } from './ask-person.ts'
import { callText } from './call-line.ts'
import { RunScreen } from './run-screen.ts'
import type { TypeAhead } from './type-ahead.ts'

export type RunFollow = {
  io: Io
  output: Output
  approval: Approval
  /** One event a line on stdout, and as the last line the result. */
  isJson: boolean
  /** Reads the user's input while the run works. Only `ae chat` on a terminal has it. */
  ahead?: { keys: TypeAhead; steer(runId: string, text: string): Promise<unknown> } | undefined
  /** Starts or resumes the run. */
  start(options: FollowOptions): RunStream
}

/** How long the second Ctrl-C waits for the request of the first one to arrive. */
const CANCEL_MS = 2_000

/**
 * Shows a run until it ends. The first Ctrl-C cancels the run, the second stops following it. Throws the error that
 * ends the run, except for a cancel.
 */
export async function followRun({ io, output, approval, isJson, ahead, start }: RunFollow): Promise<ExitCode> {
  const screen = new RunScreen({ output, hasText: !isJson })
  const leaving = new AbortController()
  const answer = createAnswers({ io, output, screen, approval })
  const onPermission = async (ask: PermissionAsk) => {
    await setImmediate() // Waits until the event itself is shown.
    await (ahead ? ahead.keys.during(() => answer(ask)) : answer(ask))
  }
  const end = () => (ahead?.keys.end(), screen.end())
  const run = start({ signal: leaving.signal, onPermission })
  const release = io.onInterrupt(interruption(run, { screen, leave: () => leaving.abort() }))
  ahead?.keys.begin({ screen, steer: async (text) => ahead.steer(await run.started(), text) })
  try {
    for await (const event of run) {
      if (isJson) output.out(`${plainJson({ ...event, run_id: run.id })}\n`)
      screen.show(event, run.id)
      showNews(event, run.id ?? '', screen)
    }
    const { output: text, usage, stopReason, planId, note } = await run.result()
    end()
    const result = { output: text, usage, stop_reason: stopReason, plan_id: planId, note }
    if (isJson) printResult(output, run, result)
    else if (planId !== undefined) output.out(`${planId}\n`)
    return wasDenied(screen) ? EXIT.denied : EXIT.ok
  } catch (cause) {
    end()
    const isOver = cause instanceof RunFailed || cause instanceof RunLost
    if (!isOver && run.id !== undefined) output.err(`ae attach ${run.id}\n`)
    if (leaving.signal.aborted) return EXIT.cancelled
    if (isJson) printResult(output, run, { error: errorOf(cause) })
    throw cause
  } finally {
    release()
  }
}

/** Prints delivered files, steering texts, and calls of client tools with the command that answers them. */
function showNews({ event, data }: RunEvent, runId: string, screen: RunScreen): void {
  if (event === 'artifact')
    screen.print(`  delivered ${plainLine(data.name)}: ae files get ${data.file_id} ${quoted(plainLine(data.name))}`)
  if (event === 'waiting') screen.print(`  ${placeText(data)}`)
  if (event === 'steered') screen.print(`  told${data.by ? ` by ${plainLine(data.by)}` : ''}: ${plainLine(data.text)}`)
  if (event !== 'tool_use' || !data.expires_at) return
  const call = callText({ toolName: data.tool_name, input: data.input })
  screen.print(`waiting for your tool (${call}): ae answer ${runId} ${plainLine(data.id)} OUTPUT`)
}

/** A word of a shell. */
const quoted = (name: string): string => (/^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`)

function interruption(run: RunStream, { screen, leave }: { screen: RunScreen; leave: () => void }): () => void {
  let cancelled: Promise<void> | undefined
  return () => {
    if (cancelled) return void Promise.race([cancelled, sleep(CANCEL_MS, undefined, { ref: false })]).then(leave)
    screen.print('cancelling (Ctrl-C again leaves without waiting)')
    cancelled = run.cancel().catch((cause: unknown) => screen.print(`it could not be cancelled: ${String(cause)}`))
  }
}

/** A run may succeed even if some of its calls were denied. */
const wasDenied = ({ view }: RunScreen): boolean => view?.permissions.some(({ state }) => state === 'denied') ?? false

const printResult = (output: Output, run: RunStream, result: object): void =>
  output.out(`${plainJson({ event: 'result', run_id: run.id, ...result })}\n`)

function errorOf(cause: unknown): object {
  const { message } = cause as Error
  const code = exitCodeOf(cause)
  if (!(cause instanceof RunFailed)) return { message, exit_code: code }
  return { code: cause.code, message, suggestion: cause.suggestion, retryable: cause.retryable, exit_code: code }
}

type Place = { io: Io; output: Output; screen: Screen; approval: Approval }

/** Answers the requests of a run one after the other: by rule, by asking the user at the terminal, or not at all. */
function createAnswers(place: Place): (ask: PermissionAsk) => Promise<void> {
  let asked = Promise.resolve()
  return async (ask) => {
    if (await isAnsweredByRule(ask, place)) return
    if (!isInteractive(place.io)) return leavePending(ask, place)
    // Loaded with the first question: most runs have none.
    asked = asked.then(async () => (await import('./ask-person.ts')).askPerson(ask, place))
    await asked
  }
}

async function isAnsweredByRule(ask: PermissionAsk, { approval, screen, output: { style } }: Place): Promise<boolean> {
  const rule = ruleFor(approval.rules, ask)
  const call = callText(ask)
  if (rule !== undefined || approval.mode === 'all') {
    screen.print(style.dim(`  ${call} is allowed by ${rule ? `--allow '${plainLine(rule.text)}'` : '--approve all'}`))
    await ask.allow()
    return true
  }
  if (approval.mode !== 'never') return false
  await ask.deny('denied by --approve never')
  return true
}

/** Without a terminal nobody can be asked here: the request stays pending, and someone else may answer it. */
function leavePending(ask: PermissionAsk, { screen }: Place): void {
  const left = countdown(ask.expiresAt.getTime() - Date.now())
  const call = callText(ask)
  screen.print(`waiting for permission ${ask.id} (${call}): ae allow ${ask.id} (denied in ${left})`)
}

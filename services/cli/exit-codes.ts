import { AgentEngineError, ApiError, ConnectionFailed, RunFailed, RunLost } from '../../shared/client/errors.ts'

/** The exit codes of all commands. `ae --help` lists them. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  denied: 3,
  notFound: 4,
  serverAway: 69,
  tryAgain: 75,
  notSignedIn: 77,
  settings: 78,
  cancelled: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export const EXIT_CODE_HELP = `Exit codes:
  0    it worked
  1    the run, flow or plan has failed, or the output does not fit its schema
  2    the command or its input is wrong
  3    a permission was denied or is needed, or the token may not do this
  4    there is no such thing
  69   the server cannot be reached
  75   refused for now (429 or 503): try again later
  77   not signed in
  78   a setting is wrong
  130  cancelled`

/** An error of a command itself. `hint`: what the user can do next. */
export class CliError extends Error {
  override name = 'CliError'
  readonly code: ExitCode
  readonly hint: string | undefined

  constructor(code: ExitCode, message: string, hint?: string) {
    super(message)
    this.code = code
    this.hint = hint
  }
}

export const usageError = (message: string, hint?: string): CliError => new CliError(EXIT.usage, message, hint)

const STATUS_CODES: Readonly<Record<number, ExitCode>> = {
  400: EXIT.usage,
  401: EXIT.notSignedIn,
  403: EXIT.denied,
  404: EXIT.notFound,
  413: EXIT.usage,
  429: EXIT.tryAgain,
  503: EXIT.tryAgain,
}

/** `undefined` for an error that no command expects. */
export function exitCodeOf(cause: unknown): ExitCode | undefined {
  if (cause instanceof CliError) return cause.code
  if (cause instanceof RunFailed) return cause.code === 'cancelled' ? EXIT.cancelled : EXIT.failed
  if (cause instanceof RunLost) return EXIT.notFound
  if (cause instanceof ConnectionFailed) return EXIT.serverAway
  if (cause instanceof ApiError) return isOfProxy(cause) ? EXIT.serverAway : (STATUS_CODES[cause.status] ?? EXIT.failed)
  return cause instanceof AgentEngineError ? EXIT.failed : undefined
}

/** The answer comes from a proxy that cannot reach the server: the server's own errors have a type. */
const isOfProxy = ({ status, type }: ApiError): boolean => (status === 502 || status === 504) && type === 'unknown'

/** The lines that are printed about an error: the error, then what the user can do. */
export function explain(cause: unknown, url: string): { message: string; hints: string[] } {
  if (cause instanceof CliError) return { message: cause.message, hints: cause.hint === undefined ? [] : [cause.hint] }
  if (cause instanceof RunFailed) return explainRun(cause)
  if (cause instanceof ConnectionFailed) {
    const hint = 'Start a server on this machine with `ae serve`, or name another one with AE_URL or `ae profile add`.'
    return { message: `the server at ${url} cannot be reached: ${deepest(cause)}`, hints: [hint] }
  }
  if (cause instanceof ApiError) return explainAnswer(cause)
  const { code, path } = cause as NodeJS.ErrnoException
  if (code === 'ENOENT' && path !== undefined) return { message: `there is no file ${path}`, hints: [] }
  return { message: cause instanceof Error ? cause.message : String(cause), hints: [] }
}

function explainRun({ message, code, suggestion, retryable, runId }: RunFailed): { message: string; hints: string[] } {
  if (code === 'cancelled') return { message, hints: [] }
  const again = retryable ? ['The same request may succeed later.'] : []
  const why = runId !== undefined ? [`ae why ${runId}`] : []
  return { message: `${message} (${code})`, hints: [...(suggestion === '' ? [] : [suggestion]), ...again, ...why] }
}

function explainAnswer({ message, status, param, problems, requestId }: ApiError): {
  message: string
  hints: string[]
} {
  const at = param === undefined || param === '' ? '' : ` (at ${param})`
  const others = problems
    .filter((problem) => problem.message !== message)
    .map((each) => `${each.param}: ${each.message}`)
  const next = {
    401: 'Sign in with `ae login`, or set AE_TOKEN.',
    403: '`ae whoami` shows what the token may be used for, and `ae login` stores another one.',
  }[status]
  const request = status >= 500 && requestId !== undefined ? [`The server's log has it as ${requestId}.`] : []
  return { message: message + at, hints: [...others, ...(next === undefined ? [] : [next]), ...request] }
}

/** The message of the innermost cause, which names the actual failure. */
function deepest(cause: Error): string {
  const { cause: inner } = cause
  return inner instanceof Error ? deepest(inner) : cause.message
}

import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { showHidden, truncate } from '../../../kernel/text.ts'
import { attempt } from '../attempt.ts'
import { fail, succeed, type Tool, type ToolContext, type ToolOutcome } from '../port.ts'
import { makeWorkspace } from '../workspace/workspace.ts'
import { endProcessGroup } from './process-group.ts'
import { shellSubject } from './shell-subject.ts'

export type BashOptions = {
  /** PATH of the commands. Commands get no other variable of the server's environment. */
  path?: string
  shell?: string
  /** The time between SIGTERM and SIGKILL, in which a command may clean up. */
  graceMs?: number
}

const DEFAULT_TIMEOUT_MS = 120_000
const MAX_TIMEOUT_MS = 600_000
/** Both parts and the exit code fit into the 64 KiB that the engine gives the model of an output. */
const SHOWN_PART_CHARS = 31 * 1024
/** A command that writes more is stopped, because nobody would see the output that this process has to read. */
const MAX_OUTPUT_CHARS = 16 * 1024 * 1024
const REPORT_EVERY_MS = 500
/** How long to wait for the pipes to close after the process group has ended: a process that left the group may keep them open. */
const DRAIN_MS = 500

/**
 * Creates `Bash` (D5.1), which exists with ENABLE_BASH only. A command runs in the workspace and in its own process group, which is ended
 * as a whole. It runs as the server's user, so it is no sandbox: the command can read every file of that user, and, if the system lets
 * processes of one user trace each other, also the server's memory. The server's start environment contains no secrets.
 */
export function createBashTool(options: BashOptions = {}): Tool {
  return {
    name: 'Bash',
    description: `Runs a command with bash in the workspace and returns its output and exit code. Each call starts a new shell: no variable, folder or background process is kept. The command is stopped after timeout_ms (default ${DEFAULT_TIMEOUT_MS}). Of long output the first and the last ${SHOWN_PART_CHARS / 1024} KiB are shown.`,
    inputSchema: {
      type: 'object',
      properties: {
        command: { type: 'string', minLength: 1, maxLength: 100_000, description: 'The command.' },
        timeout_ms: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_TIMEOUT_MS,
          description: 'The time after which the command is stopped.',
        },
      },
      required: ['command'],
    },
    defaultPolicy: 'ask',
    usesFiles: true,
    ruleSubject: ({ command }) => shellSubject(String(command)),
    describe: ({ command }) => `Run the command: ${truncate(String(command), 1_000)}`,
    preview: async ({ command }) => ({ kind: 'command', command: showHidden(String(command)) }),
    run(input, context) {
      const { command, timeout_ms = DEFAULT_TIMEOUT_MS } = input as { command: string; timeout_ms?: number }
      return attempt({ subject: 'Bash', signal: context.signal }, async () => {
        if (command.includes('\0')) return fail('The command contains a NUL byte. Remove it.')
        await makeWorkspace(context.workspace)
        return execute({ command, timeoutMs: timeout_ms }, context, options)
      })
    },
  }
}

type Command = { command: string; timeoutMs: number }

async function execute(
  { command, timeoutMs }: Command,
  context: ToolContext,
  options: BashOptions,
): Promise<ToolOutcome> {
  const child = await startShell(command, context, options)
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(`it ran longer than ${timeoutMs} ms`), timeoutMs)
  const output = collectOutput(child, context, () => stop.abort('it wrote too much'))
  const closed = once(child, 'close')
  const ending = await waitForEnd(child, AbortSignal.any([stop.signal, context.signal]))
  clearTimeout(timer)
  // Also ends background processes that are still running after the command itself.
  if (child.pid !== undefined) await endProcessGroup(child.pid, options.graceMs ?? 2_000)
  await Promise.race([closed, delay(DRAIN_MS, undefined, { ref: false })])
  child.stdout.destroy()
  child.stderr.destroy()
  context.signal.throwIfAborted()
  const written = (output.text() || '(no output)').replace(/\n?$/, '\n')
  if (stop.signal.aborted) return fail(`${written}[Stopped because ${stop.signal.reason}.]`)
  const text = `${written}[${ending}]`
  return ending === 'exit code 0' ? succeed(text) : fail(text)
}

type Shell = ChildProcessByStdio<null, Readable, Readable>

async function startShell(
  command: string,
  { workspace, assertMayAct }: ToolContext,
  options: BashOptions,
): Promise<Shell> {
  const { path = '/usr/local/bin:/usr/bin:/bin', shell = '/bin/bash' } = options
  assertMayAct()
  const child = spawn(shell, ['-c', command], {
    cwd: workspace,
    env: { PATH: path, HOME: workspace, LANG: 'C.UTF-8' },
    detached: true, // makes the shell the leader of a new process group
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await once(child, 'spawn')
  return child
}

function collectOutput(child: Shell, context: ToolContext, onTooMuch: () => void): OutputCap {
  const output = new OutputCap(SHOWN_PART_CHARS)
  let nextReport = 0
  const add = (text: string) => {
    output.add(text)
    if (output.chars > MAX_OUTPUT_CHARS) onTooMuch()
    if (performance.now() < nextReport) return
    nextReport = performance.now() + REPORT_EVERY_MS
    context.report(output.lines, 'lines of output')
  }
  child.stdout.setEncoding('utf8').on('data', add)
  child.stderr.setEncoding('utf8').on('data', add)
  return output
}

/** Describes how the command ended; `stopped` when `stop` aborts first. */
async function waitForEnd(child: ChildProcess, stop: AbortSignal): Promise<string> {
  try {
    const [code, signal] = await once(child, 'exit', { signal: stop })
    return code === null ? `ended by ${signal}` : `exit code ${code}`
  } catch (cause) {
    if (stop.aborted) return 'stopped'
    throw cause
  }
}

/** Keeps the first and the last `partChars` UTF-16 units of a command's output; the text between them is only counted. */
export class OutputCap {
  readonly #partChars: number
  #head = ''
  #tail = ''
  #chars = 0
  #lines = 0

  constructor(partChars: number) {
    this.#partChars = partChars
  }

  get chars(): number {
    return this.#chars
  }

  get lines(): number {
    return this.#lines
  }

  add(text: string): void {
    this.#chars += text.length
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) this.#lines += 1
    const room = this.#partChars - this.#head.length
    this.#head += text.slice(0, room)
    if (text.length > room) this.#tail = (this.#tail + text.slice(room)).slice(-this.#partChars)
  }

  /** The output; a gap in it says how many characters were left out. */
  text(): string {
    const left = this.#chars - this.#head.length - this.#tail.length
    const gap = left > 0 ? `\n[… ${left} characters left out …]\n` : ''
    return `${this.#head}${gap}${this.#tail}`.toWellFormed()
  }
}

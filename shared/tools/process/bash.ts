import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { attempt } from '../attempt.ts'
import { clip } from '../clip.ts'
import { fail, succeed, type Tool, type ToolContext, type ToolOutcome } from '../port.ts'
import { makeWorkspace } from '../workspace/workspace.ts'
import { OutputCap } from './output-cap.ts'
import { endProcessGroup } from './process-group.ts'

export type BashOptions = {
  /** PATH of the commands. Of the server's own environment they are given nothing. */
  path?: string
  shell?: string
  /** How long a command may clean up between SIGTERM and SIGKILL. */
  graceMs?: number
}

const DEFAULT_TIMEOUT_MS = 120_000
const MAX_TIMEOUT_MS = 600_000
const SHOWN_PART_CHARS = 64 * 1024
/** A command that writes more is stopped: reading on would keep this process busy for nothing. */
const MAX_OUTPUT_CHARS = 16 * 1024 * 1024
const REPORT_EVERY_MS = 500
/** How long the pipes may stay open once the group is gone: a process that left the group could hold them for ever. */
const DRAIN_MS = 500

/** `Bash` (D5.1), for ENABLE_BASH only. It runs in the workspace, in a process group of its own that ends as a whole. */
export function createBashTool(options: BashOptions = {}): Tool {
  return {
    name: 'Bash',
    description: `Runs a command with bash in the workspace and gives its output and exit code. Each call starts anew: no variable, folder or background process is kept. It is stopped after ${DEFAULT_TIMEOUT_MS} ms unless timeout_ms says otherwise. Of long output the first and the last ${SHOWN_PART_CHARS / 1024} KiB are shown.`,
    inputSchema: {
      type: 'object',
      properties: {
        command: { type: 'string', minLength: 1, maxLength: 100_000, description: 'The command.' },
        timeout_ms: { type: 'integer', minimum: 1, maximum: MAX_TIMEOUT_MS, description: 'When to stop it.' },
      },
      required: ['command'],
    },
    defaultPolicy: 'ask',
    describe: ({ command }) => `Run the command: ${clip(String(command), 1_000)}`,
    run(input, context) {
      const { command, timeout_ms = DEFAULT_TIMEOUT_MS } = input as { command: string; timeout_ms?: number }
      return attempt({ subject: 'Bash', signal: context.signal }, async () => {
        if (command.includes('\0')) return fail('The command holds a zero byte. Leave it out.')
        await makeWorkspace(context.workspace)
        return execute({ command, timeoutMs: timeout_ms }, context, options)
      })
    },
  }
}

type Order = { command: string; timeoutMs: number }

async function execute(
  { command, timeoutMs }: Order,
  context: ToolContext,
  options: BashOptions,
): Promise<ToolOutcome> {
  const child = await start(command, context.workspace, options)
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(`it ran longer than ${timeoutMs} ms`), timeoutMs)
  const output = collect(child, context, () => stop.abort('it wrote too much'))
  const closed = once(child, 'close')
  const ending = await ended(child, AbortSignal.any([stop.signal, context.signal]))
  clearTimeout(timer)
  // Background processes are ended too when the command itself has come to its end.
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

async function start(command: string, workspace: string, options: BashOptions): Promise<Shell> {
  const { path = '/usr/local/bin:/usr/bin:/bin', shell = '/bin/bash' } = options
  const child = spawn(shell, ['-c', command], {
    cwd: workspace,
    env: { PATH: path, HOME: workspace, LANG: 'C.UTF-8' },
    detached: true, // makes the shell the leader of a new process group
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await once(child, 'spawn')
  return child
}

function collect(child: Shell, context: ToolContext, onFlood: () => void): OutputCap {
  const output = new OutputCap(SHOWN_PART_CHARS)
  let nextReport = 0
  const add = (text: string) => {
    output.add(text)
    if (output.chars > MAX_OUTPUT_CHARS) onFlood()
    if (performance.now() < nextReport) return
    nextReport = performance.now() + REPORT_EVERY_MS
    context.report(output.lines, 'lines of output')
  }
  child.stdout.setEncoding('utf8').on('data', add)
  child.stderr.setEncoding('utf8').on('data', add)
  return output
}

/** How the command ended, or that it has to be stopped. */
async function ended(child: ChildProcess, stop: AbortSignal): Promise<string> {
  try {
    const [code, signal] = await once(child, 'exit', { signal: stop })
    return code === null ? `ended by ${signal}` : `exit code ${code}`
  } catch (cause) {
    if (stop.aborted) return 'stopped'
    throw cause
  }
}

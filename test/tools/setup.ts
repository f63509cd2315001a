import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonObject } from '../../shared/events.ts'
import type { Tool, ToolContext, ToolOutcome } from '../../shared/tools/port.ts'

const folders: string[] = []

/** A folder for one test; `afterEach(removeFolders)` removes it. */
export async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'ae-tools-'))
  folders.push(folder)
  return folder
}

export async function removeFolders(): Promise<void> {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
}

export const contextOf = (workspace: string, fields: Partial<ToolContext> = {}): ToolContext => ({
  workspace,
  signal: new AbortController().signal,
  report: () => {},
  ...fields,
})

export type Caller = (name: string, input: JsonObject, fields?: Partial<ToolContext>) => Promise<ToolOutcome>

/** Calls tools by name in one workspace. */
export const callerOf =
  (tools: readonly Tool[], workspace: string): Caller =>
  (name, input, fields) => {
    const tool = tools.find((candidate) => candidate.name === name)
    if (!tool) throw new Error(`no tool ${name}`)
    return tool.run(input, contextOf(workspace, fields))
  }

/**
 * The longest time, in ms, for which `work` kept the event loop from turning: of this thread's CPU, so that other processes
 * on the machine do not count.
 */
export async function longestStall(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let isOver = false
  let last = cpuMs()
  const turn = () => {
    const now = cpuMs()
    longest = Math.max(longest, now - last)
    last = now
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await work()
  isOver = true
  return Math.max(longest, cpuMs() - last)
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Is the process there? One that has ended and only waits to be reaped is not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && (cause.code === 'ESRCH' || cause.code === 'ENOENT')) return false
    throw cause
  }
}

import { createHook } from 'node:async_hooks'
import type { ChildProcess } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { flushCompileCache } from 'node:module'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context, RootHookObject } from 'mocha'
import { findImportsByName } from '../services/wiring/quick-imports.ts'

findImportsByName()

/**
 * Open resources that a test file has to close, by the names of `process.getActiveResourcesInfo()`. It lists only what keeps the
 * process alive: timers, sockets and threads without a reference, such as undici's idle connections, do not count. Not in this list:
 * requests to the file system and DNS, which end by themselves, and pipes, which close with their process.
 */
const CLOSEABLE = new Set(['Timeout', 'TCPSocketWrap', 'TCPServerWrap', 'TLSWrap', 'ProcessWrap', 'MessagePort'])

/** Time for closes in progress to finish. It delays only a failure, so that it can be long. */
const GRACE_MS = 5_000
const POLL_MS = 5
/** Time for the process to end by itself after its last test. */
const EXIT_MS = 5_000
/** Programs that no unit test starts; see scripts/testing/unit-tests.ts. */
const SERVERS = new Set(['redis-server', 'mongod', 'chromium', 'chromium-headless-shell', basename(process.execPath)])

const unitTestProblems: string[] = []
if (process.env['UNIT_TESTS'] !== undefined) subscribe('child_process', refuseServer)

/**
 * Fails a top-level suite (a test file has one or a few) that leaves something open that was not open before, and ends a process that it
 * keeps alive after the last test. A test that fails in its middle seldom closes everything.
 */
export const mochaHooks: RootHookObject = {
  async beforeAll(this: Context) {
    flushCompileCache() // The test processes that begin next need not compile what is loaded now.
    await Promise.resolve() // Mocha's timer of an async hook starts when the function has returned. Here and below it counts.
    let before = countOpen()
    for (const suite of this.test?.parent?.suites ?? [])
      suite.afterAll('leaves nothing open', async function () {
        this.timeout(2 * GRACE_MS)
        await Promise.resolve()
        const found = await waitForNothingNew(before)
        before = countOpen() // One leak fails one suite.
        if (found.length === 0) return
        const hint = isTracing ? showTraced() : 'OPEN_STACKS=1 shows where it was opened'
        throw new Error(`left open after "${suite.title}": ${found.join(', ')}; ${hint}`)
      })
  },
  afterEach() {
    const problems = unitTestProblems.splice(0)
    if (problems.length > 0) throw new Error(problems.join('\n'))
  },
  afterAll() {
    setTimeout(endProcess, EXIT_MS).unref()
  },
}

function endProcess(): void {
  const names = process.getActiveResourcesInfo().toSorted().join(', ')
  process.stderr.write(`This process did not end within ${EXIT_MS / 1000} s of its last test. Still open: ${names}\n`)
  process.once('exit', () => (process.exitCode ||= 1)) // Mocha sets the number of failures at the exit, which may be 0.
  process.exit()
}

type Counts = ReadonlyMap<string, number>

/** Counts open resources and the listeners of `process`, by name. */
function countOpen(): Counts {
  const counts = new Map<string, number>()
  for (const name of process.getActiveResourcesInfo())
    if (CLOSEABLE.has(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
  for (const event of process.eventNames()) counts.set(`process.on('${String(event)}')`, process.listenerCount(event))
  return counts
}

async function waitForNothingNew(before: Counts): Promise<string[]> {
  const deadline = performance.now() + GRACE_MS
  let found = findNew(before)
  while (found.length > 0 && performance.now() < deadline) {
    await sleep(POLL_MS)
    found = findNew(before)
  }
  return found
}

function findNew(before: Counts): string[] {
  return [...countOpen()].flatMap(([name, count]) => {
    const more = count - (before.get(name) ?? 0)
    return more > 0 ? [`${more} ${name}`] : []
  })
}

type Traced = { type: string; stack: string; resource: { hasRef?(): boolean } }

/** With OPEN_STACKS=1, what is open and the stack of its creation. */
const traced = new Map<number, Traced>()
const TRACED_TYPES = new Set(['Timeout', 'TCPWRAP', 'TCPSERVERWRAP', 'TLSWRAP', 'PROCESSWRAP', 'MESSAGEPORT'])
const isTracing = process.env['OPEN_STACKS'] !== undefined
if (isTracing)
  createHook({
    init(id, type, _trigger, resource) {
      if (TRACED_TYPES.has(type)) traced.set(id, { type, stack: captureStack(), resource })
    },
    destroy: (id) => void traced.delete(id),
  }).enable()

const showTraced = () =>
  [...traced.values()]
    .filter(({ resource }) => resource.hasRef?.() ?? true)
    .map(({ type, stack }) => `${type} ${stack}`)
    .join('\n')

function captureStack(): string {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 30
  const { stack = '' } = new Error('created')
  Error.stackTraceLimit = limit
  return stack
}

function refuseServer(message: unknown): void {
  const { process: child } = message as { process: ChildProcess }
  queueMicrotask(() => {
    // Node publishes the message before it sets the name of the program.
    if (SERVERS.has(basename(child.spawnfile ?? '')))
      unitTestProblems.push(`a unit test may not start ${child.spawnfile}`)
  })
}

import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { EXIT } from './exit-codes.ts'
import type { Io } from './io.ts'
import { runProgram } from './program.ts'

// The command line `ae`. `scripts/ae` starts it with the compile cache.

const root = fileURLToPath(new URL('../..', import.meta.url))
const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { version: string }

/** Listeners of a signal, without which it ends the process. */
function listenersOf(signal: NodeJS.Signals, code: number) {
  const listeners = new Set<() => void>()
  const raise = () => {
    if (listeners.size === 0) process.exit(code)
    for (const listener of listeners) listener()
  }
  process.on(signal, raise)
  const add = (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  return { raise, add }
}

const interrupts = listenersOf('SIGINT', EXIT.cancelled)
const ends = listenersOf('SIGTERM', 128 + constants.signals.SIGTERM)
process.on('SIGHUP', ends.raise) // The terminal is closed.

// The reader of a pipe may have left, as `head` does.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (cause: NodeJS.ErrnoException) => {
    process.exit(cause.code === 'EPIPE' ? EXIT.ok : EXIT.failed)
  })

function onCrash(listener: () => void): () => void {
  process.on('uncaughtExceptionMonitor', listener)
  return () => void process.off('uncaughtExceptionMonitor', listener)
}

const io: Io = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  onInterrupt: interrupts.add,
  onTerminate: ends.add,
  onCrash,
  interrupt: interrupts.raise,
  root,
  nodePath: process.execPath,
}

process.exit(await runProgram(io, process.argv.slice(2), version))

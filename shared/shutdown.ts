import { setTimeout as wait } from 'node:timers/promises'
import type { Log } from './log.ts'

/** One thing to close. Not done within `deadlineMs`, it is given up and the next is closed. */
export type Closer = { name: string; deadlineMs: number; close: () => unknown }

export type ShutdownOptions = {
  /** In the order of closing: first what lets new work in, last what running work stands on. */
  closers: readonly Closer[]
  /** For all closers together; then the process exits as it is. */
  deadlineMs: number
  log: Log
  /** `process.exit`, which main hands in. */
  exit: (code: number) => void
}

export type Shutdown = {
  /** For SIGTERM and SIGINT: the first closes all and exits 0 (1 when a closer failed), the second exits 1 at once. */
  signal(name: string): void
  /** For `uncaughtException`, after which no state can be trusted: logs it, closes what still closes, exits 1. */
  crash(cause: unknown): void
  /** For `unhandledRejection`: one run's bug, which is logged and takes no other run with it. */
  rejection(cause: unknown): void
}

/**
 * running -> closing (first signal, or a crash) -> exited.
 * Closing ends by the last closer, by the deadline or by a second signal.
 */
export function createShutdown({ closers, deadlineMs, log, exit }: ShutdownOptions): Shutdown {
  let code: number | undefined
  const run = async (exitCode: number) => {
    code = exitCode
    const hard = setTimeout(() => {
      log.error('not closed in time', { deadline_ms: deadlineMs })
      exit(1)
    }, deadlineMs)
    const isClean = await closeAll(closers, log)
    clearTimeout(hard)
    exit(isClean ? code : 1)
  }
  return {
    signal(name) {
      log.info('signal', { signal: name })
      if (code === undefined) void run(0)
      else exit(1)
    },
    crash(cause) {
      log.error('uncaught exception', { cause })
      if (code === undefined) void run(1)
      else code = 1
    },
    rejection: (cause) => log.error('unhandled rejection', { cause }),
  }
}

/** Tells whether all of them closed. */
async function closeAll(closers: readonly Closer[], log: Log): Promise<boolean> {
  let isClean = true
  for (const closer of closers) {
    try {
      await closeOne(closer)
    } catch (cause) {
      isClean = false
      log.error('not closed', { name: closer.name, cause })
    }
  }
  return isClean
}

async function closeOne({ close, deadlineMs }: Closer): Promise<void> {
  const timer = new AbortController()
  const late = wait(deadlineMs, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`still open after ${deadlineMs} ms`)
  })
  late.catch(() => {}) // Cancelled once the closer is done.
  try {
    await Promise.race([close(), late])
  } finally {
    timer.abort()
  }
}

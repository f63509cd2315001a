import { withDeadline } from './async/deadline.ts'
import type { Log } from './log.ts'

/** One step of the shutdown. When it takes longer than `deadlineMs` it is abandoned and the next step begins. */
export type Closer = { name: string; deadlineMs: number; close: () => unknown }

export type ShutdownOptions = {
  /** In closing order: first what accepts new work, last what running work depends on. */
  closers: readonly Closer[]
  /** For all closers together. After that the process exits with 1. */
  deadlineMs: number
  log: Log
  /** `process.exit`, passed in because only the entry points use `process`. */
  exit: (code: number) => void
}

export type Shutdown = {
  /**
   * Handles SIGTERM and SIGINT. The first closes everything and exits 0, or 1 when a closer failed. The second exits 1
   * immediately.
   */
  signal(name: string): void
  /** Handles `uncaughtException`, after which no state can be trusted: logs it, runs the closers, exits 1. */
  crash(cause: unknown): void
  /** Handles `unhandledRejection`: only logs it, because it is the bug of one run and the others must continue. */
  rejection(cause: unknown): void
}

/**
 * Creates the shutdown of a process. running -> closing (first signal, or a crash) -> exited (the last closer is done, the deadline is
 * over, or a second signal came).
 */
export function createShutdown({ closers, deadlineMs, log, exit }: ShutdownOptions): Shutdown {
  let code: number | undefined
  const run = async (exitCode: number) => {
    code = exitCode
    const timer = setTimeout(() => {
      log.error('not closed in time', { deadline_ms: deadlineMs })
      exit(1)
    }, deadlineMs)
    const isClean = await closeAll(closers, log)
    clearTimeout(timer)
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

/** Runs the closers one after the other. Returns whether all of them succeeded. */
async function closeAll(closers: readonly Closer[], log: Log): Promise<boolean> {
  let isClean = true
  for (const closer of closers) {
    try {
      const closing = async () => closer.close()
      await withDeadline(closing(), closer.deadlineMs, () => stillOpen(closer))
    } catch (cause) {
      isClean = false
      log.error('not closed', { name: closer.name, cause })
    }
  }
  return isClean
}

const stillOpen = ({ deadlineMs }: Closer) => new Error(`still open after ${deadlineMs} ms`)

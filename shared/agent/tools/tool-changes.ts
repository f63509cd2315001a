import { retryUntil } from '../../kernel/async/retry.ts'
import { hasKind } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import type { Tool } from './port.ts'
import type { ToolRegistry } from './registry.ts'

type Change = { tools: readonly Tool[]; gone: readonly string[] }

const BUSY_PAUSES = [500, 5_000] as const

/**
 * Applies changes of the tools of MCP servers to the registry, one after the other. While too many schemas are being checked a change waits:
 * each change is reported once, so a dropped tool would be missing until the next start.
 */
export function createToolChanges(
  registry: Pick<ToolRegistry, 'add' | 'remove'>,
  log: Pick<Log, 'warn' | 'error'>,
  pauses: readonly [number, number] = BUSY_PAUSES,
): (change: Change) => Promise<void> {
  let last = Promise.resolve()
  const apply = async ({ tools, gone }: Change) => {
    registry.remove(gone)
    const isBusy = (cause: unknown) => hasKind(cause, 'unavailable')
    const leftOut = await retryUntil(() => registry.add(tools), { pauses, mayPass: isBusy, ref: false })
    for (const message of leftOut) log.warn(message)
  }
  return (change) => {
    const applied = last.then(() => apply(change))
    last = applied.catch((cause: unknown) => log.error('the new tools of an MCP server cannot be offered', { cause }))
    return last
  }
}

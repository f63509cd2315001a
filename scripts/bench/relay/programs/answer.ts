import type { Ready } from '../peer.ts'

/** Each program reads those that it has a use for. */
export type Options = { redisUrl: string; keepaliveMs: number }

/** What the bench has started this program with. */
export const readOptions = (): Options => JSON.parse(process.argv[2] ?? '{}') as Options

type Call = { id: number; method: string; args: never }

/** Tells the bench that this program is ready, does what it is called for, and ends with the bench. */
export function answerCalls(ready: Ready, methods: Record<string, (args: never) => unknown> = {}): void {
  process.once('disconnect', () => process.exit())
  process.on('message', (message) => {
    const { id, method, args } = message as Call
    void answer(async () => methods[method]?.(args)).then((outcome) => process.send?.({ id, ...outcome }))
  })
  process.send?.({ id: 0, value: ready })
}

async function answer(work: () => Promise<unknown>): Promise<{ value: unknown } | { failure: string }> {
  try {
    return { value: (await work()) ?? null }
  } catch (cause) {
    return { failure: String(cause) }
  }
}
